"""Limits: what all releases about a subject may promise together.

Whoever asks for a release may have seen all earlier ones, and choose its budget by them. Sums that are held
under a bound set beforehand stay valid then: of ε and δ (Rogers, Roth, Ullman & Vadhan 2016), and of ρ
(Feldman & Zrnic 2021). The better of two accounts, taken after the fact, need not: so a limit has one.
"""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass
from fractions import Fraction
from math import floor, isqrt
from typing import Any, Final

from dpveil.accounting import zcdp_rho
from dpveil.core.guarantee import Relation
from dpveil.core.rationals import Json, Number, exact, few_digits, show, to_json
from dpveil.errors import BudgetExceeded, BudgetRefused, InvalidParameter, UnsupportedRelation
from dpveil.io.names import escape_text
from dpveil.ledger.amounts import (
    DELTA_UNIT,
    LARGEST_EPSILON,
    UNIT,
    Cost,
    Total,
    parse_amount,
    read_relation,
    relation_text,
)

LONGEST: Final = 200  # most characters of a subject
DEEPEST: Final = 16  # most levels of a subject


def check_subject(subject: object) -> str:
    """Return a subject in Unicode's composed form (NFC).

    Raises `InvalidParameter` unless it has 1..200 printable characters and 1..16 parts between slashes, of
    which none is empty, . or .., or starts or ends with a space.

    >>> check_subject("studio/album-7")
    'studio/album-7'
    """
    hint = "such as album-7, or studio/album-7 to count for studio, too"
    if not isinstance(subject, str):
        shown = None if subject is None else type(subject).__name__
        raise InvalidParameter("subject", shown, "is no name of a subject", hint=hint)
    name = unicodedata.normalize("NFC", subject[: LONGEST + 1])
    if max(len(subject), len(name)) > LONGEST:
        raise InvalidParameter("subject", None, f"has more than {LONGEST} characters", hint=hint)
    parts, problem = name.split("/"), ""
    if not name.isprintable() or any(part in ("", ".", "..") or part != part.strip() for part in parts):
        problem = "has a part that is empty, . or .., or begins or ends with a space, or control characters"
    elif len(parts) > DEEPEST:
        problem = f"has more than {DEEPEST} levels"
    if problem:
        raise InvalidParameter("subject", escape_text(subject), problem, hint=hint)
    return name


def path_to(subject: str) -> list[str]:
    """Return a subject's ancestors and itself, from the top.

    >>> path_to("studio/2026/album-7")
    ['studio', 'studio/2026', 'studio/2026/album-7']
    """
    parts = subject.split("/")
    return ["/".join(parts[:level]) for level in range(1, len(parts) + 1)]


def is_under(subject: str, other: str) -> bool:
    """Whether a debit of `subject` counts for `other`.

    >>> is_under("studio/album-7", "studio"), is_under("studio-2", "studio")
    (True, False)
    """
    return subject == other or subject.startswith(f"{other}/")


FIELDS: Final = {"pure": ("epsilon",), "approximate": ("epsilon", "delta"), "zcdp": ("rho",)}
"""The amounts of each kind of limit."""
UNBOUNDED: Final = {"pure": ("rho", "delta"), "approximate": ("rho",), "zcdp": ("delta",)}
"""The sums that each kind of limit never bounds."""
UNITS: Final = {"epsilon": UNIT, "delta": DELTA_UNIT, "rho": UNIT}
KEYS: Final = ("delta", "epsilon", "kind", "relation", "rho")


@dataclass(frozen=True, init=False)
class Limit:
    """A promise about everything that is ever released about a subject, and about those below it.

    Of kind pure it bounds Σε, of kind approximate Σε and Σδ, and of kind zcdp Σρ, where pure releases count
    as ε²/2. With a `relation`, every release has to promise something under it; without, all have to share
    one. Nothing that was spent ever comes back. Amounts are rounded down to whole units. Raises
    `InvalidParameter` for amounts that do not belong to the kind, or are not above 0. Source: docs, "Ledger".

    >>> limit = Limit("pure", epsilon=3)
    >>> limit.in_words(), limit.fits(Cost.parse("2500000 6250000000000 0 0")), limit.left(Cost())
    ('epsilon 3', True, {'epsilon': Fraction(3, 1)})
    """

    kind: str
    units: tuple[int, ...]
    relation: Relation | None

    def __init__(
        self,
        kind: str,
        *,
        epsilon: Number | None = None,
        delta: Number | None = None,
        rho: Number | None = None,
        relation: Relation | None = None,
    ) -> None:
        if kind not in FIELDS:
            raise InvalidParameter("kind", kind, "has no limits", hint=f"one of {', '.join(FIELDS)}")
        given = {"epsilon": epsilon, "delta": delta, "rho": rho}
        for name, value in given.items():
            if (value is not None) != (name in FIELDS[kind]):
                problem = "is missing" if name in FIELDS[kind] else "does not belong"
                raise InvalidParameter(name, value, f"{problem} in a limit of kind {kind}", hint="see Limit")
        object.__setattr__(self, "kind", kind)
        object.__setattr__(self, "units", tuple(_units(given[name], name) for name in FIELDS[kind]))
        object.__setattr__(self, "relation", relation)

    @classmethod
    def concentrated(cls, epsilon: Number, delta: Number, relation: Relation | None = None) -> Limit:
        """Return the limit on ρ that keeps releases to (ε, δ): the largest such ρ (`zcdp_rho`), rounded down.

        It takes more small releases than (ε, δ) itself, and none with a δ of their own.

        >>> Limit.concentrated(3, "1e-6").in_words()
        'rho 0.185069'
        """
        return cls("zcdp", rho=zcdp_rho(epsilon, delta), relation=relation)

    @property
    def slot(self) -> tuple[str, str]:
        """Kind and relation: a limit replaces an earlier one with the same."""
        return self.kind, "" if self.relation is None else relation_text(self.relation)

    @property
    def amounts(self) -> dict[str, Fraction]:
        names = FIELDS[self.kind]
        return {name: Fraction(u, UNITS[name]) for name, u in zip(names, self.units, strict=True)}

    def used(self, cost: Cost) -> dict[str, Fraction]:
        """Return what `cost` takes of each amount."""
        sums = {"epsilon": Fraction(cost.epsilon, UNIT), "delta": Fraction(cost.delta, DELTA_UNIT)}
        sums["rho"] = cost.as_rho
        return {name: sums[name] for name in FIELDS[self.kind]}

    def fits(self, cost: Cost) -> bool:
        """Whether releases of this cost in total keep to the amounts."""
        return not self.foreign(cost) and not self.exceeded(cost)

    def foreign(self, cost: Cost) -> list[str]:
        """Return the names of amounts in `cost` that this kind of limit never bounds."""
        return [name for name in UNBOUNDED[self.kind] if getattr(cost, name)]

    def left(self, cost: Cost) -> dict[str, Fraction]:
        """Return what fits beside `cost`, by name: of each amount, and the ε of a pure release in any case.

        >>> Limit("approximate", epsilon=12, delta="1e-5").left(Cost(epsilon=10**6, delta=10**9))
        {'epsilon': Fraction(11, 1), 'delta': Fraction(9, 1000000)}
        >>> Limit("zcdp", rho=1).left(Cost.parse("500000 250000000000 0 0"))
        {'rho': Fraction(7, 8), 'epsilon': Fraction(10583, 8000)}
        """
        if not self.fits(cost):
            return dict.fromkeys((*FIELDS[self.kind], "epsilon"), Fraction(0))
        used = self.used(cost)
        rest = {name: most - used[name] for name, most in self.amounts.items()}
        if self.kind == "zcdp":
            epsilon = Fraction(isqrt(floor(rest["rho"] * 2 * UNIT**2)), UNIT)  # ε²/2 = ρ
            return {"rho": Fraction(floor(rest["rho"] * UNIT), UNIT), "epsilon": epsilon}
        return rest

    def exceeded(self, cost: Cost) -> dict[str, Fraction]:
        """Return by how much `cost` is beyond the amounts, by name, as after a limit was lowered."""
        used = self.used(cost)
        return {name: used[name] - most for name, most in self.amounts.items() if used[name] > most}

    def check(self, subject: str, total: Total, asked: Cost) -> None:
        """Raise `BudgetRefused` unless a release fits; `total` is everything together with it.

        `BudgetExceeded` if only the amount is too large.
        """
        if total.mixed:
            raise BudgetRefused(
                f"the releases of {subject} have no neighbours in common, so they have no total",
                hint="give releases under another relation a subject of their own",
            )
        if self.relation and total.relation and not total.relation.implies(self.relation):
            raise BudgetRefused(
                f"the limit of {subject} is for {self.relation}, and {total.relation} promises nothing there",
                hint="choose another neighbourhood, or a limit for this relation",
            )
        for name in self.foreign(total.cost):
            own = "this release has" if getattr(asked, name) else f"earlier releases of {subject} have"
            raise BudgetRefused(
                f"the limit of {subject} is for {' and '.join(FIELDS[self.kind])}, and {own} a {name}",
                hint=f"give releases with a {name} a subject of their own, with a limit for it",
            )
        over = self.exceeded(total.cost)
        if not over:
            return
        # what is told is δ where that is exceeded, and else the amount that comes first
        unit = [*over][-1] if self.kind == "approximate" else FIELDS[self.kind][0]
        earlier = total.cost - asked
        before = self.used(earlier)
        left = {name: max(Fraction(0), most - before[name]) for name, most in self.amounts.items()}
        fits = None
        if self.kind == "zcdp" and not asked.rho:
            fits = f"epsilon {show_left(self.left(earlier)['epsilon'])}"
        price = show(self.used(asked)[unit])
        raise BudgetExceeded(subject=subject, asked=price, left=show_left(left[unit]), unit=unit, fits=fits)

    def in_words(self) -> str:
        """Return the amounts and the relation in one clause."""
        told = " and ".join(f"{name} {show(value)}" for name, value in self.amounts.items())
        return told if self.relation is None else f"{told}, {self.relation}"

    def standing(self, used: Cost) -> str:
        """Return the limit in words, with what `used` leaves of it, or by how much it is exceeded."""
        if over := self.exceeded(used):
            told = " and ".join(f"{name} {show(value)}" for name, value in over.items())
            return f"limit {self.in_words()}, exceeded by {told}"
        left = self.left(used)
        shown = [show_left(left[name]) for name in FIELDS[self.kind]]
        told = shown[0] if len(shown) == 1 else f"epsilon {shown[0]} and delta {shown[1]}"
        return f"limit {self.in_words()}, left {told}"

    def to_json(self, used: Cost | None = None) -> dict[str, Json]:
        numbers: dict[str, Json] = {name: to_json(value) for name, value in self.amounts.items()}
        told = {"kind": self.kind, **numbers, "relation": self.slot[1] or None}
        if used is None:
            return told
        over: dict[str, Json] = {name: to_json(value) for name, value in self.exceeded(used).items()}
        return {**told, "left": to_json(self.left(used)[FIELDS[self.kind][0]]), "exceeded": over}

    def entry(self) -> dict[str, Json]:
        """Return the limit for an entry, in whole units."""
        amounts = dict(zip(FIELDS[self.kind], self.units, strict=True))
        return {**dict.fromkeys(KEYS), **self.to_json(), **amounts}

    @classmethod
    def from_json(cls, data: Any, where: str = "limit") -> Limit:
        """Return the limit of `entry`; raises `ValueError` for anything else."""
        if not isinstance(data, dict) or sorted(data) != [*KEYS]:
            raise ValueError("no limit")
        try:
            amounts: dict[str, Any] = {
                n: None if data[n] is None else Fraction(parse_amount(data[n]), u) for n, u in UNITS.items()
            }
            relation = None if data["relation"] is None else read_relation(data["relation"])
            return cls(data["kind"], **amounts, relation=relation)
        except (UnsupportedRelation, TypeError) as error:
            raise ValueError("no limit") from error


def show_left(amount: Fraction) -> str:
    """Return an amount that is left for display, rounded down to four decimals, or as many digits below 1.

    Prices have no more, so that they can be compared.

    >>> show_left(Fraction(2, 3)), show_left(Fraction(0)), show_left(Fraction(4989013877, 10**7))
    ('0.6666', '0', '498.9013')
    """
    whole_digits = len(str(int(amount))) if amount >= 1 else 0
    return show(-amount, min(4 + whole_digits, 15)).removeprefix("-")


def _units(value: Number | None, name: str) -> int:
    number = few_digits(exact(value, name), name)
    most = 1 if name == "delta" else LARGEST_EPSILON
    units = floor(number * UNITS[name])
    if not 0 < number <= most or not units:
        problem = "is not above 0" if number <= 0 else f"is not from 1/{UNITS[name]} to {most}"
        raise InvalidParameter(name, value, problem, hint="such as 3" if name != "delta" else "such as 1e-6")
    return units


@dataclass(frozen=True)
class Account:
    """What was spent and is reserved for a subject and those below it, and its limits.

    `parents` are the accounts of the subjects above it that have limits, from the top: theirs hold as well.
    It is `known` once a limit was set for it, or anything spent for it or below.
    """

    subject: str
    spent: Total
    reserved: Total
    limits: tuple[Limit, ...]
    parents: tuple[Account, ...] = ()
    known: bool = True

    @property
    def used(self) -> Cost:
        """What was spent and is reserved together."""
        return (self.spent + self.reserved).cost

    @property
    def limited(self) -> bool:
        """Whether a limit is on the path, without which nothing may be spent."""
        return bool(self.limits or self.parents)

    @property
    def left(self) -> dict[str, Fraction]:
        """The largest ε of a pure release that every limit on the path has room for, and the largest ρ or δ.

        There is a ρ if all limits bound ρ, a δ if all bound δ, and nothing without a limit.
        """
        held = [limit.left(each.used) for each in (*self.parents, self) for limit in each.limits]
        common = [name for name in ("epsilon", "rho", "delta") if held and all(name in one for one in held)]
        return {name: min(one[name] for one in held) for name in common}

    def in_words(self) -> str:
        """Return what was spent and is reserved, every limit on the path, and what all of them leave."""
        scope = " for what all its releases cover" if self.spent.cost != Cost() else ""
        parts = [f"{self.subject}: spent {amounts_in_words(self.spent)}{scope}"]
        if self.reserved.cost != Cost():
            parts.append(f"reserved {amounts_in_words(self.reserved)}")
        return "; ".join([*parts, self.limits_in_words()])

    def limits_in_words(self) -> str:
        """Return the limits of the whole path, and what all of them leave together."""
        told = [limit.standing(self.used) for limit in self.limits] or ["no limit of its own"]
        above = ((each, limit) for each in self.parents for limit in each.limits)
        told += [f"{each.subject}: {limit.standing(each.used)}" for each, limit in above]
        if self.parents:
            both = " and " if "delta" in self.left else " or "
            left = both.join(f"{name} {show_left(value)}" for name, value in self.left.items())
            told.append(f"in all {left} is left")
        return "; ".join(told)

    def to_json(self) -> dict[str, Json]:
        """Return the document of `dpveil ledger show`: `limit` is the first one, and `limits` are all.

        `left` is what all limits on the path leave, with those of the `parents`.
        """
        own = self._own_json()
        limits: Any = own["limits"]
        return {
            **own,
            "limit": dict(limits[0]) if limits else {},
            "parents": [each._own_json() for each in self.parents],
            "left": {name: to_json(value) for name, value in self.left.items()},
        }

    def _own_json(self) -> dict[str, Json]:
        return {
            "subject": self.subject,
            "spent": self.spent.to_json(),
            "reserved": self.reserved.to_json(),
            "limits": [limit.to_json(self.used) for limit in self.limits],
        }


def amounts_in_words(total: Total) -> str:
    """Return sums and their relation in words."""
    numbers, relation = total.cost.to_json(), total.relation_text()
    told = [f"{name} {value}" for name, value in numbers.items() if value or name == "epsilon"]
    about = "no common neighbours" if total.mixed else relation
    return " and ".join(told) + (f" ({about})" if relation else "")


@dataclass(frozen=True)
class Paid:
    """Who paid for a file, by which draw, how much, and in which entry."""

    subject: str
    draw: int
    cost: Total
    entry: int
