"""Bootstrap intervals that resample people instead of photos, as photos of one person are alike."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
from jaxtyping import Float64, Int64

from dpveil.errors import InvalidParameter
from dpveil.noise.bits import SeededBits

Interval = tuple[float, float]
BLOCK: Final = 1 << 22
"""Most people of all draws of a block together."""


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
