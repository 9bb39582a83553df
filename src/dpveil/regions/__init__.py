"""Finders, which turn a photo into regions: the table of named ones, and the parser of users' choices."""

from dpveil.regions.detected import Detected
from dpveil.regions.faces import FaceFound, Faces
from dpveil.regions.finder import Finder
from dpveil.regions.grow import grow
from dpveil.regions.spec import Spec, check_if_none, describe, find, parse, search
from dpveil.regions.table import TABLE
from dpveil.regions.text import Plates, Text

__all__ = [
    "TABLE",
    "Detected",
    "FaceFound",
    "Faces",
    "Finder",
    "Plates",
    "Spec",
    "Text",
    "check_if_none",
    "describe",
    "find",
    "grow",
    "parse",
    "search",
]
