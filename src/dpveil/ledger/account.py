"""What a ledger says about a subject, and about a file."""

from __future__ import annotations

from dataclasses import dataclass

from dpveil.core.numbers import Json, to_json
from dpveil.ledger.amounts import Total
from dpveil.ledger.limits import Limit


@dataclass(frozen=True)
class Account:
    """What was spent and is reserved for a subject and those below it, and its limits."""

    subject: str
    spent: Total
    reserved: Total
    limits: tuple[Limit, ...]

    def to_json(self) -> dict[str, Json]:
        """Return the document of `dpveil ledger show`: `limit` is the first one, and `limits` are all."""
        everything = (self.spent + self.reserved).cost
        limits = [{**each.to_json(), "left": to_json(each.left(everything))} for each in self.limits]
        return {
            "subject": self.subject,
            "spent": self.spent.to_json(),
            "reserved": self.reserved.to_json(),
            "limit": dict(limits[0]) if limits else {},
            "limits": list(limits),
        }


@dataclass(frozen=True)
class Paid:
    """Who paid for a file, by which draw, how much, and in which entry."""

    subject: str
    draw: int
    cost: Total
    entry: int
