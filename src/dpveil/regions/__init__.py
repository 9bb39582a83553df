"""Finders that turn a photo into regions: the table of named ones, and what users write."""

from dpveil.regions.faces import FaceFound, Faces
from dpveil.regions.finder import Finder
from dpveil.regions.grow import grow
from dpveil.regions.spec import Spec, describe, find, parse, search
from dpveil.regions.table import TABLE

__all__ = ["TABLE", "FaceFound", "Faces", "Finder", "Spec", "describe", "find", "grow", "parse", "search"]
