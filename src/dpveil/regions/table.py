"""The named finders; a new one gets a row here."""

from __future__ import annotations

from typing import Final

from dpveil.regions.faces import Faces
from dpveil.regions.finder import Finder
from dpveil.regions.text import Plates, Text
from dpveil.regions.whole import Whole

TABLE: Final[dict[str, Finder]] = {
    "whole": Whole(),
    "faces": Faces(),
    "text": Text(),
    "plates": Plates(),
}
"""Finders by their names on the command line."""
