"""The choice of a scalar mechanism by expected error, from public facts alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final

from dpveil.core.numbers import Number, exact
from dpveil.errors import InvalidParameter, NoiseError, UnknownName, UsageError
from dpveil.mechanisms.scalar import TABLE, ScalarMechanism
from dpveil.mechanisms.scalar.base import ANY, RECORD
from dpveil.mechanisms.scalar.lattice import coarsest
from dpveil.numbers.expected import MOST, Utility, answers_of, utility

SLOW: Final = {"linear-program-1": 64, "linear-program-2": 64, "permute-and-flip": 64}
"""Largest lattice, in points, on which a slow mechanism is tried without being asked for by name."""


@dataclass(frozen=True)
class Candidate:
    """One mechanism for a query: with its expected errors, or with the `reason` why it does not fit."""

    name: str
    epsilon: Fraction
    mechanism: ScalarMechanism | None = None
    utility: Utility | None = None
    reason: str = ""


def build(name: str, **query: Any) -> ScalarMechanism:
    """Return the scalar mechanism of that name for a query. Raises `UnknownName` and `InvalidParameter`.

    >>> build("geometric", range="0:5", sensitivity=1, epsilon=1).name
    'geometric'
    """
    if name not in TABLE:
        raise UnknownName("mechanism", name, TABLE)
    return TABLE[name](**query)


def candidates(
    *,
    range: Any,  # noqa: A002  the query's own word
    sensitivity: Number,
    epsilon: Number,
    relation: str = RECORD,
    step: Number | None = None,
    whole: bool = True,
    answers: Sequence[Number] | None = None,
    names: Sequence[str] | None = None,
) -> list[Candidate]:
    """Return every mechanism for a query by rising expected error, and last those that do not fit.

    A mechanism for any-database also satisfies database-record. Expected errors are over equally likely
    answers: those given, else integers on the coarsest lattice if `whole` (such as counts), else numbers
    spread over the range. No data are read. Raises `InvalidParameter` if the query itself is wrong, and
    `UnknownName`.

    >>> best, *_ = candidates(range=(0, 3), sensitivity=1, epsilon=1, names=["uniform", "geometric"])
    >>> best.name, round(best.utility.mean, 3)
    ('geometric', 0.521)
    """
    # Any mechanism reports what is wrong with the query itself.
    base = build("laplace", range=range, sensitivity=sensitivity, epsilon=epsilon, step=step)
    allowed, moved = base.range, base.sensitivity
    query = {"range": allowed, "sensitivity": moved, "epsilon": base.epsilon, "step": base.step}
    if relation not in (ANY, RECORD):
        raise InvalidParameter("relation", relation, "is unknown", hint=f"choose {RECORD} or {ANY}")
    if answers is None:
        asked = answers_of(allowed, moved, whole=whole)
    else:
        asked = [exact(answer, "answers") for answer in answers]
        outside = next((answer for answer in asked if answer not in allowed), None)
        if outside is not None or not asked:
            raise InvalidParameter("answers", outside, f"are not all in the range {allowed}")
    every = answers is not None or (whole and len(asked) <= MOST and _points(query) == len(asked))
    found = [_candidate(name, query, relation, asked, names, remap=every) for name in names or TABLE]
    return sorted(found, key=_rank)


def _rank(one: Candidate) -> tuple[bool, float, bool]:
    """Return a sort key: least error first, and `geometric` before `laplace` where the two are the same
    law.
    """
    return one.utility is None, one.utility.mean if one.utility else 0, one.name != "geometric"


def _candidate(
    name: str,
    query: dict[str, Any],
    relation: str,
    asked: Sequence[Fraction],
    names: Sequence[str] | None,
    *,
    remap: bool,
) -> Candidate:
    budget = query["epsilon"]
    kind = TABLE.get(name)
    if kind is None:
        raise UnknownName("mechanism", name, TABLE)
    held = relation if relation in kind.relations else ANY
    if held not in kind.relations:
        return Candidate(name, budget, reason=f"does not keep {relation}")
    try:
        if names is None and name in SLOW and _points(query) > SLOW[name]:
            return Candidate(
                name, budget, reason=f"takes long for {_points(query)} points: ask for it by name"
            )
        mechanism = kind(**query, relation=held)
        mechanism.prepare()
        return Candidate(name, budget, mechanism, utility(mechanism, asked, remapping=remap))
    except (UsageError, NoiseError) as error:
        return Candidate(name, budget, reason=error.message)


def _points(query: dict[str, Any]) -> int:
    """Return the number of points of the query's lattice, or 0 for a range without an end."""
    step = query["step"] or coarsest(query["range"], query["sensitivity"])
    width = query["range"].width
    return 0 if width is None else int(width / exact(step)) + 1


def choose(**query: Any) -> ScalarMechanism:
    """Return the mechanism with the least expected absolute error for a query; arguments are those of
    `candidates`.

    The choice depends only on public facts, so it costs no privacy. Raises `InvalidParameter` if none fits.
    """
    best = candidates(**query)[0]
    if best.mechanism is None:
        raise InvalidParameter("range", str(query["range"]), "fits no mechanism", hint=best.reason)
    return best.mechanism
