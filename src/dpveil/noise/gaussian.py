"""The discrete Gaussian law, exactly, by rejection from the discrete Laplace (Canonne et al. 2020)."""

from __future__ import annotations

from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal
from fractions import Fraction
from math import isqrt
from typing import Final

import numpy as np
from jaxtyping import Bool, Int64, UInt64

from dpveil.core.numbers import float_above
from dpveil.errors import NoiseError
from dpveil.noise import backend
from dpveil.noise.bits import BitSource
from dpveil.noise.laplace import CHUNK, LARGEST_SCALE, discrete_laplace

SMALLEST_VARIANCE: Final = Fraction(1, 10**12)
ONE: Final = Fraction(1)
FARTHEST: Final = 90
"""Of a proposal in standard deviations, for floating point to decide on it."""
FILTER_COST: Final = 2
"""Look-ups of plain NumPy in the time in which it decides on a proposal."""


def discrete_gaussian(variance: Fraction, size: int, bits: BitSource) -> Int64[np.ndarray, " size"]:
    """Return `size` independent integers z with P(z) proportional to exp(-z² / (2·variance)), exactly.

    `variance` is the parameter σ² of the law (its true variance is a little smaller for σ < 1), any rational
    from 1e-12 to 2^98 (`NoiseError` otherwise). Source: Canonne, Kamath & Steinke 2020, algorithm 3.

    >>> from dpveil.noise.bits import SeededBits
    >>> discrete_gaussian(Fraction(9), 4, SeededBits(1)).dtype
    dtype('int64')
    """
    variance = checked(Fraction(variance))
    out = np.empty(size, np.int64)
    filled = 0
    while filled < size:
        kept = _round(variance, min(CHUNK, size - filled + (size - filled) // 2 + 8), bits)[: size - filled]
        out[filled : filled + len(kept)] = kept
        filled += len(kept)
    return out


def checked(variance: Fraction) -> Fraction:
    """Return a variance that can be drawn, or raise `NoiseError`."""
    if not SMALLEST_VARIANCE <= variance <= Fraction(LARGEST_SCALE, 2) ** 2:
        raise NoiseError(
            f"the noise variance {float_above(variance):.3g} is not between 1e-12 and 2^98",
            hint="change the budget, the neighbourhood or the size of the region",
        )
    return variance


def _round(variance: Fraction, count: int, bits: BitSource) -> Int64[np.ndarray, " kept"]:
    """Return what is accepted of `count` discrete Laplace proposals: about three quarters."""
    scale = isqrt(variance.numerator // variance.denominator) + 1
    proposals = discrete_laplace(Fraction(scale), count, bits)
    words = bits.words(count)
    kept = _sure(proposals, words, variance, scale)
    if kept is None:
        accepted, unsure = _filter(proposals, words, variance, scale)
        for i in np.flatnonzero(unsure):
            gamma = (abs(int(proposals[i])) - variance / scale) ** 2 / (2 * variance)
            accepted[i] = below_exp(int(words[i]), gamma, bits)
        kept = proposals[accepted]
    return kept


def _sure(
    proposals: Int64[np.ndarray, " n"], words: UInt64[np.ndarray, " n"], variance: Fraction, scale: int
) -> Int64[np.ndarray, " kept"] | None:
    """Return what `_filter` accepts, compiled; None where it is unsure of one, or compiling does not pay."""
    compiled = backend.kernels(FILTER_COST * len(proposals))
    if compiled is None:
        return None
    sigma, centre = float(variance) ** 0.5, float(variance / scale)
    out = np.empty_like(proposals)
    count = compiled.gaussian(proposals, words, sigma, centre, FARTHEST * sigma - centre, out)
    return None if count < 0 else out[:count]


def _filter(
    proposals: Int64[np.ndarray, " n"], words: UInt64[np.ndarray, " n"], variance: Fraction, scale: int
) -> tuple[Bool[np.ndarray, " n"], Bool[np.ndarray, " n"]]:
    """Decide in floating point what rounding cannot change; return accepted, and unsure.

    With |y| ≤ 90σ - c the exponent γ is wrong by less than 2^-37 (c = σ²/scale ≤ σ is rounded once, |y| is
    exact, and (|y| + c)²·2^-50/σ² bounds the rest), so p = exp(-γ) by a factor of less than 1 ± 2^-36.
    Beyond, γ > 3800 and a proposal is accepted only if more than the first 64 bits are zero.
    """
    sigma, centre = float(variance) ** 0.5, float(variance / scale)
    distance = np.abs(proposals) - centre
    level = np.exp(-((distance / sigma) ** 2) / 2) * 2.0**64
    drawn = words.astype(np.float64)
    near = np.abs(proposals) <= FARTHEST * sigma - centre
    accepted = near & (drawn < level * (1 - 2.0**-36) - 2**13)
    rejected = np.where(near, drawn > level * (1 + 2.0**-36) + 2**13, words > 0)
    return accepted, ~(accepted | rejected)


def below_exp(
    word: int, gamma: Fraction, bits: BitSource, *, factor: Fraction = ONE, length: int = 64
) -> bool:
    """Return whether a uniform number in [0, 1) that begins so is below factor·exp(-gamma), at most 1.

    It begins with the `length` bits of `word`. More bits and digits are taken until the answer is certain.
    """
    digits = 40
    while True:
        work = Context(prec=digits + len(str(int(gamma))), Emin=MIN_EMIN, Emax=MAX_EMAX)
        level = work.exp(work.divide(Decimal(-gamma.numerator), Decimal(gamma.denominator)))
        scaled = factor * Fraction(level) * 2**length if level.adjusted() > -(10**4) else Fraction(1, 2)
        margin = scaled / 10 ** (digits - 4) if level.adjusted() > -(10**4) else scaled
        if word + 1 <= scaled - margin:
            return True
        if word >= scaled + margin:
            return False
        word = word << 64 | int(bits.words(1)[0])
        length += 64
        digits += 40
