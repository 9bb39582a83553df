"""A private choice among K public candidates by the rank of their distance to a private input.

*Proof that any law over ranks with p_max/p_min ≤ e^ε is ε-DP.* An input x orders the candidates in some way,
by distance with ties by index, or otherwise. Candidate y has some rank r(x, y), from 0 to K - 1, and is
chosen with probability p_r(x, y). The numbers p_0, …, p_(K-1) are fixed before any input is seen and sum to 1
over ranks, so no normalising constant depends on x. For any two inputs P(y | x)/P(y | x′) = p_r(x, y)/p_r(x′,
y) ≤ p_max/p_min. ∎ No sensitivity of the distance is needed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import ClassVar, Final

import numpy as np

from dpveil.core.array_types import Float64, Int64
from dpveil.core.guarantee import Guarantee, Relation, Scope
from dpveil.core.parameters import Count, OptionalCount, Positive
from dpveil.errors import InvalidParameter, NoiseError
from dpveil.noise.bits import BitSource
from dpveil.noise.integer_matrix import IntegerMatrix, certify_matrix, log_above
from dpveil.noise.laplace import exp_below

DIGITS: Final = 128  # bits of precision for e^-ε; the integers that are drawn are certified themselves
MOST_VALUES: Final = 256  # largest number of values


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
    >>> round(float(method.keep_probability), 4)
    0.7112
    """

    name: ClassVar[str] = "randomised-response"
    kind: ClassVar[str] = "pure"
    summary: ClassVar[str] = "a value of k is kept, or replaced by another one"
    source: ClassVar[str] = "Warner 1965; Kairouz, Oh & Viswanath 2016"

    epsilon: Positive = Positive()
    values: Count = Count(low=2, high=MOST_VALUES)

    def guarantee(self) -> Guarantee:
        """Return ε for any two inputs, whatever the value was computed from."""
        scope = Scope(f"one of {self.values} values")
        return Guarantee(kind="pure", epsilon=self.epsilon, relation=Relation("any-image"), scope=scope)

    @property
    def keep_probability(self) -> Fraction:
        """The probability that the true value is kept, exactly as drawn."""
        return Fraction(self.matrix.weights[0][0], 1 << 64)

    @cached_property
    def matrix(self) -> IntegerMatrix:
        """The law: row x for the true value x. Above ε = 44 the other values keep a probability of 2^-64."""
        return certify_matrix(self._law, Fraction(self.epsilon))

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


BITS: Final = 62  # the weights of all ranks sum to less than 2^62, so that one 64-bit word draws a rank
FINE: Final = 320  # bits of precision of exponentials
OFF: Final = 3  # `exp_below` is too low by less than this many units
Weights = tuple[int, ...]


def two_level(count: int, epsilon: Fraction, near: int | None) -> Weights:
    """Return weight e^ε for the `near` nearest candidates and 1 for all others.

    With the best `near`, no law with p_max/p_min ≤ e^ε has a smaller mean of any cost that grows with the
    rank: with the smallest weight set to 1, the mean Σ w_r·c_r / Σ w_r over w in [1, e^ε]^K is monotone in
    each w_r, so it is minimal where each is 1 or e^ε, with the larger weights at the smaller costs. None
    chooses the `near` with the smallest mean rank.
    """
    scale = max(0, BITS - 1 - count.bit_length() - int(epsilon * 3 / 2))  # e^ε is below 2^(3ε/2)
    low, high = 1 << scale, exp_of(epsilon, scale)
    nearest = _best(count, low, high) if near is None else near
    return (high,) * nearest + (low,) * (count - nearest)


def _best(count: int, low: int, high: int) -> int:
    """Return how many candidates get the higher weight for the smallest mean rank."""
    every = count * (count - 1) // 2

    def mean(near: int) -> Fraction:
        inside = near * (near - 1) // 2
        return Fraction(high * inside + low * (every - inside), high * near + low * (count - near))

    return min(range(1, count), key=mean)


@dataclass(frozen=True, kw_only=True)
class RankChoice:
    """One of `count` public candidates, drawn by the rank of its distance: ε-DP for any two inputs.

    The law is `two_level`, the best. `near` is the number of nearest candidates with the higher weight; None
    minimises the mean rank. Raises `InvalidParameter`, and `NoiseError` for budgets beyond 62-bit weights.

    >>> RankChoice(count=3, epsilon=1, near=1).probabilities[0] < 0.577  # e/(e + 2) is 0.5761
    True
    """

    count: Count = Count(low=2, high=1 << 15)
    epsilon: Positive = Positive()
    near: OptionalCount = OptionalCount(optional=True)

    def __post_init__(self) -> None:
        if self.near is not None and self.near >= self.count:
            problem = f"does not fit {self.count} candidates"
            raise InvalidParameter("near", self.near, problem, hint="give fewer than there are")

    @property
    def weights(self) -> Weights:
        """Integer weights of the ranks, the nearest first: the law itself."""
        return _certify_weights(self.count, self.epsilon, self.near)

    @property
    def probabilities(self) -> tuple[Fraction, ...]:
        """The probability of every rank, exactly."""
        total = sum(self.weights)
        return tuple(Fraction(weight, total) for weight in self.weights)

    @property
    def spent(self) -> Fraction:
        """ln(p_max/p_min) of the integer weights, rounded up: at most `epsilon`."""
        return log_ratio(self.weights)

    def choose(self, distances: Float64[np.ndarray, "n k"], bits: BitSource) -> Int64[np.ndarray, " n"]:
        """Return the index of one candidate for every row of distances; each row costs `epsilon`.

        Ties go by index. Raises `InvalidParameter` unless distances are finite, n × `count`.
        """
        if distances.ndim != 2 or distances.shape[1] != self.count or not np.isfinite(distances).all():
            shape = f"are not finite numbers, n × {self.count}"
            raise InvalidParameter("distances", str(distances.shape), shape, hint="one for each candidate")
        ranks = self.ranks(len(distances), bits)
        order = np.argsort(distances, axis=1, kind="stable")
        return np.asarray(order[np.arange(len(distances)), ranks])

    def ranks(self, size: int, bits: BitSource) -> Int64[np.ndarray, " size"]:
        """Return `size` independent ranks, 0 for the nearest, with exactly the law of the weights."""
        ends = np.cumsum(np.array(self.weights, np.uint64))
        shift = np.uint64(64 - int(ends[-1]).bit_length())
        out, left = np.empty(size, np.int64), size
        while left:
            words = bits.words(left) >> shift
            kept = words[words < ends[-1]]  # rejection sampling: uniform below the total
            out[size - left : size - left + len(kept)] = np.searchsorted(ends, kept, side="right")
            left -= len(kept)
        return out


def exp_of(epsilon: Fraction, units: int) -> int:
    """Return ⌊e^ε·2^units⌋ or slightly less, never more."""
    precision = FINE + int(3 * epsilon)
    return (1 << units + precision) // (exp_below(epsilon, precision) + OFF)


def log_ratio(weights: Weights) -> Fraction:
    """Return the logarithm of the largest ratio of two weights, rounded up."""
    return log_above(Fraction(max(weights), min(weights)))


@lru_cache(maxsize=64)
def _certify_weights(count: int, epsilon: Fraction, near: int | None) -> Weights:
    """Return the integer weights, checked to keep ε. Raises `NoiseError` if they do not."""
    refusal = NoiseError(
        f"62-bit weights cannot carry a budget of {float(epsilon):.4g} over {count} candidates",
        hint="lower epsilon",
    )
    if epsilon > BITS:
        raise refusal
    weights = two_level(count, epsilon, near)
    if min(weights) < 1 or sum(weights) >= 1 << BITS or log_ratio(weights) > epsilon:
        raise refusal
    return weights
