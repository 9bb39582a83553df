"""Files that come with the side package dpveil-faces, which is located but never imported, and CenterFace."""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from dpveil.errors import UsageError

PACKAGE: Final = "dpveil_faces"
INSTALL: Final = "dpveil install faces"
"""The command that installs detectors and landmarks, for messages."""
CENTERFACE: Final = Path(sys.prefix, "share", "dpveil", "centerface.onnx")
"""Where that command puts the network of CenterFace."""
CENTERFACE_SHA256: Final = "09189deaaf8646c5c51a68447e3c744ea1e211798155d4728c20507b9f5aefbc"
FILES: Final = (
    "pip install packages/dpveil-faces, from dpveil's repository (learned from UTKFace: for non-commercial"
    " research only), or name a file of your own"
)


def default_path(name: str) -> Path:
    """Return the path of a default file, such as "pca" or "gallery"; raises `UsageError` if not installed."""
    if (path := installed(name)) is None:
        raise UsageError(f"the default {name} of faces is not installed", hint=FILES)
    return path


def installed(name: str) -> Path | None:
    """Return the path of a default file, such as "pca" or "gallery", or None if it is not installed."""
    spec = find_spec(PACKAGE)
    places = (spec.submodule_search_locations if spec else None) or ()
    paths = (Path(place) / f"{name}.safetensors" for place in places)
    return next((path for path in paths if path.is_file()), None)
