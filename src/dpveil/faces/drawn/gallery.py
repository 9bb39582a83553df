"""The drawn gallery: heads of nobody without a file, and what certificates call it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from typing import ClassVar, Final

from dpveil.faces.drawn import canvas, drawing, figure, head, palette, traits
from dpveil.faces.drawn.figure import DrawnHead
from dpveil.noise.bits import BitSource

WORD: Final = "drawn"
VERSION: Final = 2
"""Raised whenever a head is drawn otherwise: `tests/faces/drawn` holds hashes of pictures to it."""
TABLES: Final = (
    (
        traits,
        [
            "GENDER",
            "AGE",
            "POSE",
            "SMILE",
            "TONE",
            "TONE_OF",
            "SHADE",
            "HAIR",
            "OLD_HAIR",
            "COLOUR",
            "GREY",
            "EYES",
            "GLASSES",
            "BEARD",
            "WORN",
            "GROWN",
            "MOUTH",
        ],
    ),
    (traits, ["GARMENT", "EARRINGS", "BACKDROP", "MEASURES", "TOTAL", "FINE", "YOUNG", "DARK_TONES"]),
    (palette, ["SKIN", "HAIR", "GREYS", "GREY", "IRIS", "CLOTHES", "BACKDROPS", "FRAMES", "SCARVES"]),
    (head, ["YAW", "SWAY"]),
    (canvas, ["NAMES"]),
    (drawing, ["FINER", "LARGE"]),
    (figure, ["LARGER", "RIM", "WHITE"]),
)
"""The public numbers that heads are drawn by."""


@dataclass(frozen=True)
class DrawnGallery:
    """Heads of nobody, drawn from bits by this code; no photograph and no training data is behind them.

    `name` has the version of the code, `digest` is the SHA-256 of the version and of every table.
    """

    name: ClassVar[str] = f"{WORD}-{VERSION}"

    @cached_property
    def digest(self) -> str:
        """The hash that certificates state."""
        tables = [[plain(getattr(module, name)) for name in names] for module, names in TABLES]
        return sha256(json.dumps([self.name, tables], sort_keys=True).encode()).hexdigest()

    def head(self, bits: BitSource, kept: Mapping[str, str]) -> DrawnHead:
        """Return a head whose attributes are `kept`, by name and value; all else is drawn from `bits`."""
        return DrawnHead(traits.drawn(bits, kept))


def plain(table: object) -> object:
    """Return a table as JSON takes it; the order of a table of weights counts."""
    if isinstance(table, Mapping):
        return [[key, plain(value)] for key, value in table.items()]
    return [plain(each) for each in table] if isinstance(table, tuple | list) else table
