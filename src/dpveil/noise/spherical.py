"""Exact noise with density ∝ exp(-‖y‖₂/scale), rounded to integers.

In i dimensions the length of y is a Gamma(i) variable times the scale, and its direction is uniform. Both are
computed in interval arithmetic from uniform numbers of which only the leading bits are known; more bits are
taken until every coordinate's rounding is certain. So the result is the exact rounding of the continuous law.
The time depends on the random bits alone.
"""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

from dpveil.errors import NoiseError
from dpveil.noise.bits import BitSource
from dpveil.noise.interval_arithmetic import Enclosing, Pair, Uniform, in_disc

ONE = (Decimal(1), Decimal(1))


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
