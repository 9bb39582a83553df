"""What is seen of the eye in a picture: where its pupil is, and where it looks."""

from __future__ import annotations

from typing import Final

import numpy as np
from jaxtyping import UInt8

from dpveil.attacks.base import Memo
from dpveil.attacks.iris import Eye, eye

Image = UInt8[np.ndarray, "h w c"]
FOUND: Final[Memo[Eye | None]] = Memo()
BALL: Final = 2.0
"""Radius of an eyeball, in radii of its iris: 12 mm and 6 mm."""


def _both(photo: Image, release: Image) -> tuple[Eye | None, Eye | None]:
    """Return the eye in a photo, and that in its release if its pupil is within the photo's iris."""
    first, second = _eye(photo), _eye(release)
    if first is None or second is None or _away(first, second) > first.iris.radius:
        return first, None
    return first, second


def _eye(image: Image) -> Eye | None:
    return FOUND(image, "", lambda: eye(image))


def _away(one: Eye, other: Eye) -> float:
    return float(np.hypot(one.pupil.x - other.pupil.x, one.pupil.y - other.pupil.y))


def found(photo: Image, release: Image) -> float | None:
    """Return 1 if the pupil is found at its place, and 0 if not; None if the photo shows none."""
    first, second = _both(photo, release)
    return None if first is None else float(second is not None)


def apart(photo: Image, release: Image) -> float | None:
    """Return how far the middle of the pupil is away, in radii of the iris; None without two pupils."""
    first, second = _both(photo, release)
    return None if first is None or second is None else _away(first, second) / first.iris.radius


def gaze(photo: Image, release: Image) -> float | None:
    """Return by how many degrees the gaze differs, by the middles of the pupils on an eyeball of two radii of
    the iris; None without two pupils.
    """
    away = apart(photo, release)
    return None if away is None else float(np.degrees(np.arcsin(min(1.0, away / BALL))))
