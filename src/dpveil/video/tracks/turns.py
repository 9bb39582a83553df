"""Roll and yaw of heads in frames, by landmarks that are sure."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import lru_cache
from typing import Final

import numpy as np
from jaxtyping import Float, UInt8

from dpveil.core.region import Box
from dpveil.errors import RegionError, UsageError
from dpveil.faces.geometry.align import Frame, of_points
from dpveil.faces.geometry.landmarks import Predictor, predictor
from dpveil.faces.geometry.place import check
from dpveil.faces.geometry.pose import pose_of

LEAST: Final = 40
"""Height in pixels of faces in which landmarks are looked for."""


def turn_of(
    image: UInt8[np.ndarray, "h w 3"], box: Float[np.ndarray, " 4"], roll: float | None = None
) -> tuple[float, float] | None:
    """Return roll and yaw in degrees of the face in a box (left, top, right, bottom), as in `Key`.

    It is looked for with a `roll` in degrees where one is expected, and upright. None if landmarks are not
    installed or not sure, and for small faces.
    """
    asked = _installed()
    left, top, right, bottom = (round(float(value)) for value in box)
    if asked is None or bottom - top < LEAST or right <= left:
        return None
    there = Box(left, top, right - left, bottom - top)
    for angle in (0.0,) if roll is None else (-math.radians(roll), 0.0):
        try:
            found = check(asked.near(image, there, angle))
            own = of_points(found.points, Frame().points())
            yaw = pose_of(replace(found, points=own.to(found.points))).yaw
        except RegionError:
            continue
        return math.degrees(-own.angle), math.degrees(yaw)
    return None


@lru_cache(maxsize=1)
def _installed() -> Predictor | None:
    """Return the predictor of landmarks; None without it."""
    try:
        return predictor()
    except UsageError:
        return None
