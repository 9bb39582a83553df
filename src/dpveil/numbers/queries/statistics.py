"""Count, mean, standard deviation and histogram of a column, each released by a range-adherent mechanism.

What is drawn, with which mechanism and for which promise, is decided in `dpveil.numbers.queries.plans`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from dpveil.core.numbers import Number
from dpveil.mechanisms.scalar.base import RECORD
from dpveil.noise.bits import BitSource
from dpveil.numbers.queries import plans
from dpveil.numbers.queries.answer import Answer


def mean(
    values: Iterable[Any],
    *,
    range: Any,  # noqa: A002  the public range of the values
    epsilon: Number,
    bits: BitSource,
    mechanism: str | None = None,
    relation: str = RECORD,
    missing: Number | None = None,
    step: Number | None = None,
) -> Answer:
    """Return a private mean of a column, between the ends of `range`.

    Values are clipped to the range (both ends public, in the values' units), and missing ones count as
    `missing`. One record of n moves the mean by at most (high - low)/n. `mechanism` is a name of the scalar
    table; the default has the least expected error. Raises `InvalidParameter`, and `DataError` for values
    that are missing or no numbers.

    >>> from dpveil.noise.bits import SeededBits
    >>> ages = [23, 31, 47, 62, 35]
    >>> 0 <= mean(ages, range=(0, 120), epsilon=1, bits=SeededBits(3)).response <= 120
    True
    """
    plan = plans.mean(
        values,
        range=range,
        epsilon=epsilon,
        mechanism=mechanism,
        relation=relation,
        missing=missing,
        step=step,
    )
    return plan.release(bits)


def standard_deviation(
    values: Iterable[Any],
    *,
    range: Any,  # noqa: A002  the public range of the values
    epsilon: Number,
    bits: BitSource,
    mechanism: str | None = None,
    relation: str = RECORD,
    missing: Number | None = None,
    step: Number | None = None,
) -> Answer:
    """Return a private standard deviation (of a population, divided by n), at most half the range's width.

    Arguments are those of `mean`. One record of n moves it by at most (high - low)·√(n-1)/n; what is taken
    for ΔF is a little more, and divides the range.

    >>> from dpveil.noise.bits import SeededBits
    >>> 0 <= standard_deviation([1, 5, 3], range=(0, 6), epsilon=1, bits=SeededBits(3)).response <= 3
    True
    """
    plan = plans.standard_deviation(
        values,
        range=range,
        epsilon=epsilon,
        mechanism=mechanism,
        relation=relation,
        missing=missing,
        step=step,
    )
    return plan.release(bits)


def count(
    values: Iterable[Any],
    *,
    epsilon: Number,
    bits: BitSource,
    equals: Any = None,
    above: Number | None = None,
    below: Number | None = None,
    mechanism: str | None = None,
    relation: str = RECORD,
) -> Answer:
    """Return a private count of the rows whose value equals a text or number, is above, or below another.

    Conditions that are given have to hold together; a missing value holds none. One record moves the count
    by at most 1, and it stays from 0 to n. Raises as `mean` does.

    >>> from dpveil.noise.bits import SeededBits
    >>> count(["yes", "no", "yes"], equals="yes", epsilon=1, bits=SeededBits(3)).response in (0, 1, 2, 3)
    True
    """
    plan = plans.count(
        values,
        epsilon=epsilon,
        equals=equals,
        above=above,
        below=below,
        mechanism=mechanism,
        relation=relation,
    )
    return plan.release(bits)


def histogram(
    values: Iterable[Any],
    *,
    range: Any,  # noqa: A002  the public range of the values
    bins: int | Sequence[Number],
    epsilon: Number,
    bits: BitSource,
    mechanism: str | None = None,
    relation: str = RECORD,
    missing: Number | None = None,
) -> Answer:
    """Return private counts of public bins: `bins` equal ones, or those between the edges given.

    A bin holds its lower edge and not its upper one, but for the last. A record that is replaced leaves one
    bin and enters another, so that each count is drawn with half of `epsilon`. Other arguments are those of
    `mean`. Counts lie from 0 to n, and need not sum to n.

    >>> from dpveil.noise.bits import SeededBits
    >>> made = histogram([1, 2, 5], range=(0, 6), bins=2, epsilon=1, bits=SeededBits(3))
    >>> len(made.response), [str(edge) for edge in made.edges]
    (2, ['0', '3', '6'])
    """
    plan = plans.histogram(
        values,
        range=range,
        epsilon=epsilon,
        mechanism=mechanism,
        relation=relation,
        missing=missing,
        bins=bins,
    )
    return plan.release(bits)
