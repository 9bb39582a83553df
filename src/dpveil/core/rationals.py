"""Exact numbers: privacy parameters are rationals, rounded only towards more privacy loss."""

from __future__ import annotations

import math
from decimal import ROUND_CEILING, Context, Decimal, InvalidOperation
from fractions import Fraction
from numbers import Integral, Rational, Real
from typing import Final

from dpveil.errors import InvalidParameter

Number = int | float | str | Fraction | Decimal
"""Types of numbers that are accepted; floats are read as their shortest decimal, so 0.1 is exactly 1/10."""

Json = None | bool | int | float | str | list["Json"] | dict[str, "Json"]  # what `json.loads` returns

SMALLEST_FLOAT, LARGEST_FLOAT = Fraction(1, 10**300), Fraction(10**300)
"""Numbers between these are shown with float arithmetic, which has full precision there."""
DIGITS: Final = 100
"""Most digits of a parameter: what follows from it, such as ε²/2, is still short enough for `exact`."""


def exact(value: object, name: str = "number") -> Fraction:
    """Return `value` as an exact rational; a float is read as its shortest decimal.

    Raises `InvalidParameter` for anything that is not a finite number, including booleans, and for texts of
    more than 1000 characters or with an exponent beyond ±1000. Source: docs, "Guarantees".

    >>> exact(0.1), exact("1/3"), exact(20)
    (Fraction(1, 10), Fraction(1, 3), Fraction(20, 1))
    """
    try:
        if isinstance(value, bool):
            raise TypeError
        if isinstance(value, Integral | Rational):
            return Fraction(int(value.numerator), int(value.denominator))
        if isinstance(value, Decimal):
            return Fraction(_check_magnitude(str(value)))
        if isinstance(value, Real):  # str() of any float type, NumPy's too, is its shortest decimal
            return Fraction(Decimal(str(value)))
        if isinstance(value, str):
            return Fraction(_check_magnitude(value.strip()))
        raise TypeError
    except (TypeError, ValueError, ArithmeticError, InvalidOperation, OverflowError):
        raise InvalidParameter(
            name, value, "is not a finite number", hint="write it as 0.5, 20, 1e-6 or 1/3"
        ) from None


def _check_magnitude(text: str) -> str:
    """Return `text`; raise `ValueError` if its exact value may be huge: 1e999999999 has a billion digits."""
    if len(text) > 1000 or abs(int(text.lower().partition("e")[2] or 0)) > 1000:
        raise ValueError
    return text


def few_digits(value: Fraction, name: str) -> Fraction:
    """Return `value`; raise `InvalidParameter` if its numerator or denominator is 10^100 or more."""
    if max(abs(value.numerator), value.denominator) >= 10**DIGITS:
        raise InvalidParameter(name, None, f"has more than {DIGITS} digits", hint="round it")
    return value


def float_above(value: Fraction) -> float:
    """Return the smallest float that is not below `value`: a privacy loss is never rounded down.

    Returns infinity beyond the range of floats.

    >>> float_above(Fraction(1, 3)) >= Fraction(1, 3)
    True
    """
    try:
        nearest = float(value)
    except OverflowError:
        return math.inf
    return nearest if Fraction(nearest) >= value else math.nextafter(nearest, math.inf)


def root_above(value: Fraction) -> Fraction:
    """Return an upper bound on the square root of `value` (at least 0), correct to about 19 digits.

    >>> root_above(Fraction(2)) ** 2 >= 2 and root_above(Fraction(9)) == 3
    True
    """
    shift = max(0, 128 - value.numerator.bit_length() + value.denominator.bit_length())
    unit = 1 << -(-shift // 2)
    scaled = -(-value.numerator * unit**2 // value.denominator)
    return Fraction(math.isqrt(max(0, scaled - 1)) + (scaled > 0), unit)


def to_json(value: Fraction) -> int | float | str:
    """Return `value` exactly: as a JSON number if its shortest decimal is exact, else as a "p/q" string.

    >>> to_json(Fraction(20)), to_json(Fraction(1, 10)), to_json(Fraction(1, 3))
    (20, 0.1, '1/3')
    """
    if value.denominator == 1 and abs(value.numerator) < 2**53:
        return value.numerator
    try:
        nearest = float(value)
    except OverflowError:
        return str(value)
    return nearest if math.isfinite(nearest) and exact(nearest) == value else str(value)


def two_digits(value: Fraction) -> Fraction:
    """Return the next number with two significant digits that is not smaller.

    >>> float(two_digits(Fraction(1201, 1000))), float(two_digits(Fraction(99, 1)))
    (1.3, 99.0)
    """
    above = Context(prec=2, rounding=ROUND_CEILING)
    return Fraction(above.divide(Decimal(value.numerator), Decimal(value.denominator)))


def show(value: Fraction, digits: int = 4) -> str:
    """Return `value` for display: exact if that is short, else rounded up to `digits` significant digits.

    >>> show(Fraction(1, 10)), show(Fraction(1, 3)), show(Fraction(20)), show(Fraction(1, 10**6))
    ('0.1', '0.3334', '20', '1e-06')
    """
    short = to_json(value)
    if not isinstance(short, str) and len(str(short)) <= digits + 4:
        return str(short)
    if not SMALLEST_FLOAT <= abs(value) <= LARGEST_FLOAT:  # beyond what a float can show
        context = Context(prec=digits, rounding=ROUND_CEILING)
        return f"{context.divide(Decimal(value.numerator), Decimal(value.denominator)):e}"
    exponent = math.floor(math.log10(abs(float_above(value)))) - digits + 1
    unit = Fraction(10) ** exponent
    return f"{float(math.ceil(value / unit) * unit):.{digits}g}"
