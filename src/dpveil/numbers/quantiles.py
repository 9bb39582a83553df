"""Quantiles of a column: the exponential mechanism over ranks (McSherry & Talwar 2007; Smith 2011)."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from itertools import accumulate
from math import ceil, floor
from typing import Any, ClassVar, Final

from dpveil.core.guarantee import Guarantee, Relation, Scope
from dpveil.core.numbers import Json, Number, exact, show, to_json, two_digits
from dpveil.errors import InvalidParameter
from dpveil.mechanisms.scalar import Range
from dpveil.mechanisms.scalar.base import RECORD
from dpveil.noise.bits import BitSource
from dpveil.noise.laplace import exp_below
from dpveil.numbers.expected_error import Plan
from dpveil.numbers.statistics import REPLACED, as_list, bounds, clip_values

DIGITS: Final = 128  # bits of the largest weight
OFF: Final = 3  # `exp_below` is too low by less than this many units
MOST: Final = 1 << 16  # points of the range that may be chosen, at most
DEFAULT_POINTS: Final = 1000


@dataclass(frozen=True, kw_only=True)
class RankExponential:
    """One point of a public range is chosen, the likelier the nearer its rank is to `quantile` · `rows`.

    Points are `step` apart. One that is k ranks off has the integer weight w_k, with w_0 = 2^128 and w_(k+1)
    = ⌈w_k·q⌉ for some q a little above e^(-ε/2).

    *Proof of ε for one replaced record.* Let t = quantile · rows, and let a point be
    ⌈max(0, #{x < c} - t, t - #{x ≤ c})⌉ ranks off. Another record changes each number by at most 1, and so
    the whole. By construction w_(k+1) ≤ w_k ≤ e^(ε/2)·w_(k+1), so each weight, and with them their sum,
    changes by a factor of at most e^(ε/2), and a point's probability by at most e^ε. ∎
    """

    name: ClassVar[str] = "rank-exponential"

    range: Range
    epsilon: Fraction
    step: Fraction
    quantile: Fraction
    rows: int

    @cached_property
    def points(self) -> tuple[Fraction, ...]:
        """The points that may be chosen. Raises `InvalidParameter` for too many."""
        low, width = self.range.low or Fraction(0), self.range.width or Fraction(0)
        count = floor(width / self.step) + 1
        if not 2 <= count <= MOST:
            hint = f"such as {show(two_digits(width / DEFAULT_POINTS))}"
            raise InvalidParameter(
                "step", show(self.step), f"leaves {count} points, not 2 to {MOST}", hint=hint
            )
        return tuple(low + place * self.step for place in range(count))

    @cached_property
    def weights(self) -> tuple[int, ...]:
        """The weight of a point by how many ranks it is off, from 0 to `rows`."""
        ratio = min(exp_below(self.epsilon / 2, DIGITS) + OFF, 1 << DIGITS)
        found = [1 << DIGITS]
        for _ in range(self.rows):
            found.append(-(-found[-1] * ratio >> DIGITS))
        return tuple(found)

    def law(self, values: Sequence[Fraction]) -> list[int]:
        """Return the weight of every point for a column; private."""
        ordered, wanted = sorted(values), self.quantile * self.rows
        off = (
            max(0, ceil(bisect_left(ordered, point) - wanted), ceil(wanted - bisect_right(ordered, point)))
            for point in self.points
        )
        return [self.weights[ranks] for ranks in off]

    def release(self, values: Sequence[Fraction], bits: BitSource) -> Fraction:
        """Return a point, drawn exactly by its weight."""
        upto = list(accumulate(self.law(values)))
        size = upto[-1].bit_length()
        words = -(-size // 64)
        while True:
            drawn = int.from_bytes(bits.words(words).tobytes(), "little") >> 64 * words - size
            if drawn < upto[-1]:
                return self.points[bisect_right(upto, drawn)]

    def parameters(self) -> dict[str, Json]:
        """Return every parameter as JSON."""
        return {
            "range": str(self.range), "epsilon": to_json(self.epsilon), "step": to_json(self.step),
            "quantile": to_json(self.quantile),
        }  # fmt: skip


def quantile(
    values: Iterable[Any],
    q: Number,
    *,
    range: Any,  # noqa: A002  the public range of the values
    epsilon: Number,
    missing: Number | None = None,
    step: Number | None = None,
) -> Plan:
    """Plan a private quantile of a column: the value below which a share `q`, 0 to 1, of the rows lies.

    The response is one of the points of the range that are `step` apart, by default a thousandth of it.
    Values are clipped to the range and moved to the nearest point; missing ones count as `missing`. Raises
    as `mean` does. Source: McSherry & Talwar 2007; Smith 2011.

    >>> from dpveil.noise.bits import SeededBits
    >>> plan = quantile([23, 31, 47, 62, 35] * 40, 0.5, range=(0, 120), epsilon=1, step=1)
    >>> str(plan.guarantee), plan.release(SeededBits(3)).response
    ('1-DP, database-record', 35.0)
    """
    rows, allowed = as_list(values), bounds(range)
    share = exact(q, "q")
    if not 0 <= share <= 1:
        raise InvalidParameter("q", show(share), "is no share", hint="from 0 to 1; 0.5 is the median")
    fine = (
        two_digits((allowed.width or Fraction(0)) / DEFAULT_POINTS) if step is None else exact(step, "step")
    )
    budget = exact(epsilon, "epsilon")
    for name, given in (("epsilon", budget), ("step", fine)):
        if given <= 0:
            raise InvalidParameter(name, show(given), "is not above 0")
    drawn = RankExponential(range=allowed, epsilon=budget, step=fine, quantile=share, rows=len(rows))
    _ = drawn.points, drawn.weights
    low, last = drawn.points[0], len(drawn.points) - 1
    # Between two points many equal values would make every point as bad as any other.
    nearest = (min(last, round((value - low) / fine)) for value in clip_values(rows, allowed, missing))
    numbers = [drawn.points[place] for place in nearest]
    covers = f"the {show(share)} quantile of {len(rows)} values, clipped to {allowed}; {REPLACED}"
    clear = (f"the number of rows, {len(rows)}, and the query with its range and step",)
    guarantee = Guarantee(kind="pure", epsilon=budget, relation=Relation(RECORD), scope=Scope(covers, clear))
    return Plan("quantile", tuple(numbers), len(rows), guarantee, drawn)


def median(values: Iterable[Any], **settings: Any) -> Plan:
    """Plan a private median: `quantile` with q = 0.5, whose other arguments it takes."""
    return replace(quantile(values, Fraction(1, 2), **settings), query="median")
