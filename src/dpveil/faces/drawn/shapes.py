"""Outlines of drawn heads: closed curves, ellipses and strokes, as polygons.

Positions are (x, y) in hundredths of the side of the head's frame, from the point between the eyes: these lie
at (-10, 0) and (10, 0), the chin near (0, 36).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Final

import numpy as np
from jaxtyping import Float64

Points = Float64[np.ndarray, "n 2"]
Given = Sequence[Sequence[float]] | Points
STEPS: Final = 8
"""Points of a curve between two that are given."""


@lru_cache(maxsize=2)
def _basis() -> Float64[np.ndarray, "steps 4"]:
    t = np.arange(STEPS) / STEPS
    rows = [-t + 2 * t**2 - t**3, 2 - 5 * t**2 + 3 * t**3, t + 4 * t**2 - 3 * t**3, -(t**2) + t**3]
    basis: Float64[np.ndarray, "steps 4"] = np.stack(rows, axis=1) / 2
    return basis


def closed(points: Given) -> Points:
    """Return a smooth closed curve through points (Catmull & Rom 1974)."""
    at = np.asarray(points, np.float64)
    n = len(at)
    near = at[(np.arange(n)[:, None] + np.arange(-1, 3)) % n]
    line: Points = np.einsum("sk,nkd->nsd", _basis(), near).reshape(-1, 2)
    return line


def curve(points: Given) -> Points:
    """Return a smooth open curve through points, both ends with it."""
    at = np.asarray(points, np.float64)
    ends = np.concatenate([2 * at[:1] - at[1:2], at, 2 * at[-1:] - at[-2:-1]])
    near = ends[np.arange(len(at) - 1)[:, None] + np.arange(4)]
    return np.concatenate([np.einsum("sk,nkd->nsd", _basis(), near).reshape(-1, 2), at[-1:]])


def mirrored(points: Given) -> Points:
    """Return points on the other side."""
    return np.asarray(points, np.float64) * (-1.0, 1.0)


def both_sides(right: Given) -> Points:
    """Return a symmetric outline from its right half, which begins and ends on the axis."""
    at = np.asarray(right, np.float64)
    return np.concatenate([at, mirrored(at)[-2:0:-1]])


def ellipse(x: float, y: float, a: float, b: float, steps: int = 40) -> Points:
    """Return an ellipse by its centre and half axes."""
    angle = np.arange(steps) * (2 * math.pi / steps)
    return np.stack([x + a * np.cos(angle), y + b * np.sin(angle)], axis=1)


def superellipse(x: float, y: float, a: float, b: float, power: float = 3.0) -> Points:
    """Return a rectangle with round corners, the sharper the larger `power`."""
    angle = np.arange(48) * (2 * math.pi / 48)
    c, s = np.cos(angle), np.sin(angle)
    return np.stack(
        [x + a * np.sign(c) * abs(c) ** (2 / power), y + b * np.sign(s) * abs(s) ** (2 / power)], axis=1
    )


def stroke(points: Given, width: float, ends: tuple[float, float] = (0.35, 0.35)) -> Points:
    """Return a line through points, `width` wide in the middle and `ends` of that at its ends."""
    line = curve(points)
    along = np.empty_like(line)
    along[1:-1], along[0], along[-1] = line[2:] - line[:-2], line[1] - line[0], line[-1] - line[-2]
    long = np.maximum(np.hypot(along[:, 0], along[:, 1]), 1e-9)
    t, full = _swelling(len(line))
    edge = ends[0] + (ends[1] - ends[0]) * t
    half = (width / 2 * (edge + (1 - edge) * full) / long)[:, None] * along[:, ::-1] * (-1.0, 1.0)
    return np.concatenate([line + half, (line - half)[::-1]])


@lru_cache(maxsize=16)
def _swelling(count: int) -> tuple[Float64[np.ndarray, " n"], Float64[np.ndarray, " n"]]:
    """Return how far along a stroke each of its points lies, and how wide it is there, both 0 to 1."""
    t = np.linspace(0, 1, count)
    return t, np.maximum(np.sin(math.pi * t), 0) ** 0.7


def scalloped(x: float, y: float, a: float, b: float, bumps: int, deep: float, start: float = 0.0) -> Points:
    """Return an ellipse with round bumps on it."""
    angle = np.arange(bumps * 10) * (2 * math.pi / (bumps * 10))
    far = 1 + deep * (np.abs(np.sin(angle * bumps / 2 + start)) - 0.6)
    return np.stack([x + a * far * np.cos(angle), y + b * far * np.sin(angle)], axis=1)
