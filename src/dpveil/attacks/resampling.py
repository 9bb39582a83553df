"""Bootstrap intervals that resample people instead of photos, as photos of one person are alike."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import cv2
import numpy as np

from dpveil.attacks.base import Background, View
from dpveil.core.arrays import Float64, Int64, UInt8
from dpveil.core.region import Box
from dpveil.errors import InvalidParameter
from dpveil.noise.bits import SeededBits

OUTSIDE: Final = 127  # level of what lies around a region within its box
TOP: Final = 255.0


def largest_box(view: View) -> Box | None:
    """Return the box of the largest region, by its pixels; None if nothing is hidden."""
    _, _, stats, _ = cv2.connectedComponentsWithStats(view.hidden.astype(np.uint8), connectivity=8)
    if len(stats) < 2:  # the first is the background
        return None
    x, y, w, h, _ = (int(one) for one in stats[1 + stats[1:, cv2.CC_STAT_AREA].argmax()])
    return Box(x, y, w, h)


def patch(view: View) -> UInt8[np.ndarray, "h w c"]:
    """Return the largest region, grey where its box holds pixels that were not replaced.

    The whole photo if nothing was.
    """
    box = largest_box(view)
    if box is None:
        return view.image
    inner = view.hidden[box.slices]
    return np.where(inner[..., None], view.image[box.slices], np.uint8(OUTSIDE))


def has_colour(background: Background) -> bool:
    """Whether some of the attacker's photos or releases have three channels: then it looks at colours."""
    return any(view.image.shape[2] == 3 for view in (*background.clean, *background.released))


def small(
    views: Sequence[View], side: tuple[int, int], *, colour: bool = False
) -> Float64[np.ndarray, "n h w c"]:
    """Return patches with `side` columns and rows, 0 to 1, of one channel or, with `colour`, three."""
    out = np.empty((len(views), side[1], side[0], 3 if colour else 1))
    for row, view in enumerate(views):
        seen = patch(view).astype(np.float32)
        seen = np.broadcast_to(seen, (*seen.shape[:2], 3)) if colour else seen.mean(axis=2, keepdims=True)
        resized = cv2.resize(np.ascontiguousarray(seen), side, interpolation=_way(seen, side))
        out[row] = resized.reshape(out.shape[1:]) / TOP
    return out


def _way(seen: np.ndarray, side: tuple[int, int]) -> int:
    smaller = side[0] * side[1] <= seen.shape[0] * seen.shape[1]
    return cv2.INTER_AREA if smaller else cv2.INTER_LINEAR


Interval = tuple[float, float]
BLOCK: Final = 1 << 22  # most people of all draws of a block together


def drawn_people(count: int, draws: int, seed: int) -> Int64[np.ndarray, "draws people"]:
    """Return the multiplicity of each of `count` people in each bootstrap draw of `count` of them."""
    return _times(SeededBits(seed, "bootstrap"), count, draws)


def _times(bits: SeededBits, count: int, draws: int) -> Int64[np.ndarray, "draws people"]:
    words = bits.words(draws * count).reshape(draws, count)
    picks = (words % np.uint64(count)).astype(np.int64) + count * np.arange(draws)[:, None]
    return np.bincount(picks.ravel(), minlength=draws * count).reshape(draws, count)


def by_person(
    values: Float64[np.ndarray, " n"], people: Sequence[str], *, draws: int, level: float, seed: int
) -> Interval:
    """Return a percentile bootstrap interval of the mean of `values` (0 to 1) that resamples people.

    For a mean of exactly 0 or 1, the inner end is Clopper and Pearson's for as many trials as people. Raises
    `InvalidParameter` for a `level` outside (0, 1).
    """
    means = mean_of_draws(values[None], people, draws=draws, seed=seed)[:, 0]
    return ends(means, float(values.mean()), len(set(people)), level)


def mean_of_draws(
    values: Float64[np.ndarray, "k n"], people: Sequence[str] | Sequence[int], *, draws: int, seed: int
) -> Float64[np.ndarray, "draws k"]:
    """Return the means of rows of values, each of n photos of these people, in draws of as many people.

    Draws are made in blocks, so that memory stays bounded.
    """
    names, person = np.unique(np.asarray(people), return_inverse=True)
    count = len(names)
    sums = np.array([np.bincount(person, weights=row, minlength=count) for row in values])
    photos, bits = np.bincount(person, minlength=count), SeededBits(seed, "bootstrap")
    out, step = [], max(1, BLOCK // count)
    for first in range(0, draws, step):
        times = _times(bits, count, min(step, draws - first))
        out.append(times @ sums.T / (times @ photos)[:, None])
    return np.concatenate(out)


def ends(means: Float64[np.ndarray, " draws"], mean: float, people: int, level: float) -> Interval:
    """Return the quantiles of the draws' means, or the exact interval if `mean` is 0 or 1; both hold it."""
    if not 0 < level < 1:
        raise InvalidParameter("level", level, "is not between 0 and 1", hint="such as 0.95")
    tail = (1 - level) / 2
    inner = 1 - tail ** (1 / people)
    if mean <= 0:
        return 0.0, inner
    if mean >= 1:
        return 1 - inner, 1.0
    low, high = np.quantile(means, [tail, 1 - tail])
    return min(float(low), mean), max(float(high), mean)
