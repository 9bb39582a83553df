"""Amounts: what releases cost, in whole units, so that sums are exact and never below the true ones.

Four sums are enough for every limit: Σε and Σδ of pure and approximate guarantees (basic composition, Dwork &
Roth 2014, theorem 3.16), Σε² of the same (pure ones are ε²/2-zCDP, Bun & Steinke 2016, prop. 1.4), and Σρ.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction
from math import ceil
from typing import Any, Final

from dpveil.accounting import meet
from dpveil.core.guarantee import RELATIONS, Guarantee, Relation
from dpveil.core.rationals import Json, to_json
from dpveil.errors import BudgetRefused, InvalidParameter, UnsupportedRelation

UNIT: Final = 10**6  # units of ε and ρ in one; of ε² there are UNIT²
DELTA_UNIT: Final = 10**15  # units of δ in one: a δ is usually below a millionth
LARGEST_EPSILON: Final = 10**9  # largest ε or ρ of a release or a limit; beyond, nothing is protected
NUMBER: Final = re.compile(r"0|[1-9][0-9]{0,59}")  # amounts as text; databases have no integers of this size


@dataclass(frozen=True)
class Cost:
    """Sums over releases: ε and ρ in millionths, ε² in millionths of millionths, δ in 10^-15.

    >>> from dpveil.core.guarantee import Scope
    >>> half = Cost.of(Guarantee(kind="pure", epsilon=0.5, relation=Relation("any-image"), scope=Scope("")))
    >>> half + half
    Cost(epsilon=1000000, squares=500000000000, rho=0, delta=0)
    """

    epsilon: int = 0
    squares: int = 0
    rho: int = 0
    delta: int = 0

    @classmethod
    def of(cls, guarantee: Guarantee) -> Cost:
        """Return the cost of one release, rounded up.

        A metric guarantee is pure with ε × diameter: neighbours are at most the diameter apart. Raises
        `BudgetRefused` for guarantees that no limit can bound: heuristic, unbounded, or above 10^9.
        """
        if not guarantee.formal:
            raise BudgetRefused(
                "a release without a formal guarantee cannot be paid from a budget",
                hint="choose a method with one (dpveil methods), or release it without a ledger",
            )
        epsilon, rho = guarantee.epsilon or Fraction(0), guarantee.rho or Fraction(0)
        if guarantee.kind == "metric":
            if guarantee.diameter is None:
                raise BudgetRefused(
                    "a metric guarantee without a diameter cannot be paid from a budget",
                    hint="choose a promise of another kind, or release it without a ledger",
                )
            epsilon *= guarantee.diameter
        if max(epsilon, rho) > LARGEST_EPSILON:
            raise BudgetRefused(f"{guarantee} is no promise that a budget can hold", hint="choose less")
        units = ceil(epsilon * UNIT)
        return cls(units, units**2, ceil(rho * UNIT), ceil((guarantee.delta or 0) * DELTA_UNIT))

    def __add__(self, other: Cost) -> Cost:
        return Cost(*(a + b for a, b in zip(vars(self).values(), vars(other).values(), strict=True)))

    def __sub__(self, other: Cost) -> Cost:
        return Cost(*(a - b for a, b in zip(vars(self).values(), vars(other).values(), strict=True)))

    @property
    def as_rho(self) -> Fraction:
        """Σρ + Σε²/2: the ρ of everything together, apart from δ."""
        return Fraction(self.rho, UNIT) + Fraction(self.squares, 2 * UNIT**2)

    def to_text(self) -> str:
        """Return the sums as text for a database.

        >>> Cost(1, 2, 3, 4).to_text()
        '1 2 3 4'
        """
        return f"{self.epsilon} {self.squares} {self.rho} {self.delta}"

    @classmethod
    def parse(cls, text: object) -> Cost:
        """Return the sums of `to_text`; raises `ValueError` for anything else."""
        parts = text.split(" ") if isinstance(text, str) else []
        if len(parts) != 4 or not all(map(NUMBER.fullmatch, parts)):
            raise ValueError("no amounts")
        return cls(*map(int, parts))

    def to_json(self) -> dict[str, Json]:
        return {
            "epsilon": to_json(Fraction(self.epsilon, UNIT)),
            "delta": to_json(Fraction(self.delta, DELTA_UNIT)),
            "rho": to_json(Fraction(self.rho, UNIT)),
        }


@dataclass(frozen=True)
class Total:
    """A cost, and the `relation` that all of its parts hold under; None if there is no part.

    `mixed` parts have no relation in common, and their total states nothing.
    """

    cost: Cost = Cost()
    relation: Relation | None = None
    mixed: bool = False

    @classmethod
    def of(cls, guarantee: object) -> Total:
        """Return what a release costs; raises `InvalidParameter` and `BudgetRefused`."""
        if not isinstance(guarantee, Guarantee):
            hint = "give a guarantee, such as plan.total"
            raise InvalidParameter("guarantee", type(guarantee).__name__, "is not a guarantee", hint=hint)
        return cls(Cost.of(guarantee), guarantee.relation)

    def __add__(self, other: Total) -> Total:
        cost = self.cost + other.cost
        known = [each.relation for each in (self, other) if each.relation is not None]
        if self.mixed or other.mixed:
            return Total(cost, mixed=True)
        try:
            return Total(cost, meet(*known) if known else None)
        except UnsupportedRelation:
            return Total(cost, mixed=True)

    def relation_text(self) -> str:
        """Return the relation as text for a database: its name, with m for m-pixels; mixed; or nothing."""
        if self.mixed:
            return "mixed"
        return "" if self.relation is None else relation_text(self.relation)

    @classmethod
    def parse(cls, cost: object, relation: object) -> Total:
        """Return the total of both texts; raises `ValueError` for anything else."""
        if relation == "mixed" or (relation == "" and Cost.parse(cost) == Cost()):
            return cls(Cost.parse(cost), mixed=relation == "mixed")
        return cls(Cost.parse(cost), read_relation(relation))

    def to_json(self) -> dict[str, Json]:
        return {**self.cost.to_json(), "relation": self.relation_text() or None}


def relation_text(relation: Relation) -> str:
    """Return a relation as short text.

    >>> relation_text(Relation("m-pixels", 16)), relation_text(Relation("any-image"))
    ('m-pixels:16', 'any-image')
    """
    return relation.name if relation.m is None else f"{relation.name}:{relation.m}"


def read_relation(text: object) -> Relation:
    """Return the relation of `relation_text`; raises `ValueError` for anything else."""
    name, colon, m = text.partition(":") if isinstance(text, str) else ("", "", "")
    if name not in RELATIONS or (colon and not re.fullmatch("[1-9][0-9]{0,17}", m)):
        raise ValueError("no relation")
    try:
        return Relation(name, int(m) if colon else None)
    except InvalidParameter as error:
        raise ValueError("no relation") from error


def parse_amount(value: Any) -> int:
    """Return a non-negative integer of a received text, with at most 60 digits; raises `ValueError`."""
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 10**60:
        raise ValueError("no amount")
    return value
