"""Intervals hold the true values, whatever the decimal context of whoever calls is."""

import decimal
from decimal import Decimal
from fractions import Fraction

import pytest

from dpveil.errors import NoiseError
from dpveil.noise.bits import SeededBits
from dpveil.noise.interval_arithmetic import Enclosing, Uniform, in_disc
from dpveil.noise.spherical import spherical_laplace, von_mises_fisher


def of_length(number: Uniform, length: int) -> Uniform:
    """The same number, of which fewer bits are known."""
    known = Uniform(0)
    known.value, known.length = number.value >> number.length - length, length
    return known


def test_minus_rounds_nothing():
    third = Fraction(1, 3)
    low, high = Enclosing(60).negate(Enclosing(60).of(third))
    assert Fraction(low) < -third < Fraction(high)
    assert Fraction(high) - Fraction(low) < Fraction(1, 10**59)
    assert -Enclosing(60).of(third)[0] != high, "the sign alone rounds"


@pytest.mark.parametrize("length", [63, 127, 191])
def test_squares_hold_the_true_squares(length):
    bits = SeededBits(3)
    for _ in range(20):
        pair = in_disc(bits)
        for number in pair:
            while number.length < 400:
                number.extend(bits)
        found = Enclosing(length // 2).squares([(of_length(pair[0], length), of_length(pair[1], length))])
        with decimal.localcontext(prec=500):
            a, b = (Decimal(number.value) / (1 << number.length) for number in pair)
            factor = -(a * a + b * b).ln() / (a * a + b * b)
            true = a * a * factor, b * b * factor
        assert all(low <= square <= high for (low, high), square in zip(found, true, strict=True))


def test_a_concentration_next_to_nothing_is_drawn_or_refused():
    assert len(von_mises_fisher([1, 2], Fraction(1, 10**300), Fraction(9), SeededBits(1))) == 2
    with pytest.raises(NoiseError):
        von_mises_fisher([1, 2], Fraction(1, 10**400), Fraction(9), SeededBits(1))


@pytest.mark.parametrize("precision", [1, 2, 4, 100])
def test_draws_do_not_depend_on_the_context_of_the_caller(precision):
    def drawn():
        bits = SeededBits(5)
        directions = [von_mises_fisher([3, -4, 5], Fraction(2), Fraction(20_000), bits) for _ in range(10)]
        return directions, [spherical_laplace(Fraction(1000), 3, bits) for _ in range(10)]

    usual = drawn()
    with decimal.localcontext(prec=precision):
        assert drawn() == usual
