"""Where a head is in a photo, and how a released face takes its place."""

from dpveil.geometry.align import Frame, Similarity
from dpveil.geometry.landmarks import Landmarks, Predictor
from dpveil.geometry.place import Placed, place
from dpveil.geometry.pose import Pose, pose_of
from dpveil.geometry.recombine import recombine

__all__ = ["Frame", "Landmarks", "Placed", "Pose", "Predictor", "Similarity", "place", "pose_of", "recombine"]
