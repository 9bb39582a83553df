"""What a query is going to draw, before anything is drawn: the answers, their mechanism and the promise."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction

from dpveil.core.guarantee import Guarantee
from dpveil.errors import InvalidParameter
from dpveil.mechanisms.scalar import ScalarMechanism
from dpveil.noise.bits import BitSource, kind_of
from dpveil.numbers.queries.answer import Answer


@dataclass(frozen=True)
class Plan:
    """One query about a column of `rows` records: `mechanism` draws each of the true `answers` by itself.

    The answers are private, and exact; all else is public and holds for every column of as many rows.
    `guarantee` is about all answers together, and `edges` are a histogram's bins.
    """

    query: str
    answers: tuple[Fraction, ...] = field(repr=False)
    rows: int
    guarantee: Guarantee
    mechanism: ScalarMechanism
    edges: tuple[Fraction, ...] | None = None

    def release(self, bits: BitSource) -> Answer:
        """Draw every response. Raises `InvalidParameter` for what is no source of bits."""
        if not isinstance(bits, BitSource):
            raise InvalidParameter(
                "bits", type(bits).__name__, "is not a source of bits", hint="dpveil.SecureBits()"
            )
        if self.edges is None:
            response = float(self.mechanism.release(self.answers[0], bits))
            return Answer(self.query, response, self.rows, self.guarantee, self.mechanism, kind_of(bits))
        responses = tuple(float(found) for found in self.mechanism.release(list(self.answers), bits))
        return Answer(
            self.query, responses, self.rows, self.guarantee, self.mechanism, kind_of(bits), self.edges
        )
