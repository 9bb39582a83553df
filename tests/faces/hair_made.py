"""Examples of hair that tests make."""

from __future__ import annotations

import numpy as np

from dpveil.faces.geometry.hair import Hair, features
from dpveil.faces.geometry.layout import CLASSES, LOOK

WIDTH = len(features(np.zeros((64, 64, 3), np.float32))) + 1
"""Weights of a regression on faces, and its constant."""


def flat_hair(count: int = 2, *, yaw: float = 0.0) -> Hair:
    """Return examples of one group that are alike, turned by `yaw` degrees, whose looks are sevenths."""
    looks = np.tile((np.arange(LOOK, dtype=np.float32)[:, None, None] - 3) / 7, (count, 1, 8, 8))
    planes = (np.zeros((count, CLASSES, 8, 8)), looks, np.zeros(count, np.int64), np.zeros((count, 3)))
    rest = (np.full(count, yaw), np.zeros((1, WIDTH)), np.zeros((3, WIDTH)))
    return Hair(*(one if one.dtype == np.int64 else one.astype(np.float32) for one in (*planes, *rest)))
