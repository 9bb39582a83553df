"""The audit of `dp-svd`: length and direction of the noise on singular values, and wrong noises.

The noise on d values has density ∝ exp(-ε‖z‖): its length is a Gamma(d) variable, and its direction is
uniform and independent of it. A grey region of one pixel shows the noise itself, with a law in closed form.
"""

from __future__ import annotations

import math
from functools import partial
from typing import Any, Final
from unittest import mock

import numpy as np
from jaxtyping import Float64
from scipy import stats

from dpveil.mechanisms.pixel import DPSVD, dp_svd
from dpveil.noise.bits import BitSource
from dpveil_audit.divergence import Outcomes, ProductLaw
from dpveil_audit.engine import BY_DRAWS, Drawn, Level
from dpveil_audit.pixel.case import Case, Image, Images, Method, method_audit, one_by_one, version

STEPS: Final = 1024  # steps of a singular value per grey level, independent of the method's own constant
LENGTHS: Final = 64  # bins of the length
SHARES: Final = 31  # bins of the first value's share of the length: an odd number, so that no edge is at 0


def outcomes(method: DPSVD, image: Image, count: int, bits: BitSource) -> Outcomes:
    """Return the bin of every draw's length, that of the first value's share, and other signs; or the level
    of one pixel.

    The noise is what the method gives to `rebuild` beyond the singular values.
    """
    if image.size == 1:
        return one_by_one(method, image, count, bits).reshape(count, 1).astype(np.int64)
    given = list[Any]()

    def keep(triples: Any, values: Any) -> Image:
        given.append(values)
        return image[..., 0]

    with mock.patch.object(dp_svd, "rebuild", keep):
        one_by_one(method, image, count, bits)
    exact = np.linalg.svd(image.transpose(2, 0, 1).astype(np.float64), compute_uv=False)
    noisy = np.array(given, np.float64).reshape(count, -1)
    noise = np.rint((noisy - exact[:, : rank_of(method, image)].ravel()) * STEPS)
    length = np.maximum(np.sqrt((noise**2).sum(axis=1)), 1)
    dimension = noise.shape[1]
    long = stats.gamma.cdf(length * float(method.epsilon) / STEPS, dimension) * LENGTHS
    parts = [np.minimum(long, LENGTHS - 1)]
    if dimension > 1:
        parts.append(np.minimum((noise[:, 0] / length + 1) / 2 * SHARES, SHARES - 1))
    return np.stack([*parts, *(noise[:, 1:] > 0).T], axis=1).astype(np.int64)


def rank_of(method: Method, image: Image) -> int:
    kept: int = min(method.rank, *image.shape[:2])
    return kept


def distribution(
    method: DPSVD, images: Images, *, factor: float = 1, shape: int = 0, last: float = 0.5
) -> ProductLaw:
    """Return the law of the level of one grey pixel, or of outcomes: bins of the length, shares, fair signs.

    This is the continuous law; noise in steps of 1/1024 of a level is off by less than a part in 10⁴. ε is
    multiplied by `factor`, the length is that in `shape` dimensions (0: its own), and the last sign is
    positive with probability `last`.
    """
    epsilon = factor * float(method.epsilon)
    if images.shape[1:] == (1, 1, 1):
        return ProductLaw.of([np.stack([one_pixel(level, epsilon) for level in images.ravel().tolist()])])
    dimension = rank_of(method, images[0]) * images.shape[3]
    ends = stats.gamma.ppf(np.arange(LENGTHS + 1) / LENGTHS, dimension)
    rows = [np.diff(stats.gamma.cdf(factor * ends, shape or dimension))]
    if dimension > 1:
        half = (dimension - 1) / 2
        rows.append(np.diff(stats.beta.cdf(np.arange(SHARES + 1) / SHARES, half, half)))
        rows += [np.full(2, 0.5)] * (dimension - 2) + [np.array([1 - last, last])]
    return ProductLaw.of([np.tile(row, (len(images), 1)) for row in rows])


def one_pixel(level: int, epsilon: float) -> Float64[np.ndarray, " levels"]:
    """Return the law of a 1 × 1 release: the level plus a rounded Laplace variable, clamped.

    Rounding is to steps of 1/1024; the law is the continuous density's integral over each step.
    """
    scale = STEPS / epsilon
    steps = np.arange(-1, 255 * STEPS + 2)
    away = np.abs(steps - level * STEPS)
    masses = np.where(away, np.exp(-away / scale) * math.sinh(0.5 / scale), -math.expm1(-0.5 / scale))
    masses[[0, -1]] = np.exp((0.5 - away[[0, -1]]) / scale) / 2  # all that lies beyond
    levels = np.rint(np.clip(steps / STEPS, 0, 255)).astype(int)
    return np.bincount(levels, masses, minlength=256)


MUTANTS: Final = (
    version("length of one dimension", partial(distribution, shape=1), gates=BY_DRAWS),
    version("ε doubled", partial(distribution, factor=2)),
    version("one draw for all channels", distribution, gates=BY_DRAWS, shared=True),
    version("last value without noise", partial(distribution, last=0), gates=BY_DRAWS),
)


def level() -> Level:
    """Return the settings: `exact` uses one grey pixel, whose U and V are 1 at any level."""

    def case(h: int, w: int, c: int, epsilon: str, rank: int = 1) -> Case:
        return Case(h, w, c, DPSVD(epsilon=epsilon, rank=rank), (0, 1, 2, 3, 100, 200, 254, 255))

    exact = (case(1, 1, 1, "0.02"), case(1, 1, 1, "0.3"), case(1, 1, 1, "2"))
    drawn = (
        Drawn(case(1, 1, 3, "0.3"), 1000),
        Drawn(case(3, 2, 1, "0.05", 2), 1000),
        Drawn(case(2, 2, 1, "0.3", 2), 1000),
    )
    return Level(exact, drawn)


AUDIT: Final = method_audit(
    DPSVD,
    outcomes,
    distribution,
    MUTANTS,
    level(),
    of=lambda level: level.exact,  # the law of larger images is that of their noise, which no image changes
)
