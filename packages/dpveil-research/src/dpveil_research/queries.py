"""The queries of the thesis's experiments, and the matrix of every mechanism for them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any, Final

import numpy as np

from dpveil.mechanisms.scalar import (
    ExplicitFair,
    Exponential,
    Geometric,
    Laplace,
    PermuteAndFlip,
    Staircase,
    TruncatedLaplace,
)
from dpveil_research.losses import Floats, Tabled
from dpveil_research.programs import optimum

FINE: Final = 45
"""Lattice points per response category, for mechanisms with continuous responses."""


@dataclass(frozen=True)
class Query:
    """A query with `size` possible answers low, low + spacing, ...; one record moves it by at most `reach` of
    them.
    """

    name: str
    low: int
    spacing: Fraction
    size: int
    reach: int

    @property
    def high(self) -> Fraction:
        """The largest answer."""
        return self.low + (self.size - 1) * self.spacing

    @property
    def answers(self) -> list[Fraction]:
        """All true answers."""
        return [self.low + i * self.spacing for i in range(self.size)]


def mean(records: int, low: int = 0, high: int = 4) -> Query:
    """Return the query for the mean of integers from low to high: answers are 1/records apart."""
    return Query("mean", low, Fraction(1, records), (high - low) * records + 1, high - low)


def count(records: int) -> Query:
    """Return the query for the number of records with an attribute."""
    return Query("count", 0, Fraction(1), records + 1, 1)


LAPLACE, STAIRCASE = "Laplace, snapped", "staircase, snapped"
TRUNCATED, RECORD = "normalised Laplace, 2ΔF/ε", "normalised Laplace, one record (ours)"
GEOMETRIC, FAIR = "geometric, snapped", "explicit fair"
EXPONENTIAL, PERMUTE = "exponential (ours)", "permute-and-flip (ours)"
FIRST, SECOND = "linear program, variant 1", "linear program, variant 2"
UNIFORM: Final = "uniform"

Make = Callable[..., Any]
CONTINUOUS: Final[dict[str, Make]] = {
    LAPLACE: Laplace,
    STAIRCASE: Staircase,
    TRUNCATED: lambda **query: TruncatedLaplace(**query, relation="any-database"),
    RECORD: lambda **query: TruncatedLaplace(**query, relation="database-record"),
}
DISCRETE: Final[dict[str, Make]] = {
    GEOMETRIC: Geometric,
    FAIR: ExplicitFair,
    EXPONENTIAL: Exponential,
    PERMUTE: PermuteAndFlip,
}


@lru_cache(maxsize=4096)
def tabled(
    query: Query,
    series: str,
    epsilon: str,
    factor: Fraction = Fraction(1),
    *,
    inside: bool = False,
    wide: bool = False,
) -> Tabled:
    """Return a mechanism's matrix: `factor` widens response categories, `wide` uses 300 % of the range.

    Categories are centred on low + factor·spacing·i, the first and last on the ends of the range, or with
    `inside` lie side by side within it. A response midway between two counts half for each.
    """
    low, high = query.low, query.high
    if wide:
        low, high = low - (high - query.low), high + (high - query.low)  # type: ignore[assignment]
    width = query.spacing * factor
    first = low + width / 2 if inside else Fraction(low)
    centres = [first + i * width for i in range(int((high - first) / width) + 1)]
    answers, responses = _floats(query.answers), _floats(centres)
    if series == UNIFORM:
        matrix = np.full((len(centres), query.size), 1 / len(centres))
    elif series in (FIRST, SECOND):
        matrix = optimum(answers, responses, query.reach, float(epsilon), fair=series == SECOND)
    else:
        common = {"range": (low, high), "sensitivity": query.reach * query.spacing, "epsilon": epsilon}
        if series in CONTINUOUS:
            mechanism = CONTINUOUS[series](**common, step=query.spacing / FINE)
        else:
            mechanism = DISCRETE[series](**common, step=query.spacing)
        found = mechanism.matrix(centres, query.answers)
        matrix = (found + found[::-1, ::-1]) / 2
    return Tabled(answers, responses, matrix)


def _floats(numbers: list[Fraction]) -> Floats:
    return np.array([float(number) for number in numbers])
