"""Exact sampling with irrational probabilities: integer weights first, further digits on demand.

Each probability p_j is split into ⌊2^63·p_j⌋ and a remainder below one unit. The integers go into an alias
table, together with one more outcome, the tie, that holds all remainders. A tie comes up with probability
2^-52 or so for the tables used here; only then are the remainders computed, to as many bits as the comparison
needs. The result has exactly the law p, so nothing is added to δ.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import numpy as np
from jaxtyping import UInt64

from dpveil.errors import NoiseError
from dpveil.noise.bernoulli import build_alias
from dpveil.noise.bits import BitSource

Law = Callable[[int], Sequence[tuple[int, int]]]
"""Bounds on every probability p at a given precision: low ≤ p·2^precision < high, or both equal."""

FIRST_PRECISION: Final = 160
"""Bits at which probabilities are computed first."""
MOST_PRECISION: Final = 6000
"""Bits of precision beyond which a draw gives up with `NoiseError`."""


class LazyTable:
    """An alias table for `law`, in which the last outcome, `tie`, stands for all remainders.

    `law(precision)` bounds the probabilities of the outcomes 0, 1, ..., and its bounds shrink as precision
    grows. Raises `NoiseError` for 2^column_bits outcomes or more. Tests pass fewer `total_bits`, which make
    ties common.
    """

    def __init__(self, law: Law, *, total_bits: int, column_bits: int) -> None:
        self.law = law
        self.total_bits = total_bits
        self.tie = (1 << column_bits) - 1
        self.weights = self._floors()
        if len(self.weights) > self.tie:
            raise NoiseError(f"{len(self.weights)} outcomes leave no column for ties")
        self.rest = (1 << total_bits) - sum(self.weights)
        padded = [*self.weights, *([0] * (self.tie - len(self.weights))), self.rest]
        self.packed: UInt64[np.ndarray, " columns"]
        self.packed = build_alias(padded, total_bits=total_bits, column_bits=column_bits)

    def _floors(self) -> list[int]:
        """Return ⌊2^total_bits · p⌋ of every outcome, from bounds tight enough to be certain of it."""
        precision = FIRST_PRECISION
        while precision <= MOST_PRECISION:
            shift = precision - self.total_bits
            bounds = self.law(precision)
            floors = [low >> shift for low, _ in bounds]
            if all(high <= (floor + 1) << shift for (_, high), floor in zip(bounds, floors, strict=True)):
                return floors
            precision *= 2
        raise NoiseError("a probability is too close to a multiple of the smallest weight to be told apart")

    def resolve(self, bits: BitSource) -> int:
        """Return the outcome of one tie, drawn with probability proportional to the remainders."""
        drawn, length = 0, 0
        while length < MOST_PRECISION:
            drawn = drawn << 64 | int(bits.words(1)[0])
            length += 64
            outcome = self._locate(drawn, length)
            if outcome is not None:
                return outcome
        raise NoiseError("a tie was not resolved")

    def _locate(self, drawn: int, length: int) -> int | None:
        """Return the outcome whose share of the remainders contains [drawn, drawn + 1) / 2^length, or None.

        Computed in units of 2^-precision of one weight, in which the drawn interval has integer ends.
        """
        precision = length + FIRST_PRECISION
        unit = 1 << (precision - self.total_bits)
        left = self.rest * drawn << (precision - self.total_bits - length)
        right = self.rest * (drawn + 1) << (precision - self.total_bits - length)
        below_low = below_high = 0
        for outcome, ((low, high), weight) in enumerate(zip(self.law(precision), self.weights, strict=True)):
            next_low, next_high = below_low + low - weight * unit, below_high + high - weight * unit
            if below_high <= left and right <= next_low:
                return outcome
            below_low, below_high = next_low, next_high
        return None
