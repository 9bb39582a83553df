"""Exact noise on spheres, rounded to integers: a length and a direction, or a direction near another one.

Every number is computed in interval arithmetic from uniform numbers of which only the leading bits are known;
more bits are taken until every decision and every rounding is certain. So the result is the exact rounding of
the continuous law, and the time depends on the random bits alone.

*Spherical Laplace*, of density ∝ exp(-‖y‖₂/scale): in i dimensions the length of y is a Gamma(i) variable
times the scale, and its direction is uniform.

*Von Mises-Fisher*: the density on the sphere is ∝ exp(κ·⟨x, μ⟩). A uniform direction u, with y = ⟨u, μ⟩, is
mapped to x = ρ·u + (w - ρ·y)·μ, where w = (y + t)/(1 + t·y) and ρ = √(1 - t²)/(1 + t·y). This map keeps the
sphere, and ⟨x, μ⟩ = w gets the density ∝ (1 - w²)^((i-3)/2)/(1 - t·w)^(i-1); t is that of Wood 1994.
Rejection sampling does the rest: x is accepted with probability exp(κ·w)·(1 - t·w)^(i-1) over its maximum.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from math import sqrt
from typing import Final

from dpveil.errors import NoiseError
from dpveil.noise.bits import BitSource
from dpveil.noise.interval_arithmetic import Enclosing, Interval, Pair, Uniform, in_disc

ONE: Final[Interval] = (Decimal(1), Decimal(1))


def spherical_laplace(scale: Fraction, dimension: int, bits: BitSource) -> list[int]:
    """Return one point with that density, each coordinate rounded to the nearest integer.

    `scale` is a positive rational and `dimension` at least 1 (`NoiseError` otherwise). Added to any two
    integer centres at Euclidean distance d, it makes them d/scale-indistinguishable: by the triangle
    inequality the densities differ by at most that factor, and rounding is post-processing. Source: Reilly &
    Fan 2021 eq. 5, by Marsaglia's polar method.

    >>> from dpveil.noise.bits import SeededBits
    >>> len(spherical_laplace(Fraction(100), 3, SeededBits(1)))
    3
    """
    if scale <= 0 or dimension < 1:
        raise NoiseError(f"no noise of scale {float(scale):.3g} in {dimension} dimensions")
    pairs = [in_disc(bits) for _ in range(-(-dimension // 2))]
    lengths = [Uniform(int(word)) for word in bits.words(dimension)]
    while True:
        sizes = _round_coordinates(scale, dimension, pairs, lengths)
        if sizes is not None:
            signs = [number.negative for pair in pairs for number in pair]
            return [-size if minus else size for size, minus in zip(sizes, signs, strict=False)]
        for number in (*lengths, *(number for pair in pairs for number in pair)):
            number.extend(bits)


def _round_coordinates(
    scale: Fraction, dimension: int, pairs: list[Pair], lengths: list[Uniform]
) -> list[int] | None:
    """Return the rounded absolute values of the coordinates, or None if the known bits do not decide.

    For independent Gaussians g and uniform u_1, ..., u_i, scale·(-ln Πu)·g/‖g‖ has the law.
    """
    work = Enclosing(lengths[0].length // 2)  # more digits than known bits, so that the bits are the limit
    product = ONE
    for number in lengths:
        product = work.multiply(product, work.of(*number.ends()))
    if product[0] == 0:
        return None
    low, high = work.negate(work.log(product))
    length = work.multiply(work.of(scale), (max(Decimal(0), low), high))
    squares = work.squares(pairs)[:dimension]
    total = squares[0]
    for square in squares[1:]:
        total = work.add(total, square)
    if total[0] == 0:
        return None
    factor = work.divide(work.multiply(length, length), total)
    sizes = [work.nearest(work.root(work.multiply(factor, square))) for square in squares]
    return None if None in sizes else [size for size in sizes if size is not None]


LARGEST_KAPPA: Final = 10**9  # the largest κ: beyond it, t could round to 1 in 64-bit floats
SMALLEST_KAPPA: Final = Fraction(1, 10**300)  # the smallest κ: below it, t could round to 0 in 64-bit floats
NOTHING: Final[Interval] = (Decimal(0), Decimal(0))


@dataclass(frozen=True)
class _Draw:
    """One proposal: the known bits of a uniform direction, and of the uniform number for acceptance."""

    pairs: list[Pair]
    coin: Uniform

    @property
    def numbers(self) -> list[Uniform]:
        return [self.coin, *(number for pair in self.pairs for number in pair)]


def von_mises_fisher(
    direction: Sequence[int], concentration: Fraction, radius: Fraction, bits: BitSource
) -> list[int]:
    """Return `radius` times a von Mises-Fisher draw, each coordinate rounded to the nearest integer.

    `direction` is a vector v of at least two integers, not all 0: the mean direction is exactly μ = v/‖v‖.
    `concentration` is κ, from 1e-300 to 1e9. Any two mean directions are κ·‖μ - μ′‖-indistinguishable: the
    normalising constant is the same for all μ, ⟨x, μ - μ′⟩ ≤ ‖μ - μ′‖, and rounding is post-processing.
    Raises `NoiseError` for other arguments. Source: Wood 1994; Ulrich 1984.

    >>> from dpveil.noise.bits import SeededBits
    >>> von_mises_fisher([3, -4], Fraction(10**9), Fraction(100), SeededBits(1))
    [60, -80]
    """
    check(len(direction), concentration)
    if not any(direction):
        raise NoiseError("the zero vector has no direction")
    while True:
        count = -(-len(direction) // 2)
        draw = _Draw([in_disc(bits) for _ in range(count)], Uniform(int(bits.words(1)[0])))
        accepted: bool | None = None
        while True:
            moved = _propose(draw, direction, concentration)
            if accepted is None and moved is not None:
                accepted = _accept(draw, moved, concentration, len(direction))
            if accepted is False:
                break
            if accepted and moved is not None:
                found = _round(moved, radius)
                if found is not None:
                    return found
            for number in draw.numbers:
                number.extend(bits)


def check(dimension: int, concentration: Fraction) -> None:
    """Raise `NoiseError` unless `dimension` is at least 2 and `concentration` from 1e-300 to 1e9."""
    if dimension < 2 or not SMALLEST_KAPPA <= concentration <= LARGEST_KAPPA:
        raise NoiseError(
            f"no directions of concentration {float(concentration):.3g} in {dimension} dimensions",
            hint=f"take at least two, and a concentration of at most {LARGEST_KAPPA}",
        )


@dataclass(frozen=True)
class _Moved:
    """A proposal x: `along` is w = ⟨x, μ⟩, `widened` is 1 + t·y, `places` are the coordinates of x."""

    work: Enclosing
    along: Interval
    widened: Interval
    places: list[Interval]


def _propose(draw: _Draw, direction: Sequence[int], concentration: Fraction) -> _Moved | None:
    """Return the proposal x of a draw, or None if too few bits are known to divide."""
    work = Enclosing(draw.coin.length // 2)
    squares = work.squares(draw.pairs)[: len(direction)]
    total = _sum(work, squares)
    if total[0] <= 0:
        return None
    signs = [number.negative for pair in draw.pairs for number in pair]
    length = work.root(total)
    even = [
        work.divide(work.negate(root) if minus else root, length)
        for root, minus in zip(map(work.root, squares), signs, strict=False)
    ]
    whole = work.root(work.of(Fraction(sum(v * v for v in direction))))
    mean = [work.divide(work.of(Fraction(v)), whole) for v in direction]
    y = _sum(work, [work.multiply(u, m) for u, m in zip(even, mean, strict=True)])
    y = max(Decimal(-1), y[0]), min(Decimal(1), y[1])
    t = _pull(len(direction), concentration)
    widened = work.add(ONE, work.multiply(work.of(t), y))
    if widened[0] <= 0:
        return None
    along = work.divide(work.add(y, work.of(t)), widened)
    shrunk = work.divide(work.root(work.of(1 - t * t)), widened)
    onto = work.subtract(along, work.multiply(shrunk, y))
    places = [
        work.add(work.multiply(shrunk, u), work.multiply(onto, m)) for u, m in zip(even, mean, strict=True)
    ]
    return _Moved(work, along, widened, places)


def _accept(draw: _Draw, moved: _Moved, concentration: Fraction, dimension: int) -> bool | None:
    """Return whether the proposal is accepted, or None if the known bits do not decide.

    As 1 - t·w = (1 - t²)/(1 + t·y), its log probability is κ·w - (i - 1)·ln(1 + t·y) less the maximum.
    """
    work = moved.work
    fewer = work.of(Fraction(dimension - 1))
    level = work.subtract(
        work.multiply(work.of(concentration), moved.along), work.multiply(fewer, work.log(moved.widened))
    )
    level = work.subtract(level, (_most(dimension, concentration),) * 2)
    coin = work.log(work.of(*draw.coin.ends()))
    if coin[1] < level[0]:
        return True
    return False if coin[0] > level[1] else None


def _round(moved: _Moved, radius: Fraction) -> list[int] | None:
    """Return `radius` times the coordinates, each rounded, or None if the known bits do not decide."""
    scaled = [moved.work.multiply(moved.work.of(radius), place) for place in moved.places]
    found = [moved.work.nearest(place) for place in scaled]
    return None if None in found else [place for place in found if place is not None]


@lru_cache(maxsize=64)
def _pull(dimension: int, concentration: Fraction) -> Fraction:
    """Return t of Wood 1994, in (0, 1): any such t is exact, this one makes acceptance most likely."""
    kappa, fewer = float(concentration), dimension - 1
    return Fraction(2 * kappa / (fewer + sqrt(fewer * fewer + 4 * kappa * kappa)))


@lru_cache(maxsize=64)
def _most(dimension: int, concentration: Fraction) -> Decimal:
    """Return an upper bound on the maximum over w of κ·w + (i - 1)·(ln(1 - t·w) - ln(1 - t²)).

    It is concave in w, with its maximum where 1 - t·w = t·(i - 1)/κ.
    """
    work, t, fewer = Enclosing(60), _pull(dimension, concentration), Fraction(dimension - 1)
    at_most = t * fewer / concentration
    ratio = work.log(work.of(at_most / (1 - t * t)))
    found = work.add(work.of((1 - at_most) / t * concentration), work.multiply(work.of(fewer), ratio))
    return found[1]


def _sum(work: Enclosing, values: Sequence[Interval]) -> Interval:
    total = NOTHING
    for value in values:
        total = work.add(total, value)
    return total
