"""Every style of hair: what of it lies behind the head, and what before it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from dpveil.faces.drawn import long, short
from dpveil.faces.drawn.canvas import Canvas
from dpveil.faces.drawn.head import Head

Drawing = Callable[[Canvas, Head], None]
COVERING: Final = ("long", "wavy", "bob", "scarf")
"""Under which no ear is seen."""
BEHIND: Final[Mapping[str, Drawing]] = {
    "afro": short.afro_back,
    "long": long.long_back,
    "wavy": long.wavy_back,
    "bob": long.bob_back,
    "bun": long.bun_back,
    "scarf": long.scarf_back,
}
BEFORE: Final[Mapping[str, Drawing]] = {
    "bald": short.bald,
    "buzz": short.buzz,
    "side": short.side,
    "quiff": short.quiff,
    "curly": short.curly,
    "afro": short.afro,
    "receding": short.receding,
    "pixie": short.pixie,
    "long": long.long,
    "wavy": long.wavy,
    "bob": long.bob,
    "bun": long.bun,
    "scarf": long.scarf,
}
