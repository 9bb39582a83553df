"""Finders, which turn a photo into regions: the table of named ones, and the parser of users' choices."""

from dpveil.regions.faces import FaceFound, Faces
from dpveil.regions.finder import Finder
from dpveil.regions.grow import grow
from dpveil.regions.spec import Spec, check_if_none, describe, find, parse, search
from dpveil.regions.table import TABLE

__all__ = [
    "TABLE",
    "FaceFound",
    "Faces",
    "Finder",
    "Spec",
    "check_if_none",
    "describe",
    "find",
    "grow",
    "parse",
    "search",
]
