"""Finders, which turn a photo into regions: the table of named ones, and the parser of users' choices."""

from typing import TYPE_CHECKING

from dpveil.core.lazy import lazy

if TYPE_CHECKING:
    from dpveil.regions.eyes import Eyes
    from dpveil.regions.faces import FaceFound, Faces
    from dpveil.regions.finder import Finder
    from dpveil.regions.other_finders import Codes
    from dpveil.regions.spec import Spec, check_if_none, parse, search
    from dpveil.regions.text import Plates, Text
    from dpveil.regions.user_detectors import Detected

__all__ = [
    "Codes",
    "Detected",
    "Eyes",
    "FaceFound",
    "Faces",
    "Finder",
    "Plates",
    "Spec",
    "Text",
    "check_if_none",
    "parse",
    "search",
]
__getattr__, __dir__ = lazy(
    __name__,
    {
        "other_finders": "Codes",
        "eyes": "Eyes",
        "user_detectors": "Detected",
        "faces": "FaceFound Faces",
        "finder": "Finder",
        "spec": "Spec check_if_none parse search",
        "text": "Plates Text",
    },
)
