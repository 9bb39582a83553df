"""Locating heads in a photo, and putting released faces in their place."""
