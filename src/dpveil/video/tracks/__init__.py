"""Tracks of objects in a clip: found in some frames, followed between them, and written as few keys."""

from dpveil.video.tracks.finding import Found, find_tracks
from dpveil.video.tracks.settings import ON_LOST, TrackSettings

__all__ = ["ON_LOST", "Found", "TrackSettings", "find_tracks"]
