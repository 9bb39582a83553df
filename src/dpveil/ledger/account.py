"""What a ledger says about a subject, and about a file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from dpveil.core.numbers import Json, show, to_json
from dpveil.ledger.amounts import Cost, Total
from dpveil.ledger.limits import Limit, show_left


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
        held = [(limit, each.used) for each in (*self.parents, self) for limit in each.limits]
        found = {"epsilon": min(limit.left_epsilon(used) for limit, used in held)} if held else {}
        kinds = {limit.kind for limit, _ in held}
        if kinds == {"zcdp"}:
            found["rho"] = min(limit.left(used) for limit, used in held)
        if kinds == {"approximate"}:
            found["delta"] = min(limit.left_delta(used) for limit, used in held)
        return found

    def in_words(self) -> str:
        """Return what was spent and is reserved, every limit on the path, and what all of them leave."""
        scope = " for what all its releases cover" if _is_some(self.spent) else ""
        parts = [f"{self.subject}: spent {amounts_in_words(self.spent)}{scope}"]
        if _is_some(self.reserved):
            parts.append(f"reserved {amounts_in_words(self.reserved)}")
        return "; ".join([*parts, self.limits_in_words()])

    def limits_in_words(self) -> str:
        """Return the limits of the whole path, and what all of them leave together."""
        told = _limits(self.limits, self.used) or ["no limit of its own"]
        for each in self.parents:
            told += [f"{each.subject}: {words}" for words in _limits(each.limits, each.used)]
        if self.parents:
            both = " and " if "delta" in self.left else " or "
            left = both.join(f"{name} {show_left(value)}" for name, value in self.left.items())
            told.append(f"in all {left} is left")
        return "; ".join(told)

    def to_json(self) -> dict[str, Json]:
        """Return the document of `dpveil ledger show`: `limit` is the first one, and `limits` are all.

        `left` is what all limits on the path leave, with those of the `parents`.
        """
        limits = [limit_json(limit, self.used) for limit in self.limits]
        return {
            "subject": self.subject,
            "spent": self.spent.to_json(),
            "reserved": self.reserved.to_json(),
            "limit": dict(limits[0]) if limits else {},
            "limits": list(limits),
            "parents": [each._own_json() for each in self.parents],
            "left": {name: to_json(value) for name, value in self.left.items()},
        }

    def _own_json(self) -> dict[str, Json]:
        """Return the same of a parent, whose own path is that of its subject."""
        told = self.to_json()
        return {name: told[name] for name in ("subject", "spent", "reserved", "limits")}


def amounts_in_words(total: Total) -> str:
    """Return sums and their relation in words."""
    numbers, relation = total.cost.to_json(), total.relation_text()
    told = [f"{name} {value}" for name, value in numbers.items() if value or name == "epsilon"]
    about = "no common neighbours" if total.mixed else relation
    return " and ".join(told) + (f" ({about})" if relation else "")


def _is_some(total: Total) -> bool:
    return bool(total.cost.epsilon or total.cost.rho or total.cost.delta)


def _limits(limits: Sequence[Limit], used: Cost) -> list[str]:
    """Return each limit in words, with what is left of it, or by how much it is exceeded."""
    told = []
    for limit in limits:
        over = " and ".join(f"{name} {show(value)}" for name, value in limit.exceeded(used).items())
        left = f"left {limit.left_in_words(used)}"
        told.append(f"limit {limit.in_words()}, {f'exceeded by {over}' if over else left}")
    return told


def limit_json(limit: Limit, used: Cost) -> dict[str, Any]:
    """Return a limit with what is left of it, and by how much it is exceeded."""
    over = {name: to_json(value) for name, value in limit.exceeded(used).items()}
    return {**limit.to_json(), "left": to_json(limit.left(used)), "exceeded": over}


@dataclass(frozen=True)
class Paid:
    """Who paid for a file, by which draw, how much, and in which entry."""

    subject: str
    draw: int
    cost: Total
    entry: int
