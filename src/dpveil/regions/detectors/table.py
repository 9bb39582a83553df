"""Which face detector to use."""

from __future__ import annotations

import hashlib
from fractions import Fraction
from pathlib import Path
from typing import Final

import numpy as np
from jaxtyping import Float, UInt8

from dpveil.assets.confined import Confined
from dpveil.assets.store import INSTALL
from dpveil.core.registry import DETECTORS
from dpveil.errors import InvalidParameter, ModelError, RegionError, UnknownName, UsageError
from dpveil.regions.detectors.base import OVERLAP, REMEDY, Detector, suppress

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
        return _made(name)
    for own in DETECTORS.rows:
        if DETECTORS[own].installed():
            return _made(own)
    raise UsageError("no face detector is installed", hint=INSTALL)


def _made(name: str) -> Detector:
    detector: Detector = DETECTORS[name]()
    return detector
