"""The audit of `dp-samp`: joint law of noisy counts and shown pixels, and versions that show too much.

All settings have 256 clusters, one for every intensity: clusters follow from the noisy counts and cost
nothing. Then the probability that a pixel of an intensity counted c times is shown follows from c and from
the sum of all 256 noisy counts, and the joint law is exact.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache, partial
from itertools import product
from typing import Any, Final
from unittest import mock

import numpy as np
from jaxtyping import Float64, Int64

from dpveil.mechanisms.pixel import DPSamp, dp_samp
from dpveil.mechanisms.pixel.dp_samp import intensities
from dpveil.noise.bits import BitSource
from dpveil_audit.distributions import laplace_distribution
from dpveil_audit.divergence import Outcomes, ProductLaw
from dpveil_audit.engine import Drawn, Level
from dpveil_audit.pixel.case import Case, Image, Images, method_audit, version

LEVELS: Final = 256
WORD: Final = 2**64
NEVER: Final = 1e-18  # sums of counts with a smaller probability are left out

Chance = Callable[[DPSamp, int, int, int], float]
"""The probability that a pixel is shown, as a function of (method, count of its intensity, sum of counts,
pixels).
"""


@lru_cache(maxsize=100_000)
def as_released(method: DPSamp, count: int, total: int, pixels: int) -> float:
    """Return the method's own probability, for counts with this sum."""
    others, left = divmod(total - count, pixels)
    counts = [count, *[pixels] * others, *([left] if left else [])]
    return int(method.thresholds(np.array(counts), pixels)[0]) / WORD


def as_written(method: DPSamp, count: int, total: int, pixels: int) -> float:
    """Return the probability by equations 3 and 4, trying every number of pixels, and the rate."""
    m = pixels if method.neighbourhood is None else min(method.neighbourhood, pixels)
    if count <= m or method.rate is None:
        return 0.0
    grown = math.exp(float(method.epsilon) * count / total)
    allowed = [x for x in range(count - m + 1) if math.comb(count, x) <= grown * math.comb(count - m, x)]
    return min(max(allowed) / count, float(method.rate))


def clipped_laplace(scale: Fraction, count: int, top: int) -> Float64[np.ndarray, " counts"]:
    """Return the probabilities of 0..top for `count` with discrete Laplace noise of this scale, clipped."""
    below = laplace_distribution(scale).cdf(np.arange(top) - count)
    return np.diff(below, prepend=0, append=1)


@lru_cache(maxsize=64)
def sums_of_others(scale: Fraction, others: int, top: int) -> list[tuple[int, float]]:
    """Return the law of the sum of the clipped counts of `others` intensities that no pixel has."""
    one, distribution = clipped_laplace(scale, 0, top), np.ones(1)
    for _ in range(others):
        distribution = np.convolve(distribution, one)
    return [(total, float(p)) for total, p in enumerate(distribution) if p > NEVER]


def joint_distribution(
    method: DPSamp, images: Images, scale: Fraction, chance: Chance, private: bool
) -> ProductLaw:
    """Return the joint law of the images' noisy counts and of which pixels are shown.

    Counts have noise of `scale` and are clipped; sample sizes follow from them, or, `private`, from the true
    ones.
    """
    pixels, colours, at = _pixels(images)
    bins, of_colour = np.unique(intensities(colours[None]), return_inverse=True)
    of_pixel = of_colour.ravel()[at]
    grid = np.array(list(product(range(pixels + 1), repeat=len(bins))))
    others = [(0, 1.0)] if private else sums_of_others(scale, LEVELS - len(bins), pixels)
    weights = np.array([p for _, p in others])
    sizes = grid.sum(axis=1)[:, None] + np.array([total for total, _ in others])
    known = {
        (c, t): chance(method, c, t, pixels) for c in range(1, pixels + 1) for t in np.unique(sizes) if t >= c
    }
    rows = []
    for own, codes in zip(of_pixel, at + 1, strict=True):
        true = np.bincount(own, minlength=len(bins))
        noise = [clipped_laplace(scale, int(c), pixels) for c in true]
        counted = np.prod(
            [distribution[seen] for distribution, seen in zip(noise, grid.T, strict=True)], axis=0
        )
        read = np.broadcast_to(true, grid.shape) if private else grid
        total = np.full(sizes.shape, pixels) if private else sizes
        given = np.stack([_table(known, read[:, j], total) for j in range(len(bins))])[own]
        row = np.zeros((len(grid), (len(colours) + 1) ** pixels))
        for mask in product((0, 1), repeat=pixels):
            shown = np.array(mask, bool)[:, None, None]
            place = _code(codes * np.array(mask), len(colours))
            row[:, place] = counted * (np.where(shown, given, 1 - given).prod(axis=0) @ weights)
        rows.append(row.ravel())
    return ProductLaw.of([np.stack(rows)])


def _pixels(images: Images) -> tuple[int, Image, Int64[np.ndarray, "images pixels"]]:
    """Return the number of pixels, all their colours, and the colour index of each."""
    count, height, width, channels = images.shape
    colours, at = np.unique(images.reshape(-1, channels), axis=0, return_inverse=True)
    return height * width, colours, at.reshape(count, -1)


def _table(
    known: dict[tuple[int, int], float],
    counts: Int64[np.ndarray, " grid"],
    totals: Int64[np.ndarray, "grid r"],
) -> Float64[np.ndarray, "grid r"]:
    both = zip(np.repeat(counts, totals.shape[1]).tolist(), totals.ravel().tolist(), strict=True)
    return np.array([known.get(key, 0.0) for key in both]).reshape(totals.shape)


def _code(digits: Int64[np.ndarray, "... pixels"], colours: int) -> Int64[np.ndarray, ...]:
    """Return the shown pixels as one number: a digit for each pixel, 0 for hidden."""
    return digits @ (colours + 1) ** np.arange(digits.shape[-1])[::-1]


def right(method: DPSamp, images: Images) -> ProductLaw:
    """Return the law from the definition: noise of scale 2m/ε, and sizes by equations 3 and 4."""
    pixels = images.shape[1] * images.shape[2]
    m = min(method.neighbourhood or pixels, pixels)
    return joint_distribution(method, images, 2 * m / method.epsilon, as_written, False)


def distribution(
    method: DPSamp,
    images: Images,
    *,
    share: Fraction = Fraction(1),
    used: Callable[[DPSamp], DPSamp] = lambda method: method,
    private: bool = False,
) -> ProductLaw:
    """Return the law with the method's own thresholds and a `share` of its noise.

    Sample sizes are those of the method `used`, and follow from the true counts if they are `private`.
    """
    scale = share * method.count_scale(images.shape[1] * images.shape[2])
    return joint_distribution(used(method), images, scale, as_released, private)


def outcomes(method: DPSamp, image: Image, count: int, bits: BitSource) -> Outcomes:
    """Return the noisy counts and the shown pixels of releases, as numbers."""
    pixels, colours, at = _pixels(image[None])
    bins = np.unique(intensities(colours[None]))
    noisy, shown = list[Any](), list[Any]()
    thresholds, draw = DPSamp.thresholds, dp_samp.draw_pixels

    def keep_counts(own: DPSamp, counts: Any, pixels: int) -> Any:
        noisy.append(counts)
        return thresholds(own, counts, pixels)

    def keep_shown(*given: Any) -> Any:
        shown.append(draw(*given))
        return shown[-1]

    with (
        mock.patch.object(DPSamp, "thresholds", keep_counts),
        mock.patch.object(dp_samp, "draw_pixels", keep_shown),
    ):
        for _ in range(count):
            method.release(image, bits=bits)
    counted = np.clip(np.array(noisy)[:, bins], 0, pixels) @ (pixels + 1) ** np.arange(len(bins))[::-1]
    kept = np.array(shown).reshape(count, pixels) * (at[0] + 1)
    found = counted * (len(colours) + 1) ** pixels + _code(kept, len(colours))
    return np.asarray(found[:, None].astype(np.int64))


WRONG: Final[dict[str, dict[str, Any]]] = {
    "sensitivity halved": {"share": Fraction(1, 2)},
    "rate ignored": {"used": lambda method: replace(method, rate="0.999999")},
    "sample sizes from true counts": {"private": True},
}
MUTANTS: Final = tuple(
    version(name, partial(distribution, **changed), gates=("exact",)) for name, changed in WRONG.items()
)


def level() -> Level:
    """Return the settings of the promise with private clusters; as published there is none (erratum E5)."""

    def sound_case(h: int, w: int, c: int, m: int | None, e: int, rate: str, *levels: int) -> Case:
        method = DPSamp(epsilon=e, clusters=LEVELS, neighbourhood=m, private_clusters=True, rate=rate)
        return Case(h, w, c, method, levels or (0, 255))

    exact = (
        sound_case(1, 2, 1, 1, 7, "0.25"),
        sound_case(1, 3, 1, 1, 8, "0.3"),
        sound_case(1, 2, 1, 1, 7, "0.1", 0, 1, 255),
        sound_case(2, 2, 1, 2, 20, "0.05"),
    )
    drawn = (
        Drawn(sound_case(1, 2, 1, 1, 7, "0.25"), 1500),
        Drawn(sound_case(1, 2, 3, 1, 7, "0.4"), 1500),
        Drawn(sound_case(1, 2, 1, 1, 2, "0.1"), 1500),
    )
    return Level(exact, drawn)


AUDIT: Final = method_audit(
    DPSamp,
    outcomes,
    distribution,
    MUTANTS,
    level(),
    right=right,
    of=lambda level: level.exact,  # joint laws of larger images take long
)
