"""A query about a column before anything is drawn, and its result."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Final

from dpveil.core.guarantee import Guarantee, Scope, counted
from dpveil.core.numbers import Json, to_json
from dpveil.mechanisms.scalar import ScalarMechanism
from dpveil.noise.bits import SECURE, BitSource, SecureBits, check_bits, kind_of
from dpveil.numbers.expected import answers_of, utility

WHOLE: Final = ("count", "histogram")
"""Queries whose true answers are whole numbers."""
SEEDED = "NOT FOR PUBLICATION: the bits follow from a seed, so whoever knows it can take the noise off"


@dataclass(frozen=True)
class Answer:
    """The private answer to one query about a column of `rows` records: a number, or one per bin.

    `guarantee` covers the whole `response`, `mechanism` drew each number, `edges` are the public bins of a
    histogram, and `bits` is the kind of bit source.
    """

    query: str
    response: float | tuple[float, ...]
    rows: int
    guarantee: Guarantee
    mechanism: ScalarMechanism
    bits: str
    edges: tuple[Fraction, ...] | None = None

    def __repr__(self) -> str:
        """Return the response and its guarantee in one line."""
        return f"Answer({self.query}, {self.response}, {self.guarantee})"

    @property
    def expected_error(self) -> float:
        """The expected absolute error of each number, in its units: an average over the public range."""
        asked = answers_of(self.mechanism.range, self.mechanism.sensitivity, whole=self.query in WHOLE)
        return utility(self.mechanism, asked, remapping=False).mean

    @property
    def warnings(self) -> tuple[str, ...]:
        """Reasons not to publish it."""
        return () if self.bits == SECURE else (SEEDED,)

    def to_json(self) -> dict[str, Json]:
        """Return the JSON object; only the response depends on the data."""
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
            "expected_error": self.expected_error,
            "parameters": self.mechanism.parameters(),
            "bits": self.bits,
            "warnings": list(self.warnings),
        }


@dataclass(frozen=True)
class Plan:
    """One query about a column of `rows` records; `mechanism` draws each of the true `answers` independently.

    The answers are private and exact; everything else is public and the same for every column of that length.
    `guarantee` covers all answers together, and `edges` are the bins of a histogram.
    """

    query: str
    answers: tuple[Fraction, ...]
    rows: int
    guarantee: Guarantee
    mechanism: ScalarMechanism
    edges: tuple[Fraction, ...] | None = None

    def __repr__(self) -> str:
        """Return the guarantee but no answer, as representations end up in logs."""
        return f"Plan({self.query} of {counted(self.rows, 'row')}, {self.mechanism.name}, {self.guarantee})"

    def release(self, bits: BitSource | None = None) -> Answer:
        """Draw every response; each call draws anew and costs the full guarantee again.

        `bits=None` uses a fresh `SecureBits`. Raises `InvalidParameter` if `bits` is not a bit source.
        """
        source = SecureBits() if bits is None else check_bits(bits)
        response: float | tuple[float, ...]
        if self.edges is None:
            response = float(self.mechanism.release(self.answers[0], source))
        else:
            response = tuple(float(found) for found in self.mechanism.release(list(self.answers), source))
        return Answer(
            self.query, response, self.rows, self.guarantee, self.mechanism, kind_of(source), self.edges
        )


def about(guarantee: Guarantee, covers: str, clear: tuple[str, ...]) -> Guarantee:
    """Return a mechanism's guarantee with the scope of the query that it was used for."""
    kept = tuple(words for words in guarantee.scope.in_the_clear if words not in clear)
    return replace(guarantee, scope=Scope(covers, (*clear, *kept)))
