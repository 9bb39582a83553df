"""A harmonic membrane: how a released face is corrected to the light at the rim of its region.

Pixels at the rim count by how likely they are to be skin. Sources: Pérez, Gangnet & Blake 2003 (Poisson image
editing), Welsch's robust weights.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from dpveil.core.array_types import Bool, Float32, Float64
from dpveil.opencv import cv2

MAY_BE_SKIN: Final = ((5.0, 85.0), (4.5, 48.0), (22.0, 96.0))
"""Hue in degrees, chroma and lightness in CIE Lab of what may be skin in any light, least and largest."""
FEW: Final = 0.03  # least share of the rim that may be skin; with less, nothing of it counts
TYPICAL: Final = ((58.0, 13.0, 17.0), 26.0, 14.0)
"""CIE Lab of skin in photos, and standard deviations of L* and of a* and b* by which one photo's differs."""
LIKE_CENTRE: Final = (14.0, 7.0)
"""The same standard deviations around the centre of the skin, while it is looked for."""
WIDER: Final = 1.6  # factor by which these are larger for the weights
SAMPLES: Final = 1000  # approximate number of colours among which the centre is looked for
ROUNDS: Final = 12  # steps to find the centre
STIFF: Final = (20.0, 10.0)
"""How firmly the correction and the share of skin are held at the rim, relative to a step to a neighbour."""
SLACK: Final = 1e-4  # how firmly every pixel is held at the mean correction
MOST_RIM_DEVIATION: Final = 0.6  # largest deviation of light at the rim from that of the face, as a logarithm
DARK: Final = 12.0
"""Levels that are added before logarithms are taken, so that noise in shadows is no difference in light."""
TINT: Final = 0.15
"""Largest deviation of one channel's correction from that of all, as a logarithm: wood and a red shirt are no
skin."""
Rim = Float32[np.ndarray, "n 3"]
Mask = Bool[np.ndarray, "h w"]
Weights = Float64[np.ndarray, " n"]
Levels = Float32[np.ndarray, "h w 3"]
Colours = Float64[np.ndarray, "n 3"]
Plane = Float32[np.ndarray, "h w"]


def skin_centre(lab: Colours, sure: Weights, *, grey: bool) -> tuple[Float64[np.ndarray, " 3"], Weights]:
    """Return the CIE Lab of skin among colours, a robust centre (Welsch), and how like skin each colour is.

    `sure` says how likely each is to be skin by its place; in a `grey` photo only lightness counts.
    """
    like = _like_skin(lab, grey)
    weight = like * sure
    counts = np.flatnonzero(weight)
    if not len(counts):
        return np.array(TYPICAL[0]), like
    counts = counts[:: max(1, len(counts) // SAMPLES)]
    lab, weight = lab[counts], weight[counts]
    scale = np.array([LIKE_CENTRE[0], LIKE_CENTRE[1], LIKE_CENTRE[1]])
    lab = lab / scale
    centre, half = np.array([_median(part, weight) for part in lab.T]), 0.5 * (lab * lab).sum(axis=1)
    for _ in range(ROUNDS):
        near = weight * np.maximum(np.exp(lab @ centre - half - 0.5 * centre @ centre), 1e-9)
        centre = near @ lab / near.sum()
    return centre * scale, like


def skin_weights(rim: Rim, sure: Weights, *, grey: bool) -> Weights:
    """Return the weight of each pixel at a rim, 0 to 1: how near its colour is to the centre of its skin.

    `rim` are sRGB levels, and `sure` says how likely each pixel is to be skin by its place.
    """
    lab = lab_of(rim)
    centre, like = skin_centre(lab, sure, grey=grey)
    if not (like > 0).sum() > FEW * len(rim):
        return np.zeros(len(rim))
    own = float(_like_skin(centre[None], grey)[0])  # pale and dark people have skin, too
    return np.asarray(np.minimum(like / max(own, 1e-6), 1) * near_skin(lab, centre))


def near_skin(lab: Colours, centre: np.ndarray) -> Weights:
    """Return how near colours are to the centre of one person's skin, 0 to 1."""
    return np.asarray(_near(lab, centre, *(WIDER * part for part in LIKE_CENTRE)))


def rim_gain(
    inside: Mask, rim: Mask, face: Levels, outside: Levels, weights: Weights
) -> Float64[np.ndarray, "h w 3"]:
    """Return the smoothest logarithm of a gain with which a face meets the skin `outside` at the rim."""
    ratio = np.log((outside[rim] + DARK) / (face[rim] + DARK)).astype(np.float64)
    ratio = np.clip(ratio, -MOST_RIM_DEVIATION, MOST_RIM_DEVIATION)
    all_channels = ratio.mean(axis=1, keepdims=True)
    ratio = all_channels + np.clip(ratio - all_channels, -TINT, TINT)
    return np.asarray(_harmonic(inside | rim, rim, STIFF[0] * weights[None], ratio, np.array([SLACK]))[0])


def continue_skin(
    inside: Mask, rim: Mask, shown: Mask, face: Levels, outside: Levels, weights: Weights, band: float
) -> tuple[Levels, Plane]:
    """Return a face whose skin goes on from that at the `rim` of its region, and the share of skin, 0 to 1.

    Farther than `band` pixels `inside`, levels are the face's. Nearer, they are the smoothest between these
    and those `outside` at the rim, as far as its pixels count by `weights`. All levels are 0 to 255.
    """
    both = inside | rim
    depth = cv2.distanceTransform(inside.astype(np.uint8), cv2.DIST_L2, 5)
    deep = depth > min(band, 0.5 * float(depth.max()))
    core = deep & shown if (deep & shown).any() else deep
    light = np.log(face.astype(np.float64) + DARK)
    middle = light[core].mean(axis=0)
    wanted = np.where(core[..., None], light, np.log(outside.astype(np.float64) + DARK)) - middle
    wanted = np.clip(wanted, -MOST_RIM_DEVIATION, MOST_RIM_DEVIATION)
    wanted[core] = light[core] - middle
    skin = np.zeros(inside.shape)
    skin[rim] = weights
    fixed = core | rim
    held = np.stack([np.where(core, 50.0, STIFF[0] * skin)[fixed], np.where(core, 0.0, STIFF[1])[fixed]])
    values = np.concatenate([wanted[fixed], skin[fixed][:, None]], axis=1)
    found = _harmonic(both, fixed, held, values, np.array([SLACK, 1e-9]))
    levels = np.where(both[..., None], np.exp(found[0, ..., :3] + middle) - DARK, face)
    return levels.astype(np.float32), np.clip(found[1, ..., 3], 0, 1).astype(np.float32)


def _harmonic(
    both: Mask,
    rim: Mask,
    held: Float64[np.ndarray, "k n"],
    values: Float64[np.ndarray, "n c"],
    slack: Float64[np.ndarray, " k"],
) -> Float64[np.ndarray, "k h w c"]:
    """Return the smoothest values of the pixels in `both`, held at those of the rim, once for each of k ways
    to hold them; 0 elsewhere.

    The matrix is block tridiagonal, by rows. SciPy is as fast, but takes 0.3 s to load, a quarter of a run.
    """
    down = (both[:-1] & both[1:]).astype(np.float64)
    right = (both[:, :-1] & both[:, 1:]).astype(np.float64)
    own = np.zeros((len(slack), *both.shape))
    own[:, rim] = held
    wanted = np.zeros((*own.shape, values.shape[1]))
    wanted[:, rim] = held[..., None] * values
    own = np.where(both, own + slack[:, None, None], 1.0)
    own[:, :-1] += down
    own[:, 1:] += down
    own[..., :-1] += right
    own[..., 1:] += right
    solved = list[tuple[int, int, int, np.ndarray]]()
    for row in np.flatnonzero(both.any(axis=1)).tolist():
        columns = np.flatnonzero(both[row]).tolist()
        start, end = columns[0], columns[-1] + 1
        block, at = np.zeros((len(slack), end - start, end - start)), np.arange(end - start)
        block[:, at, at] = own[:, row, start:end]
        block[:, at[1:], at[:-1]] = block[:, at[:-1], at[1:]] = -right[row, start : end - 1]
        if solved and (shared := down[row - 1, start:end]).any():
            _, first, last, inverse = solved[-1]
            low, high = max(start, first), min(end, last)
            here, there = slice(low - start, high - start), slice(low - first, high - first)
            shared = shared[here]
            block[:, here, here] -= shared[:, None] * inverse[:, there, there] * shared
            wanted[:, row, low:high] += shared[:, None] * (inverse[:, there] @ wanted[:, row - 1, first:last])
        solved.append((row, start, end, np.linalg.inv(block)))
    for row, start, end, inverse in reversed(solved):
        if row + 1 < len(both):
            wanted[:, row] += down[row, :, None] * wanted[:, row + 1]
        wanted[:, row, start:end] = inverse @ wanted[:, row, start:end]
    return wanted


def may_be_skin(lab: Colours, *, grey: bool = False) -> Bool[np.ndarray, " n"]:
    """Return which colours may be those of skin; in a `grey` photo, by their lightness alone."""
    light, a, b = lab.T
    hue, chroma, lightness = MAY_BE_SKIN
    fits = (light >= lightness[0]) & (light <= lightness[1])
    if not grey:
        square, (low, high) = a * a + b * b, np.tan(np.radians(hue))  # of acute angles
        fits &= (a > 0) & (b >= low * a) & (b <= high * a)
        fits &= (square >= chroma[0] ** 2) & (square <= chroma[1] ** 2)
    return np.asarray(fits)


def _like_skin(lab: Colours, grey: bool) -> Weights:
    """Return how like the skin in photos colours are, 0 to 1."""
    typical, light, colour = TYPICAL
    near = _near(lab, typical, light, np.inf if grey else colour)
    return np.asarray(may_be_skin(lab, grey=grey) * np.maximum(near, 1e-6))


def _near(lab: Colours, centre: np.ndarray | tuple[float, ...], light: float, colour: float) -> np.ndarray:
    away = (lab - centre) / (light, colour, colour)
    return np.asarray(np.exp(-0.5 * np.einsum("ij,ij->i", away, away)))


def _median(values: np.ndarray, weights: np.ndarray) -> float:
    order = np.argsort(values, kind="stable")
    upto = np.cumsum(weights[order])
    return float(values[order][np.searchsorted(upto, upto[-1] / 2)])


def lab_of(levels: np.ndarray) -> Colours:
    """Return the CIE Lab of sRGB levels, 0 to 255."""
    if not len(levels):  # OpenCV refuses empty arrays
        return np.zeros((0, 3))
    row = np.clip(levels, 0, 255)[None].astype(np.float32) / np.float32(255)
    return np.asarray(cv2.cvtColor(row, cv2.COLOR_RGB2LAB)[0], np.float64)


def levels_of(lab: Float64[np.ndarray, " 3"]) -> Float64[np.ndarray, " 3"]:
    """Return the sRGB levels, 0 to 255, of a CIE Lab."""
    levels = cv2.cvtColor(lab[None, None].astype(np.float32), cv2.COLOR_LAB2RGB)
    return np.asarray(levels[0, 0], np.float64) * 255
