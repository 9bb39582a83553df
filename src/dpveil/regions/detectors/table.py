"""Which face detector to use."""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from fractions import Fraction
from pathlib import Path
from typing import ClassVar, Final

import numpy as np

from dpveil.assets.network_process import Confined
from dpveil.assets.store import INSTALL
from dpveil.core.arrays import Float, UInt8
from dpveil.core.registry import DETECTORS
from dpveil.errors import InvalidParameter, ModelError, RegionError, UnknownName, UsageError


class Detector(ABC):
    """Finds faces in an image; an instance is used for many images, but never by two threads at once.

    Creating a detector raises `UsageError` with an install hint if something is missing. Bounding boxes reach
    from the forehead to the chin, in pixels of the given image, and may lie partly outside it. Scores are
    between 0 and 1 and comparable within one detector only: they are not probabilities.
    """

    name: ClassVar[str]
    threshold: ClassVar[Fraction]
    """Default of the least score that counts as a face."""

    doubtful: ClassVar[Fraction | None] = None
    """Least score of what looks a little like a face, which runs count and leave as it is; None: nothing.

    Only for detectors that find the same faces, in the same order, if they are asked for lower scores too."""

    smallest: ClassVar[int] = 24
    """Least height in pixels at which it reliably finds faces."""

    notes: tuple[str, ...] = ()
    """Warnings for certificates if the user did not choose this detector by name."""

    @property
    def digest(self) -> str:
        """SHA-256 in hexadecimal of a network supplied by the user; empty for others."""
        return ""

    def another(self) -> Detector:
        """Return a detector with the same network for another thread, even if its file has changed."""
        return type(self)()

    @classmethod
    @abstractmethod
    def installed(cls) -> bool:
        """Whether the detector can be created without arguments."""

    @abstractmethod
    def __call__(self, image: UInt8[np.ndarray, "h w 3"], threshold: float) -> Float[np.ndarray, "n 5"]:
        """Return left, top, width, height (pixels) and score of each face that scores at least `threshold`.

        `image` has sRGB levels 0..255. No two boxes have an intersection over union above `suppress.OVERLAP`.
        Raises `RegionError` for invalid output of the network, and any error of the underlying library.
        """


OVERLAP: Final = 0.3
"""Intersection over union above which two boxes are taken for the same face."""
REMEDY: Final = "choose another detector, or protect the whole photo"


def suppress(found: Float[np.ndarray, "n 5"], overlap: float = OVERLAP) -> Float[np.ndarray, "m 5"]:
    """Return the rows (left, top, width, height, score) left by greedy non-maximum suppression, best first.

    A box is dropped if its intersection over union with a kept one of at least its score is above `overlap`.
    Equal scores keep their order. Raises `RegionError` for non-finite numbers and non-positive sides.

    >>> suppress(np.array([[0, 0, 10, 10, 0.5], [1, 0, 10, 10, 0.9], [20, 0, 10, 10, 0.4]]))[:, 4]
    array([0.9, 0.4])
    """
    if not (np.isfinite(found).all() and (found[:, 2:4] > 0).all()):
        raise RegionError("the face detector returned something that is not a box", hint=REMEDY)
    rest = found[np.argsort(-found[:, 4], kind="stable")]
    kept = []
    while len(rest):
        kept.append(rest[0])
        rest = rest[1:][overlaps(rest[0], rest[1:]) <= overlap]
    return np.array(kept, dtype=found.dtype).reshape(-1, 5)


def overlaps(one: Float[np.ndarray, " 5"], many: Float[np.ndarray, "n 5"]) -> Float[np.ndarray, " n"]:
    """Return the intersection over union of one box with each of many."""
    start = np.maximum(one[:2], many[:, :2])
    stop = np.minimum(one[:2] + one[2:4], many[:, :2] + many[:, 2:4])
    shared = np.prod(np.maximum(stop - start, 0), axis=1)
    areas = one[2] * one[3] + many[:, 2] * many[:, 3]
    return np.asarray(shared / (areas - shared))


HINT = "name the file face_detection_yunet_2023mar.onnx of OpenCV's model zoo, or one with the same outputs"
MOST = 1 << 26
"""Largest file in bytes; OpenCV's own has 0.2 MB."""
ROW: Final = 15
"""Numbers of a face: box, five points and score."""


class YuNet(Detector):
    """A network with YuNet's inputs and outputs from a local file, run by OpenCV from the hashed bytes.

    It runs in a process of its own, which a damaged file can end.

    Raises `InvalidParameter` if the file is missing, unreadable, or not such a network.
    """

    name = "yunet"
    threshold = Fraction(3, 10)
    doubtful = Fraction(3, 20)

    def __init__(self, model: Path | None = None) -> None:
        if model is None:
            raise InvalidParameter("detector model", None, "is missing for yunet", hint=HINT)
        try:
            if model.stat().st_size > MOST or not model.is_file():
                problem = f"is no file of at most {MOST >> 20} MiB"
                raise InvalidParameter("detector model", str(model), problem, hint=HINT)
            contents = model.read_bytes()
        except OSError as error:
            reason = error.strerror or "input error"
            raise InvalidParameter(
                "detector model", str(model), f"is unreadable: {reason}", hint=HINT
            ) from error
        self._digest, self._run = hashlib.sha256(contents).hexdigest(), Confined(self.name, contents)
        self._try(str(model))

    @property
    def digest(self) -> str:
        """SHA-256 of the file."""
        return self._digest

    def another(self) -> YuNet:
        """Return the same object: every call creates a net of its own."""
        return self

    @classmethod
    def installed(cls) -> bool:
        """Return False: the user has to supply the file."""
        return False

    def __call__(self, image: UInt8[np.ndarray, "h w 3"], threshold: float) -> Float[np.ndarray, "n 5"]:
        """Return the faces of an image, by a new net, as every size of image needs one."""
        try:
            rows = self._run(image[:, :, ::-1], np.array([threshold, OVERLAP]))
        except ModelError as error:
            raise RegionError(f"YuNet did not run: {error.message}", hint=REMEDY) from error
        if rows.ndim != 2 or rows.shape[1] != ROW:
            raise RegionError("YuNet gave something else than faces", hint=REMEDY)
        return suppress(np.asarray(rows[:, [0, 1, 2, 3, 14]], np.float64))

    def _try(self, name: str) -> None:
        """Run the network once, before any photo is read."""
        try:
            self(np.zeros((64, 64, 3), np.uint8), 0.99)
        except RegionError as error:
            raise InvalidParameter("detector model", name, "is no YuNet network", hint=HINT) from error


AUTO: Final = "auto"


def check(name: str, model: Path | None) -> None:
    """Raise `UnknownName` for an unknown detector and `InvalidParameter` if `model` does not fit it."""
    if name != AUTO and name not in DETECTORS:
        raise UnknownName("detector", name, (AUTO, *DETECTORS))
    if model is not None and name != YuNet.name:
        raise InvalidParameter(
            "detector model",
            None,
            f"is not for the detector {name}",
            hint=f"choose the detector {YuNet.name}",
        )
    if model is None and name == YuNet.name:
        YuNet(None)


def choose(name: str, model: Path | None = None) -> Detector:
    """Return the detector of that name, or for "auto" the first of dpveil's own that is installed.

    Raises the errors of `check`, `UsageError` with an install hint if the detector is not installed, and
    `PluginError` for a plug-in that fails.
    """
    check(name, model)
    if model is not None:
        return YuNet(model)
    if name != AUTO:
        return _make_detector(name)
    for own in DETECTORS.rows:
        if DETECTORS[own].installed():
            return _make_detector(own)
    raise UsageError("no face detector is installed", hint=INSTALL)


def _make_detector(name: str) -> Detector:
    detector: Detector = DETECTORS[name]()
    return detector
