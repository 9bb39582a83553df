"""The table of face detectors, and which one to use."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from dpveil.errors import InvalidParameter, UnknownName, UsageError
from dpveil.regions.detectors.base import Detector
from dpveil.regions.detectors.centerface import INSTALL, CenterFace
from dpveil.regions.detectors.dlib_hog import DlibHOG
from dpveil.regions.detectors.yunet import YuNet

DETECTORS: Final[dict[str, type[Detector]]] = {
    detector.name: detector for detector in (CenterFace, DlibHOG, YuNet)
}
"""Name on the command line to detector, the best first: the only list to edit for a new one."""

AUTO: Final = "auto"


def check(name: str, model: Path | None) -> None:
    """Raise `UnknownName` or `InvalidParameter` if there is no such detector, or `model` is not for it."""
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
    """Return the detector of that name; for "auto" the first of `DETECTORS` that is installed.

    Raises `UsageError` with an install hint where it is missing.
    """
    check(name, model)
    if model is not None:
        return YuNet(model)
    if name != AUTO:
        return DETECTORS[name]()
    for detector in DETECTORS.values():
        if detector.installed():
            return detector()
    raise UsageError("no face detector is installed", hint=f"{INSTALL}, or: pip install 'dpveil[faces]'")
