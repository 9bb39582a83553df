"""The classes of a layout: what each pixel of a completed head shows."""

from __future__ import annotations

from typing import Final

BACKGROUND, HAIR, SKIN, CLOTHES = range(4)
CLASSES: Final = 4
"""Number of the classes."""
