"""Randomised response over k values: the true one is kept with a probability that follows from ε."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import ClassVar, Final

import numpy as np
from jaxtyping import Int64

from dpveil.core.guarantee import Guarantee, Relation, Scope
from dpveil.core.parameters import Count, Positive
from dpveil.errors import InvalidParameter
from dpveil.noise.bits import BitSource
from dpveil.noise.laplace import exp_below
from dpveil.noise.matrix import IntegerMatrix, certified

DIGITS: Final = 128
"""Bits of precision for e^-ε; the integers that are drawn are certified themselves."""
MOST: Final = 256
"""Largest number of values."""


@dataclass(frozen=True, kw_only=True)
class RandomisedResponse:
    """The true value is kept with probability e^ε/(e^ε + k - 1), else replaced by another, uniformly.

    `epsilon` is the budget and `values` the number k of values, 2 to 256. Pure ε-DP for any two inputs: each
    output y has one of two probabilities, a = e^ε/(e^ε + k - 1) if y is true and b = 1/(e^ε + k - 1) if not,
    so P(y | x)/P(y | x') is 1, a/b = e^ε or b/a = e^-ε for all x and x'. No mechanism keeps the true value
    more often at the same ε (Kairouz, Oh & Viswanath 2016). Draws follow the integers of `matrix`, in units
    of 2^-64, whose largest ratio is at most e^ε. Raises `InvalidParameter`. Source: Warner 1965; Kairouz, Oh
    & Viswanath 2016.

    >>> method = RandomisedResponse(epsilon=2, values=4)
    >>> round(float(method.kept), 4)
    0.7112
    """

    name: ClassVar[str] = "randomised-response"
    kind: ClassVar[str] = "pure"
    summary: ClassVar[str] = "a value of k is kept, or replaced by another one"
    source: ClassVar[str] = "Warner 1965; Kairouz, Oh & Viswanath 2016"

    epsilon: Positive = Positive()
    values: Count = Count(low=2, high=MOST)

    def guarantee(self) -> Guarantee:
        """Return ε for any two inputs, whatever the value was computed from."""
        scope = Scope(f"one of {self.values} values")
        return Guarantee(kind="pure", epsilon=self.epsilon, relation=Relation("any-image"), scope=scope)

    @property
    def kept(self) -> Fraction:
        """The probability that the true value is kept, exactly as drawn."""
        return Fraction(self.matrix.weights[0][0], 1 << 64)

    @cached_property
    def matrix(self) -> IntegerMatrix:
        """The law: row x for the true value x. Above ε = 44 the other values keep a probability of 2^-64."""
        return certified(self._law, Fraction(self.epsilon))

    def _law(self, budget: Fraction) -> Sequence[Sequence[int]]:
        """Return weights in a common unit: 1 for the true value, slightly more than e^-ε for others."""
        other, true = exp_below(budget, DIGITS) + 3, 1 << DIGITS
        count: int = self.values
        return [[true if y == x else min(other, true) for y in range(count)] for x in range(count)]

    def draw(self, true: Int64[np.ndarray, " n"], bits: BitSource) -> Int64[np.ndarray, " n"]:
        """Return one independent answer per true value; each costs `epsilon`.

        `true` are int64 from 0 to k - 1. Raises `InvalidParameter` for others.
        """
        whole = true.dtype == np.int64 and true.ndim == 1
        if not whole or (len(true) and not 0 <= true.min() <= true.max() < self.values):
            raise InvalidParameter("true", None, f"are not int64 from 0 to {self.values - 1}")
        return self.matrix.sample(true, bits)
