"""What a query gives back: the released numbers and what they promise, and nothing else about the data."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction

from dpveil.core.guarantee import Guarantee, Scope
from dpveil.core.numbers import Json, to_json
from dpveil.mechanisms.scalar import ScalarMechanism
from dpveil.noise.bits import SECURE

SEEDED = "NOT FOR PUBLICATION: the bits follow from a seed, so whoever knows it can take the noise off"


@dataclass(frozen=True)
class Answer:
    """One private answer about a column of `rows` records: `response` is a number, or one for each bin.

    `guarantee` is about all of it, `mechanism` drew each number, `edges` are a histogram's public bins, and
    `bits` says what kind they were.
    """

    query: str
    response: float | tuple[float, ...]
    rows: int
    guarantee: Guarantee
    mechanism: ScalarMechanism
    bits: str
    edges: tuple[Fraction, ...] | None = None

    @property
    def warnings(self) -> tuple[str, ...]:
        """What speaks against publishing it."""
        return () if self.bits == SECURE else (SEEDED,)

    def to_json(self) -> dict[str, Json]:
        """Return the JSON document: nothing in it is of the data but the response."""
        shown: Json = list(self.response) if isinstance(self.response, tuple) else self.response
        named = "responses" if isinstance(self.response, tuple) else "response"
        edges: dict[str, Json] = {} if self.edges is None else {"edges": [to_json(e) for e in self.edges]}
        return {
            "query": self.query,
            **edges,
            named: shown,
            "rows": self.rows,
            "guarantee": self.guarantee.to_json(),
            "mechanism": self.mechanism.name,
            "parameters": self.mechanism.parameters(),
            "bits": self.bits,
            "warnings": list(self.warnings),
        }


def about(guarantee: Guarantee, covers: str, clear: tuple[str, ...]) -> Guarantee:
    """Return a mechanism's guarantee with the words of the query that it was used for."""
    kept = tuple(words for words in guarantee.scope.in_the_clear if words not in clear)
    return replace(guarantee, scope=Scope(covers, (*clear, *kept)))
