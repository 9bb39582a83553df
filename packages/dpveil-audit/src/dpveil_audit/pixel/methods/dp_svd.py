"""The audit of `dp-svd`: length and direction of the noise on singular values, and wrong noises.

The noise on d values has density ∝ exp(-ε‖z‖): its length is a Gamma(d) variable, and its direction is
uniform and independent of it. A grey region of one pixel shows the noise itself, with a law in closed form.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

import numpy as np
from jaxtyping import Float64, Int64
from scipy import stats

from dpveil.mechanisms.pixel import DPSVD
from dpveil.mechanisms.pixel.dp_svd import leading_triples
from dpveil.noise.bits import BitSource
from dpveil.noise.gaussian import discrete_gaussian
from dpveil.noise.laplace import discrete_laplace
from dpveil.noise.spherical import spherical_laplace
from dpveil_audit.divergence import ProductLaw
from dpveil_audit.engine import BY_DRAWS, BY_LAW, Drawn, Level, Version
from dpveil_audit.pixel.case import Case, Image, Images, Method, Releases, method_audit, version

STEPS: Final = 1024  # steps of a singular value per grey level, independent of the method's own constant
LENGTHS: Final = 64  # bins of the length
SHARES: Final = 31  # bins of the first value's share of the length: an odd number, so that no edge is at 0
WIDE: Final = Fraction(2**40)

Noise = Int64[np.ndarray, "n d"]
Noises = Callable[[Fraction, int, int, int, BitSource], Noise]
"""A function of (scale, draws, singular values, channels, bits) that returns noise."""


@dataclass(frozen=True, kw_only=True)
class SpectrumSteps:
    """One way to carry out the method: intact, or a mutant with another noise."""

    noise: Noises = lambda scale, count, rank, channels, bits: np.array(
        [spherical_laplace(scale, rank * channels, bits) for _ in range(count)], np.int64
    )
    factor: int = 1

    def version(self, name: str, gates: tuple[str, ...] = BY_DRAWS) -> Version:
        return version(name, self.distribution, self.outcomes, gates=gates)

    def releases(self, method: DPSVD, image: Image, count: int, bits: BitSource) -> Releases:
        channels = image.shape[2]
        triples = [leading_triples(image[:, :, k], rank_of(method, image)) for k in range(channels)]
        exact = np.array([round(float(value) * STEPS) for own in triples for value in own[1]])
        noisy = (exact + self._draw_noise(method, image, count, bits)).reshape(count, channels, -1, 1) / STEPS
        planes = [u @ (noisy[:, k] * v) for k, (u, _, v) in enumerate(triples)]
        shown: Releases = np.rint(np.clip(np.stack(planes, axis=3), 0, 255)).astype(np.uint8)
        return shown

    def outcomes(
        self, method: DPSVD, image: Image, count: int, bits: BitSource
    ) -> Int64[np.ndarray, "n parts"]:
        """Return the bin of every draw's length, that of the first value's share, and other signs."""
        if image.size == 1:
            return self.releases(method, image, count, bits).reshape(count, 1).astype(np.int64)
        noise = self._draw_noise(method, image, count, bits).astype(np.float64)
        length = np.maximum(np.sqrt((noise**2).sum(axis=1)), 1)
        dimension = noise.shape[1]
        long = stats.gamma.cdf(length * float(method.epsilon) / STEPS, dimension) * LENGTHS
        parts = [np.minimum(long, LENGTHS - 1)]
        if dimension > 1:
            parts.append(np.minimum((noise[:, 0] / length + 1) / 2 * SHARES, SHARES - 1))
        return np.stack([*parts, *(noise[:, 1:] > 0).T], axis=1).astype(np.int64)

    def distribution(self, method: DPSVD, images: Images) -> ProductLaw:
        """Return the law of the level of one grey pixel, or for larger regions that of the draws."""
        if images.shape[1:] != (1, 1, 1):
            return distribution_of_noise(method, images)
        rows = [
            distribution_of_one_pixel(int(level), self.factor * float(method.epsilon))
            for level in images.ravel()
        ]
        return ProductLaw.of([np.stack(rows)])

    def _draw_noise(self, method: DPSVD, image: Image, count: int, bits: BitSource) -> Noise:
        return self.noise(STEPS / method.epsilon, count, rank_of(method, image), image.shape[2], bits)


def rank_of(method: Method, image: Image) -> int:
    kept: int = min(method.rank, *image.shape[:2])
    return kept


def distribution_of_one_pixel(level: int, epsilon: float) -> Float64[np.ndarray, " levels"]:
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


def distribution_of_noise(method: DPSVD, images: Images) -> ProductLaw:
    """Return the law of outcomes: uniform bins of the length, beta-distributed shares, fair signs.

    This is the continuous law; noise in steps of 1/1024 of a level is off by less than a part in 10⁴.
    """
    dimension = rank_of(method, images[0]) * images.shape[3]
    rows = [np.full(LENGTHS, 1 / LENGTHS)]
    if dimension > 1:
        half = (dimension - 1) / 2
        rows.append(np.diff(stats.beta.cdf(np.arange(SHARES + 1) / SHARES, half, half)))
    rows += [np.full(2, 0.5)] * (dimension - 1)
    return ProductLaw.of([np.tile(row, (len(images), 1)) for row in rows])


# Mutants


def _uniform_directions(lengths: Float64[np.ndarray, " n"], dimension: int, bits: BitSource) -> Noise:
    """Return points of these lengths in uniform directions, by a fast method that suffices for mutants."""
    points = discrete_gaussian(WIDE, len(lengths) * dimension, bits).reshape(-1, dimension).astype(np.float64)
    even: Noise = np.rint(points * (lengths / np.sqrt((points**2).sum(axis=1)))[:, None]).astype(np.int64)
    return even


def _lengths(scale: Fraction, count: int, shape: int, bits: BitSource) -> Float64[np.ndarray, " n"]:
    """Return Gamma(shape) lengths, as sums of exponential variables."""
    each = np.abs(discrete_laplace(scale, count * shape, bits)).reshape(count, shape)
    lengths: Float64[np.ndarray, " n"] = each.sum(axis=1).astype(np.float64)
    return lengths


def around(
    factor: Fraction = Fraction(1), *, dimension: int = 0, shared: bool = False, last: bool = True
) -> Noises:
    """Return noise in uniform directions of so many times the scale, with the length of a `dimension` (0: its
    own); one draw `shared` by all channels; or without that on the `last` value.
    """

    def noise(scale: Fraction, count: int, rank: int, channels: int, bits: BitSource) -> Noise:
        values = rank if shared else rank * channels
        drawn = _uniform_directions(_lengths(scale * factor, count, dimension or values, bits), values, bits)
        drawn = np.tile(drawn, (1, channels)) if shared else drawn
        drawn[:, -1] *= last
        return drawn

    return noise


def by_coordinate(scale: Fraction, count: int, rank: int, channels: int, bits: BitSource) -> Noise:
    """Add Laplace noise to every value, which would be a promise in L1."""
    return discrete_laplace(scale, count * rank * channels, bits).reshape(count, -1)


INTACT: Final = SpectrumSteps()
MUTANTS: Final = (
    SpectrumSteps(noise=around(dimension=1)).version("length of one dimension"),
    SpectrumSteps(noise=by_coordinate).version("Laplace noise on every value"),
    SpectrumSteps(noise=around(Fraction(1, 2)), factor=2).version("ε doubled", BY_LAW),
    SpectrumSteps(noise=around(shared=True)).version("one draw for all channels"),
    SpectrumSteps(noise=around(last=False)).version("last value without noise"),
)


def levels() -> dict[str, Level]:
    """Return the settings: `exact` uses one grey pixel, whose U and V are 1 at any level."""

    def case(h: int, w: int, c: int, epsilon: str, rank: int = 1) -> Case:
        return Case(h, w, c, DPSVD(epsilon=epsilon, rank=rank), (0, 1, 2, 3, 100, 200, 254, 255))

    exact = (case(1, 1, 1, "0.02"), case(1, 1, 1, "0.3"), case(1, 1, 1, "2"))
    drawn = (
        Drawn(case(1, 1, 3, "0.3"), 2000),
        Drawn(case(3, 2, 1, "0.05", 2), 2000),
        Drawn(case(2, 2, 1, "0.3", 2), 1000),
    )
    return Level(exact, drawn).levels((case(1, 1, 1, "0.001"), case(1, 1, 1, "10")))


AUDIT: Final = method_audit(
    DPSVD,
    INTACT.releases,
    INTACT.distribution,
    MUTANTS,
    levels(),
    outcomes=INTACT.outcomes,
    of=lambda level: level.exact,  # the law of larger images is that of their noise, which no image changes
)
