"""The named finders: the only list to edit for a new one."""

from __future__ import annotations

from typing import Final

from dpveil.regions.faces import Faces
from dpveil.regions.finder import Finder
from dpveil.regions.whole import Whole

TABLE: Final[dict[str, Finder]] = {"whole": Whole(), "faces": Faces()}
"""Name on the command line to finder."""
