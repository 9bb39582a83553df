"""Background knowledge: who has the very faces of the others in a mean takes them away."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Final

import numpy as np

from dpveil.attacks.base import Background, View
from dpveil.attacks.wrapped import Undo, Wrapped

TOP: Final = 255


@dataclass(frozen=True)
class Subtracted(Wrapped):
    """Sees what is left of a mean of m people without the other m - 1, whose very pictures it has.

    m times the mean, minus the others, is the remaining face, up to m/2 levels of rounding. The attacker
    knows who the others are and has the photos of them that were averaged, as `View.others`; of the person
    under attack it has other photos alone. Releases of one person are left as they are. No bound is known,
    and k-same promises nothing. Source: Croft 2022 §3.1; Newton, Sweeney & Malin 2005 exclude it.
    """

    name: ClassVar[str] = "subtracted"
    summary: ClassVar[str] = (
        "a mean of several people less the others, whose very photos it has, then another"
    )

    def undo(self, background: Background) -> Undo:
        """Return what takes the others away; nothing is learnt."""
        return _all_left


def _all_left(views: Sequence[View]) -> tuple[View, ...]:
    return tuple(map(_left, views))


def _left(view: View) -> View:
    if not view.others:
        return replace(view, more=_all_left(view.more))
    whole = (1 + len(view.others)) * view.image.astype(np.int64)
    rest = whole - np.sum(view.others, axis=0, dtype=np.int64)
    image = np.clip(rest, 0, TOP).astype(np.uint8)
    return replace(view, image=image, more=_all_left(view.more), others=())
