"""Where pupil and iris are: Daugman's integro-differential operator."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import cv2
import numpy as np

from dpveil.core.arrays import Float64, Int64, UInt8

SMALLEST: Final = 32
"""Least rows and columns of a picture."""
COARSE: Final = 100
"""Rows to which a picture is reduced for the first search."""
PUPILS: Final = (0.06, 0.22)
"""Radii of pupils, in the shorter side of the picture."""
IRISES: Final = (1.7, 4.2)
"""Radii of irises, in radii of the pupil."""
LARGEST: Final = 0.45
"""Largest radius of an iris, in the shorter side of the picture."""
MOVED: Final = 0.3
"""How far the middle of the iris may be from that of the pupil, in radii of the pupil."""
ANGLES: Final = 64
SIDES: Final = 35.0
"""Degrees from the horizontal within which the edge of an iris is looked for: lids cover the rest."""
EDGE: Final = 6.0
"""Least step of the mean level, in grey levels, at the edge of a pupil."""
BLUR: Final = 2.0
"""Standard deviation of the blur before the search, in pixels of the coarse picture."""

Grey = Float64[np.ndarray, "h w"]


@dataclass(frozen=True)
class Circle:
    """A circle in pixels of the picture."""

    x: float
    y: float
    radius: float


@dataclass(frozen=True)
class Eye:
    """The circles of an eye."""

    pupil: Circle
    iris: Circle


def eye(image: UInt8[np.ndarray, "h w c"]) -> Eye | None:
    """Return where pupil and iris are in a picture of an eye, or None if no edge of a pupil is found.

    The pupil is the circle across whose edge the mean level grows most, and whose inside is dark; the iris
    is that around it, by its edge beside the lids. The search is coarse first, and then in full.
    Source: Daugman 1993, equation 1; Daugman 2004, equation 2.
    """
    if min(image.shape[:2]) < SMALLEST:
        return None
    grey = np.asarray(image, np.float64).mean(axis=2)
    scale = max(1.0, min(grey.shape) / COARSE)
    small = _reduced(grey, scale)
    found = _pupil(small)
    if found is None:
        return None
    blurred = cv2.GaussianBlur(grey, (0, 0), max(0.8, BLUR * scale / 2))
    pupil = _finer(blurred, found, scale, np.arange(ANGLES) * (360 / ANGLES))
    sides = np.concatenate(
        [np.linspace(-SIDES, SIDES, ANGLES // 2), 180 + np.linspace(-SIDES, SIDES, ANGLES // 2)]
    )
    coarse = _iris(small, found, sides)
    return None if coarse is None else Eye(pupil, _finer(blurred, coarse, scale, sides))


def _reduced(grey: Grey, scale: float) -> Grey:
    size = round(grey.shape[1] / scale), round(grey.shape[0] / scale)
    small = cv2.resize(grey, size, interpolation=cv2.INTER_AREA)
    return np.asarray(cv2.GaussianBlur(small, (0, 0), BLUR), np.float64)


def _pupil(grey: Grey) -> Circle | None:
    """Return the pupil in a coarse picture."""
    short = min(grey.shape)
    radii = np.arange(max(3, round(PUPILS[0] * short)), round(PUPILS[1] * short) + 3, dtype=np.float64)
    rows, columns = np.mgrid[: grey.shape[0] : 2, : grey.shape[1] : 2]
    margin = radii[0] + 1
    inside = (rows > margin) & (rows < grey.shape[0] - margin) & (columns > margin)
    inside &= columns < grey.shape[1] - margin
    dark = grey[rows, columns] <= np.quantile(grey, 0.25)
    centres = np.stack([columns[inside & dark], rows[inside & dark]], axis=1).astype(np.float64)
    if not len(centres):
        return None
    means = _means(grey, centres, radii, np.arange(ANGLES) * (360 / ANGLES))
    steps = means[:, 2:] - means[:, :-2]
    inner = np.cumsum(means, axis=1)[:, :-2] / np.arange(1, len(radii) - 1)
    score = steps - 0.5 * np.maximum(0, inner - inner.min())
    best, radius = np.unravel_index(score.argmax(), score.shape)
    if steps[best, radius] < EDGE:
        return None
    return _circle(centres[best], radii[radius + 1])


def _iris(grey: Grey, pupil: Circle, angles: Float64[np.ndarray, " a"]) -> Circle | None:
    """Return the iris around a pupil in a coarse picture."""
    most = min(IRISES[1] * pupil.radius, LARGEST * min(grey.shape)) + 3
    radii = np.arange(round(IRISES[0] * pupil.radius), most)
    if len(radii) < 4:
        return None
    reach = np.arange(-round(MOVED * pupil.radius), round(MOVED * pupil.radius) + 1)
    across, down = np.meshgrid(reach, reach)
    centres = np.stack([pupil.x + across.ravel(), pupil.y + down.ravel()], axis=1)
    means = _means(grey, centres, radii, angles)
    steps = means[:, 2:] - means[:, :-2]
    best, radius = np.unravel_index(steps.argmax(), steps.shape)
    return _circle(centres[best], radii[radius + 1])


def _circle(centre: Float64[np.ndarray, " 2"], radius: float) -> Circle:
    return Circle(float(centre[0]), float(centre[1]), float(radius))


def _finer(grey: Grey, found: Circle, scale: float, angles: Float64[np.ndarray, " a"]) -> Circle:
    """Return the circle near a coarse one, in a picture that is `scale` times as large."""
    x, y = (found.x + 0.5) * scale - 0.5, (found.y + 0.5) * scale - 0.5
    reach, radius = np.arange(-round(2 * scale), round(2 * scale) + 1), found.radius * scale
    across, down = np.meshgrid(reach, reach)
    centres = np.stack([x + across.ravel(), y + down.ravel()], axis=1)
    radii = np.arange(max(2.0, radius - 2 * scale - 1), radius + 2 * scale + 2)
    means = _means(grey, centres, radii, angles)
    steps = means[:, 2:] - means[:, :-2]
    best, place = np.unravel_index(steps.argmax(), steps.shape)
    return _circle(centres[best], radii[place + 1])


def _means(
    grey: Grey,
    centres: Float64[np.ndarray, "n 2"],
    radii: Float64[np.ndarray, " r"],
    angles: Float64[np.ndarray, " a"],
) -> Float64[np.ndarray, "n r"]:
    """Return the mean levels along circles; outside of the picture its edge goes on."""
    turn = np.radians(angles)
    out = np.empty((len(centres), len(radii)))
    for place, radius in enumerate(radii):
        columns = _places(centres[:, :1] + radius * np.cos(turn), grey.shape[1])
        rows = _places(centres[:, 1:] + radius * np.sin(turn), grey.shape[0])
        out[:, place] = grey[rows, columns].mean(axis=1)
    return out


def _places(at: Float64[np.ndarray, "n a"], size: int) -> Int64[np.ndarray, "n a"]:
    return np.asarray(np.rint(at).astype(np.int64).clip(0, size - 1))
