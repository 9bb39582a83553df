"""Exact von Mises-Fisher draws, rounded to integers.

The density on the sphere in i dimensions is ∝ exp(κ·⟨x, μ⟩). A uniform direction u, with y = ⟨u, μ⟩, is
mapped to x = ρ·u + (w - ρ·y)·μ, where w = (y + t)/(1 + t·y) and ρ = √(1 - t²)/(1 + t·y). This map keeps the
sphere, and ⟨x, μ⟩ = w gets the density ∝ (1 - w²)^((i-3)/2)/(1 - t·w)^(i-1); t is that of Wood 1994.
Rejection sampling does the rest: x is accepted with probability exp(κ·w)·(1 - t·w)^(i-1) over its maximum.
Every decision is made in interval arithmetic, with more random bits until it is certain, so the law is exact.
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

MOST: Final = 10**9  # the largest κ: beyond it, t could round to 1 in 64-bit floats
LEAST: Final = Fraction(1, 10**300)  # the smallest κ: below it, t could round to 0 in 64-bit floats
ONE: Final[Interval] = (Decimal(1), Decimal(1))
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
    if dimension < 2 or not LEAST <= concentration <= MOST:
        raise NoiseError(
            f"no directions of concentration {float(concentration):.3g} in {dimension} dimensions",
            hint=f"take at least two, and a concentration of at most {MOST}",
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
