"""Noise with density ∝ exp(-‖y‖₂/scale), rounded to integers, exactly.

In i dimensions the length is a Gamma(i) variable times the scale and the direction is uniform. Both are
computed from uniform numbers of which only the leading bits are known, with decimals that enclose the true
value on both sides; more bits are taken until every coordinate can be rounded in one way only. What comes out
is the rounding of the continuous law: no distance to bound. The time depends on the random bits alone.
"""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

from dpveil.errors import NoiseError
from dpveil.noise.bits import BitSource
from dpveil.noise.enclosed import Enclosing, Pair, Uniform, in_disc

ONE = (Decimal(1), Decimal(1))


def spherical_laplace(scale: Fraction, dimension: int, bits: BitSource) -> list[int]:
    """Return the coordinates, each rounded to the nearest integer, of one point with that density.

    `scale` is any positive rational, `dimension` at least 1. Any two centres that are whole numbers are
    ε·d-indistinguishable with ε = 1/scale and d Euclidean: by the triangle inequality the densities differ by
    at most that factor, and rounding is post-processing. Source: Reilly & Fan 2021 eq. 5, by Marsaglia's
    polar method.

    >>> from dpveil.noise.bits import SeededBits
    >>> len(spherical_laplace(Fraction(100), 3, SeededBits(1)))
    3
    """
    if scale <= 0 or dimension < 1:
        raise NoiseError(f"no noise of scale {float(scale):.3g} in {dimension} dimensions")
    pairs = [in_disc(bits) for _ in range(-(-dimension // 2))]
    lengths = [Uniform(int(word)) for word in bits.words(dimension)]
    while True:
        sizes = _rounded(scale, dimension, pairs, lengths)
        if sizes is not None:
            signs = [number.negative for pair in pairs for number in pair]
            return [-size if minus else size for size, minus in zip(sizes, signs, strict=False)]
        for number in (*lengths, *(number for pair in pairs for number in pair)):
            number.extend(bits)


def _rounded(scale: Fraction, dimension: int, pairs: list[Pair], lengths: list[Uniform]) -> list[int] | None:
    """Return the rounded sizes of the coordinates, or None where the known bits do not decide.

    Of i independent Gaussians g, and u_1, ..., u_i uniform, scale·(-ln Πu)·g/‖g‖ has the law.
    """
    work = Enclosing(lengths[0].length // 2)  # a decimal digit for two bits: the bits are what is not known
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
