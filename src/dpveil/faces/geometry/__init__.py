"""Locating heads in a photo, and putting released faces in their place."""

from dpveil.faces.geometry.align import Frame, Similarity
from dpveil.faces.geometry.landmarks import Landmarks, Pose, Predictor, pose_of
from dpveil.faces.geometry.place import Placed, place

__all__ = ["Frame", "Landmarks", "Placed", "Pose", "Predictor", "Similarity", "place", "pose_of"]
