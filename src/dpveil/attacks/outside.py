"""What lies outside the regions alone, to any attack: the regions are painted over first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Final

import numpy as np

from dpveil.attacks.base import CONTEXT, PLACEMENT, Background, View
from dpveil.attacks.wrapped import Undo, Wrapped

PAINT: Final = 128
"""The level of painted pixels."""


@dataclass(frozen=True)
class Outside(Wrapped):
    """Sees releases, and the clean photos, with their regions in one grey: outline and surroundings are left.

    `outside(network)` is a small network that learns people from their surroundings.
    """

    name: ClassVar[str] = "outside"
    summary: ClassVar[str] = "regions painted grey, then another attack on what lies outside"
    sees: ClassVar[tuple[str, ...]] = (PLACEMENT, CONTEXT)
    photos: ClassVar[bool] = True

    @property
    def reads(self) -> tuple[str, ...]:
        """The context, and the outline of what was painted."""
        return self.sees

    def undo(self, background: Background) -> Undo:
        """Return what paints regions; nothing is learnt."""
        return painted


def painted(views: Sequence[View]) -> tuple[View, ...]:
    """Return views of all of the photo, whose hidden pixels have one level, and whose files tell nothing."""
    return tuple(_painted(view) for view in views)


def _painted(view: View) -> View:
    image = view.image.copy()
    image[view.hidden] = PAINT
    return replace(view, image=image, hidden=np.zeros_like(view.hidden), size=0, more=painted(view.more))
