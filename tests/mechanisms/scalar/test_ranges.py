"""Ranges: what is in them, what they refuse, and how users write them."""

from decimal import Decimal
from fractions import Fraction

import pytest

from dpveil.errors import InvalidParameter
from dpveil.mechanisms.scalar import Range


@pytest.mark.parametrize(
    ("text", "low", "high"),
    [("0:5", 0, 5), ("0:", 0, None), (":5", None, 5), (":", None, None), (" -1.5 : 1/3 ", "-3/2", "1/3")],
)
def test_what_users_write(text, low, high):
    read = Range.parse(text)
    assert (read.low, read.high) == tuple(None if end is None else Fraction(end) for end in (low, high))
    assert Range.of(text) == read
    assert Range.of((low, high)) == read
    assert Range.of(read) is read


def test_gaps_are_open_and_ends_belong():
    odd = Range.parse("0:10", ["1:2", "4:5.5"])
    inside = [0, 1, 2, 3, 4, 5.5, 10, Fraction(1, 3)]
    outside = [-1, Fraction(11, 10), Fraction(3, 2), 5, 10.5]
    assert all(Fraction(str(value)) in odd for value in inside)
    assert not any(Fraction(str(value)) in odd for value in outside)
    assert str(odd) == "0:10 without 1:2 and 4:5.5"
    assert (odd.finite, odd.width) == (True, 10)
    assert (Range(0).finite, Range(0).width, Range(None, 3).width) == (False, None, None)


def test_floats_are_their_shortest_decimals():
    assert Range(0.1, Decimal("0.3")) == Range("1/10", "3/10")


@pytest.mark.parametrize(
    ("low", "high", "gaps"),
    [
        (5, 5, ()),
        (5, 0, ()),
        (0, 5, [(0, 1)]),
        (0, 5, [(4, 5)]),
        (0, 5, [(2, 2)]),
        (0, 5, [(1, 3), (2, 4)]),
        (0, 5, [(1, 2), (2, 3)]),
        (0, 5, [(3, 4), (1, 2)]),
        (None, 5, [(6, 7)]),
        (0, "1e301", ()),
        ("nan", 1, ()),
        (0, float("inf"), ()),
        (0, True, ()),
    ],
)
def test_what_is_no_range_is_refused(low, high, gaps):
    with pytest.raises(InvalidParameter, match=r"range|gap"):
        Range(low, high, gaps=gaps)


@pytest.mark.parametrize("value", ["5", "1:2:3", "a:b", 5, None, (1, 2, 3), "0:1:"])
def test_what_does_not_read_as_one_is_refused(value):
    with pytest.raises(InvalidParameter, match="range"):
        Range.of(value)
    with pytest.raises(InvalidParameter, match="range"):
        Range.parse("0:5", ["3"])
