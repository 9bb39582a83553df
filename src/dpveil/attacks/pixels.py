"""Linear discriminants of small pictures: an attacker of pixel methods that needs no network."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Final

import cv2
import numpy as np

from dpveil.attacks.base import PIXELS, View
from dpveil.attacks.vectors import VectorAttack, Vectors

SIDE: Final = (23, 28)
"""Columns and rows to which a picture is reduced: those of 4 × 4 pixels of AT&T's photos."""
TOP: Final = 255.0


@dataclass(frozen=True)
class PixelDiscriminant(VectorAttack):
    """Learns from the attacker's own releases which small pictures show whom.

    Means of blocks average a method's noise out. Source: Belhumeur, Hespanha & Kriegman 1997 (Fisherfaces).
    """

    name: ClassVar[str] = "pixels"
    summary: ClassVar[str] = "linear discriminant of the picture, 23 × 28 pixels, learnt from releases"
    sees: ClassVar[tuple[str, ...]] = (PIXELS,)

    def vectors(self, views: Sequence[View]) -> Vectors:
        """Return the grey levels of the reduced pictures, 0 to 1."""
        return np.stack([reduced(view) for view in views]).astype(np.float64)


def reduced(view: View) -> np.ndarray:
    """Return the grey levels of what is seen, from 0 to 1, in `SIDE` columns and rows."""
    grey = view.image.mean(axis=2, dtype=np.float32)
    return np.asarray(cv2.resize(grey, SIDE, interpolation=cv2.INTER_AREA).ravel() / TOP)
