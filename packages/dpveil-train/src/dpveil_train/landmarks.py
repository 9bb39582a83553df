"""Landmarks of training crops from dlib's 68-point file, which the user must allow."""

from __future__ import annotations

from hashlib import file_digest
from pathlib import Path
from typing import Final

import numpy as np
from jaxtyping import Float64, UInt8

from dpveil.codecs.base import Crops
from dpveil.core.region import Box
from dpveil.errors import InvalidParameter, RegionError
from dpveil.faces.geometry.align import Frame, Points
from dpveil.faces.geometry.landmarks import (
    BOX,
    HEAD,
    NOSE,
    SEEN,
    Landmarks,
    Pose,
    Predictor,
    head_of,
    model_path,
)
from dpveil.faces.geometry.place import check

PACKAGE: Final = "package"  # the word that allows the file of the package face_recognition_models
USED: Final = 60  # number of landmarks used; the other eight, inside the lips, coincide in a closed mouth
UNSURE: Final = 0.12
"""Reprojection error of a pose, in distances between the eyes, above which it is uncertain."""
STEEP: Final = 1.2  # yaw in radians above which it is
FILE: Final = "shape_predictor_68_face_landmarks.dat"
COUNT: Final = 68
FIVE: Final = (45, 42, 36, 39, 33)  # the indices among them of `Landmarks.points`
MORE: Final = (30, 8, 48, 54)
OF_HEAD: Final = np.concatenate([HEAD, [(0, 33, -36), (0, 118, -4), (-26, 74, -4), (26, 74, -4)]])
"""The five landmarks of a mean head and `MORE`, which are rounded anthropometry, in millimetres."""
WORDS: Final = "60 of dlib's 68, whose file was trained on pictures that exclude commercial use"


class Predictor68(Predictor):
    """dlib's shape predictor for 68 landmarks; its file was trained on pictures that exclude commercial use.

    `path` is a user's file; None allows that of the package face_recognition_models. Raises `UsageError` if a
    package is missing, and `InvalidParameter` for a file that is no such predictor.
    """

    def __init__(self, path: Path | None = None) -> None:
        hint, path = "name a dlib .dat file of 68 landmarks", path or model_path(FILE)
        if not path.is_file():
            raise InvalidParameter("landmark model", str(path), "is not a file", hint=hint)
        try:
            super().__init__(path)
        except RuntimeError as error:
            problem = "is not a shape predictor"
            raise InvalidParameter("landmark model", str(path), problem, hint=hint) from error
        blank = np.zeros((SEEN.size, SEEN.size, 3), np.uint8)
        count = self._predict(blank, self._square(0, 0, 99, 99)).num_parts
        if count != COUNT:
            raise InvalidParameter("landmark model", str(path), f"has {count} landmarks", hint=hint)

    def five(self, found: Points) -> Float64[np.ndarray, "5 2"]:
        """Return the corners of the eyes and the base of the nose."""
        return found[list(FIVE)]

    def sure(self, image: UInt8[np.ndarray, "H W c"], box: Box) -> tuple[Landmarks, Points]:
        """Return the five and all landmarks of a face in a box; raises `RegionError` if they are not sure."""
        pose, many = self.positions(image, box)
        return check(self.agreed(image, pose, many)), np.median(many, axis=0)


class Finder:
    """Finds the landmarks of crops that are roughly aligned as in UTKFace.

    `file` is a path, or "package" for the file of the package face_recognition_models; `digest` is its
    SHA-256. Raises `UsageError` if a package is missing, and `InvalidParameter` for an invalid file.
    """

    def __init__(self, file: str) -> None:
        path = model_path(FILE) if file == PACKAGE else Path(file)
        self._predictor = Predictor68(path)
        with path.open("rb") as opened:
            self.digest = file_digest(opened, "sha256").hexdigest()

    def __call__(self, crops: Crops) -> Float64[np.ndarray, "n 60 2"]:
        """Return the landmarks (x, y) of each crop in pixels; NaN where they are uncertain."""
        found = [self.marks(crop) for crop in crops]
        return np.stack([np.full((USED, 2), np.nan) if one is None else one[:USED] for one in found])

    def pose(self, crop: UInt8[np.ndarray, "s s 3"]) -> Pose | None:
        """Return the pose of the head in a crop, or None where the landmarks or the pose are uncertain."""
        try:
            five, marks = self._predictor.sure(crop, _face(Frame(len(crop))))
            nose = float(np.hypot(*(five.points[4] - five.eyes.mean(axis=0)))) / NOSE
            unit = max(five.distance, nose)
            pose = head_of(marks[[*FIVE, *MORE]], OF_HEAD, five.eyes, unit).pose
        except RegionError:
            return None
        return pose if pose.error <= UNSURE and abs(pose.yaw) <= STEEP else None

    def marks(self, crop: UInt8[np.ndarray, "s s 3"]) -> Float64[np.ndarray, "68 2"] | None:
        """Return all 68 landmarks of a crop, or None where they are uncertain."""
        try:
            return self._predictor.sure(crop, _face(Frame(len(crop))))[1]
        except RegionError:
            return None


def _face(frame: Frame) -> Box:
    """Return the face's box in a canonical crop, from the forehead to the chin."""
    left, top, wide, high = BOX
    ends = frame.pixels(np.array([[left, top], [left + wide, top + high]])).round().astype(int)
    (x0, y0), (x1, y1) = ends.tolist()
    return Box(x0, y0, x1 - x0, y1 - y0)
