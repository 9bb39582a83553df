"""Which face detector to use."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from dpveil.assets.store import INSTALL
from dpveil.core.registry import DETECTORS
from dpveil.errors import InvalidParameter, UnknownName, UsageError
from dpveil.regions.detectors.base import Detector
from dpveil.regions.detectors.yunet import YuNet

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
