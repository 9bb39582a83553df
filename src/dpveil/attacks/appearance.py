"""Colours and gradients of what was replaced: an attacker of scenes, whose things move in the picture."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from dpveil.attacks.around import WEIGHTS, outside
from dpveil.attacks.base import PIXELS, View
from dpveil.attacks.vectors import VectorAttack, Vectors


@dataclass(frozen=True)
class Appearance(VectorAttack):
    """Learns from releases whose regions have which thumbnail, colours and gradients.

    Where nothing was replaced, it sees the whole photo.
    """

    name: ClassVar[str] = "appearance"
    summary: ClassVar[str] = "thumbnail, colours and gradients of the regions, learnt from releases"
    sees: ClassVar[tuple[str, ...]] = (PIXELS,)

    def vectors(self, views: Sequence[View]) -> Vectors:
        """Return the regions as numbers."""
        found = [outside(view.image, ~view.hidden & view.hidden.any()) for view in views]
        return np.stack([np.concatenate([WEIGHTS[name] * one[name] for name in WEIGHTS]) for one in found])
