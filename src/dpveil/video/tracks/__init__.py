"""Tracks of objects in a clip: found in some frames, followed between them, and written as few keys."""
