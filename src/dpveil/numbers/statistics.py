"""Statistics of a column: the answer, its sensitivity and its mechanism.

These are count, total, mean, standard deviation, histogram, count by category, quantile and median.

Each function returns a `Plan`, which has drawn nothing; `Plan.release` draws. Neighbours are two tables with
the same number of rows, n, of which one holds another record; n is public. Proofs of the sensitivities are in
the documentation, "Your own data".
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property, lru_cache
from itertools import accumulate, pairwise
from math import ceil, floor, isqrt, log10
from typing import Any, ClassVar, Final

import numpy as np

from dpveil.core.guarantee import Distance, Guarantee, Relation, Scope, count_noun
from dpveil.core.rationals import Json, Number, exact, show, to_json, two_digits
from dpveil.errors import InvalidParameter
from dpveil.mechanisms.scalar import Range, ScalarMechanism
from dpveil.mechanisms.scalar.base import DATABASE_RECORD
from dpveil.noise.bits import SECURE, BitSource, SecureBits, bits_kind, check_bits
from dpveil.noise.laplace import exp_below
from dpveil.numbers.columns import as_list, bounds, clip_values, is_missing, number
from dpveil.numbers.expected_error import answers_of, build, choose, utility

WHOLE: Final = ("count", "histogram", "count-by")  # queries whose true answers are whole numbers
SEEDED = "NOT FOR PUBLICATION: the bits follow from a seed, so whoever knows it can take the noise off"


@dataclass(frozen=True)
class Answer:
    """The private answer to one query about a column of `rows` records: a number, or one per bin or group.

    `guarantee` covers the whole `response`, `mechanism` drew each number, `edges` are the public bins of a
    histogram, and `bits` is the kind of bit source.
    """

    query: str
    response: float | tuple[float, ...]
    rows: int
    guarantee: Guarantee
    mechanism: Any
    bits: str
    edges: tuple[Fraction, ...] | None = None
    groups: tuple[str, ...] | None = None

    def __repr__(self) -> str:
        """Return the response, with as many digits as its error allows, and its guarantee in one line."""
        return f"Answer({self.query}, {self.shown}, {self.guarantee})"

    @property
    def shown(self) -> str:
        """The response as text: its last digit is that of the first of its expected error."""
        error = self.expected_error
        places = 0 if self.query in WHOLE or not error else max(0, -floor(log10(error)))
        numbers = self.response if isinstance(self.response, tuple) else (self.response,)
        return ", ".join(f"{one:.10g}" if error is None else f"{one:.{places}f}" for one in numbers)

    @property
    def expected_error(self) -> float | None:
        """The expected absolute error of each number, in its units: an average over the public range.

        None for a quantile, whose error depends on how close the values lie.
        """
        if not isinstance(self.mechanism, ScalarMechanism):
            return None
        asked = answers_of(self.mechanism.range, self.mechanism.sensitivity, whole=self.query in WHOLE)
        return utility(self.mechanism, asked, remapping=False).mean

    @property
    def warnings(self) -> tuple[str, ...]:
        return () if self.bits == SECURE else (SEEDED,)

    def to_json(self) -> dict[str, Json]:
        """Return the JSON object; only the response depends on the data."""
        shown: Json = list(self.response) if isinstance(self.response, tuple) else self.response
        named = "responses" if isinstance(self.response, tuple) else "response"
        edges: dict[str, Json] = {} if self.edges is None else {"edges": [to_json(e) for e in self.edges]}
        if self.groups is not None:
            edges["groups"] = list(self.groups)
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
    mechanism: Any
    edges: tuple[Fraction, ...] | None = None
    groups: tuple[str, ...] | None = None

    def __repr__(self) -> str:
        """Return the guarantee but no answer, as representations end up in logs."""
        rows = count_noun(self.rows, "row")
        return f"Plan({self.query} of {rows}, {self.mechanism.name}, {self.guarantee})"

    def release(self, bits: BitSource | None = None) -> Answer:
        """Draw every response; each call draws anew and costs the full guarantee again.

        `bits=None` uses a fresh `SecureBits`. Raises `InvalidParameter` if `bits` is not a bit source.
        """
        source = SecureBits() if bits is None else check_bits(bits)
        one = self.edges is None and self.groups is None
        # a quantile is drawn from the whole column, and other numbers each from its own true answer
        alone = self.answers[0] if one and isinstance(self.mechanism, ScalarMechanism) else list(self.answers)
        drawn = self.mechanism.release(alone, source)
        response = float(drawn) if one else tuple(map(float, drawn))
        public = self.rows, self.guarantee, self.mechanism, bits_kind(source), self.edges, self.groups
        return Answer(self.query, response, *public)


def about(guarantee: Guarantee, covers: str, clear: tuple[str, ...]) -> Guarantee:
    """Return a mechanism's guarantee with the scope of the query that it was used for."""
    kept = tuple(words for words in guarantee.scope.in_the_clear if words not in clear)
    return replace(guarantee, scope=Scope(covers, (*clear, *kept)))


REPLACED = "neighbours have as many rows, one of them with another record"


def mean(
    values: Iterable[Any],
    *,
    range: Any,  # noqa: A002  the public range of the values
    epsilon: Number,
    mechanism: str | None = None,
    relation: str = DATABASE_RECORD,
    missing: Number | None = None,
    step: Number | None = None,
) -> Plan:
    """Plan a private mean of a column, within `range`.

    Values are clipped to the range (both ends public, in the values' units), and missing ones count as
    `missing`. One record of n changes the mean by at most (high - low)/n. `mechanism` is a name from the
    scalar table; the default has the least expected error. Raises `InvalidParameter`, and `DataError` for
    values that are missing or not numbers.

    >>> from dpveil.noise.bits import SeededBits
    >>> plan = mean([23, 31, 47, 62, 35], range=(0, 120), epsilon=1)
    >>> str(plan.guarantee), 0 <= plan.release(SeededBits(3)).response <= 120
    ('1-DP, database-record', True)
    """
    rows, allowed = as_list(values), bounds(range)
    query = {"range": allowed, "sensitivity": _width(allowed) / len(rows), "relation": relation}
    drawn = _mechanism(mechanism, whole=False, epsilon=epsilon, step=step, **query)
    numbers = clip_values(rows, allowed, missing)
    covers = f"the mean of {len(rows)} values, clipped to {allowed}; {REPLACED}"
    return _single_plan("mean", sum(numbers, Fraction(0)) / len(rows), drawn, len(rows), covers)


def total(
    values: Iterable[Any],
    *,
    range: Any,  # noqa: A002  the public range of the values
    epsilon: Number,
    groups: Iterable[Any] | None = None,
    categories: Sequence[Any] | None = None,
    mechanism: str | None = None,
    relation: str = DATABASE_RECORD,
    missing: Number | None = None,
    step: Number | None = None,
) -> Plan:
    """Plan a private sum of a column, or one for each of public `categories` of the column `groups`.

    One record changes the sum by at most high - low. By group, it leaves one sum and enters another, or moves
    one by at most high - low ≤ 2·max(|low|, |high|): each sum is drawn with half of `epsilon` for
    max(|low|, |high|). Rows of other groups count in none. Other arguments and errors are those of `mean`.

    >>> from dpveil.noise.bits import SeededBits
    >>> plan = total([9, 4, 7], range=(0, 10), groups=["a", "b", "a"], categories="ab", epsilon=9)
    >>> plan.groups, len(plan.release(SeededBits(3)).response)
    (('a', 'b'), 2)
    """
    rows, allowed = as_list(values), bounds(range)
    low, high, n = allowed.low or Fraction(0), allowed.high or Fraction(0), len(rows)
    budget, names = exact(epsilon, "epsilon"), None if categories is None else _categories(categories)
    if (groups is None) != (names is None):
        raise InvalidParameter("categories", None, "go with groups", hint="give both, or neither")
    if names is None:
        query = {"range": Range(n * low, n * high), "sensitivity": high - low, "relation": relation}
    else:
        ends, most = Range(n * min(low, Fraction(0)), n * max(high, Fraction(0))), max(abs(low), abs(high))
        budget, query = budget / 2, {"range": ends, "sensitivity": most, "relation": relation}
    drawn = _mechanism(mechanism, whole=False, epsilon=budget, step=step, **query)
    numbers = clip_values(rows, allowed, missing)
    covers = f"the sum of {n} values, clipped to {allowed}; {REPLACED}"
    if names is None:
        return _single_plan("sum", sum(numbers, Fraction(0)), drawn, n, covers)
    sums = dict.fromkeys(names, Fraction(0))
    for group, number_ in zip(_texts(groups, n), numbers, strict=True):
        if group in sums:
            sums[group] += number_
    return _grouped_plan("sum", sums, drawn, n, f"by group, {covers}")


def count_by(
    values: Iterable[Any],
    *,
    categories: Sequence[Any],
    epsilon: Number,
    by: Iterable[Any] | None = None,
    by_categories: Sequence[Any] | None = None,
    mechanism: str | None = None,
    relation: str = DATABASE_RECORD,
) -> Plan:
    """Plan private counts of public `categories`, or with a second column `by` of pairs with its categories.

    A replaced record leaves one count and enters another, so each is drawn with half of `epsilon`. Sums of
    counts of pairs are the counts of each column, and cost nothing more. Raises as `mean` does.

    >>> from dpveil.noise.bits import SeededBits
    >>> made = count_by(["a", "b", "a"], categories=["a", "b"], epsilon=9).release(SeededBits(3))
    >>> made.groups, len(made.response)
    (('a', 'b'), 2)
    """
    rows, names = as_list(values), _categories(categories)
    cells = _texts(rows, len(rows))
    if (by is None) != (by_categories is None):
        raise InvalidParameter("by_categories", None, "go with by", hint="give both, or neither")
    if by is not None and by_categories is not None:
        names = [f"{one}, {other}" for one in names for other in _categories(by_categories)]
        cells = [f"{one}, {other}" for one, other in zip(cells, _texts(by, len(rows)), strict=True)]
    drawn = _for_counts(mechanism, len(rows), exact(epsilon, "epsilon") / 2, relation)
    found = {name: Fraction(cells.count(name)) for name in names}
    return _grouped_plan(
        "count-by", found, drawn, len(rows), f"how many of {len(rows)} rows are in each group; {REPLACED}"
    )


def _categories(given: Sequence[Any]) -> list[str]:
    """Return public categories as texts. Raises `InvalidParameter` unless they differ."""
    names = [str(one).strip() for one in given]
    if not names or len(set(names)) < len(names) or any(", " in name for name in names):
        raise InvalidParameter(
            "categories", None, "are not different names without commas", hint="such as a,b"
        )
    return names


def _texts(values: Any, rows: int) -> list[str]:
    """Return a column as texts. Raises `InvalidParameter` if it has another number of rows."""
    found = as_list(values)
    if len(found) != rows:
        raise InvalidParameter("groups", len(found), f"are not {rows}", hint="one for each row")
    return [str(one).strip() for one in found]


def _grouped_plan(
    query: str, found: dict[str, Fraction], drawn: ScalarMechanism, rows: int, covers: str
) -> Plan:
    clear = (f"the number of rows, {rows}, and the query with its range and {len(found)} groups",)
    guarantee = about(_for_two_bins(drawn.guarantee(), rows), covers, clear)
    return Plan(query, tuple(found.values()), rows, guarantee, drawn, groups=tuple(found))


def standard_deviation(
    values: Iterable[Any],
    *,
    range: Any,  # noqa: A002  the public range of the values
    epsilon: Number,
    mechanism: str | None = None,
    relation: str = DATABASE_RECORD,
    missing: Number | None = None,
    step: Number | None = None,
) -> Plan:
    """Plan a private standard deviation of a column (population formula, divided by n).

    Arguments and errors are those of `mean`. The answer is at most half the width of the range. One record of
    n changes it by at most (high - low)·√(n-1)/n; the ΔF in use is up to 1 % larger, so that it divides the
    range. The answer is rounded to the nearest lattice point.

    >>> from dpveil.noise.bits import SeededBits
    >>> plan = standard_deviation([1, 5, 3], range=(0, 6), epsilon=1)
    >>> 0 <= plan.release(SeededBits(3)).response <= 3
    True
    """
    rows, allowed = as_list(values), bounds(range)
    if len(rows) < 2:
        raise InvalidParameter("values", None, "are one row, whose deviation is always 0")
    moved = deviation_moves(_width(allowed), len(rows))
    query = {"range": Range(0, _width(allowed) / 2), "sensitivity": moved, "relation": relation}
    drawn = _mechanism(mechanism, whole=False, epsilon=epsilon, step=step, **query)
    numbers = clip_values(rows, allowed, missing)
    covers = f"the standard deviation of {len(rows)} values, clipped to {allowed}; {REPLACED}"
    nearest = _nearest_root(_variance(numbers), drawn.lattice.step)
    return _single_plan("standard-deviation", nearest, drawn, len(rows), covers)


def count(
    values: Iterable[Any],
    *,
    epsilon: Number,
    equals: Any = None,
    above: Number | None = None,
    below: Number | None = None,
    mechanism: str | None = None,
    relation: str = DATABASE_RECORD,
) -> Plan:
    """Plan a private count of the rows whose value equals a text or number, or is above or below another.

    All given conditions must hold; a missing value satisfies none. One record changes the count by at most 1,
    and responses are from 0 to n. Raises as `mean` does.

    >>> from dpveil.noise.bits import SeededBits
    >>> plan = count(["yes", "no", "yes"], equals="yes", epsilon=1)
    >>> plan.mechanism.name, plan.release(SeededBits(3)).response in (0, 1, 2, 3)
    ('geometric', True)
    """
    rows = as_list(values)
    if equals is None and above is None and below is None:
        raise InvalidParameter("condition", None, "is missing", hint="give equals, above or below")
    ends = {"above": above, "below": below}
    over, under = (None if end is None else exact(end, name) for name, end in ends.items())
    drawn = _for_counts(mechanism, len(rows), epsilon, relation)
    found = sum(_satisfies(value, row, equals, over, under) for row, value in enumerate(rows, 1))
    covers = f"how many of {len(rows)} rows hold a public condition; {REPLACED}"
    return _single_plan("count", Fraction(found), drawn, len(rows), covers)


def histogram(
    values: Iterable[Any],
    *,
    range: Any,  # noqa: A002  the public range of the values
    bins: int | Sequence[Number],
    epsilon: Number,
    mechanism: str | None = None,
    relation: str = DATABASE_RECORD,
    missing: Number | None = None,
) -> Plan:
    """Plan private counts of public bins: `bins` of equal width, or those between the given edges.

    A bin includes its lower edge and excludes its upper one, except for the last bin. A replaced record
    leaves one bin and enters another, so each count is drawn with half of `epsilon`. Other arguments and the
    errors are those of `mean`. Counts are from 0 to n and need not sum to n.

    >>> from dpveil.noise.bits import SeededBits
    >>> made = histogram([1, 2, 5], range=(0, 6), bins=2, epsilon=1).release(SeededBits(3))
    >>> len(made.response), [str(edge) for edge in made.edges]
    (2, ['0', '3', '6'])
    """
    rows, allowed = as_list(values), bounds(range)
    edges = _edges(allowed, bins)
    drawn = _for_counts(mechanism, len(rows), exact(epsilon, "epsilon") / 2, relation)
    counts = [0] * (len(edges) - 1)
    for value in clip_values(rows, allowed, missing):
        counts[sum(edge <= value for edge in edges[1:-1])] += 1
    clear = (f"the number of rows, {len(rows)}, the range {allowed} and the edges of {len(counts)} bins",)
    covers = f"how many of {len(rows)} values lie in each of {len(counts)} bins; {REPLACED}"
    guarantee = about(_for_two_bins(drawn.guarantee(), len(rows)), covers, clear)
    answers = tuple(Fraction(found) for found in counts)
    return Plan("histogram", answers, len(rows), guarantee, drawn, edges)


def _for_two_bins(one: Guarantee, rows: int) -> Guarantee:
    """Return the guarantee of all bins: a replaced record moves two counts by 1, and no others."""
    twice = 2 * (one.epsilon or Fraction(0))
    if one.kind == "pure":
        return replace(one, epsilon=twice)
    replaced = Distance.of("records-replaced", rows=rows)
    return replace(one, epsilon=twice, metric="records replaced", distance=replaced, diameter=Fraction(rows))


def _for_counts(name: str | None, rows: int, epsilon: Number, relation: str) -> ScalarMechanism:
    query = {"range": Range(0, rows), "sensitivity": Fraction(1), "relation": relation}
    return _mechanism(name, whole=True, epsilon=epsilon, step=1, **query)


def _mechanism(
    name: str | None, *, whole: bool, epsilon: Number, step: Number | None, **query: Any
) -> ScalarMechanism:
    """Return the mechanism of that name, or that of least expected error by public facts alone.

    It is prepared to draw, so that errors are raised before any value is read.
    """
    query["epsilon"] = exact(epsilon, "epsilon")
    query["step"] = None if step is None else exact(step, "step")
    return _ready(name, whole, **query)


@lru_cache(maxsize=16)
def _ready(name: str | None, whole: bool, **query: Any) -> ScalarMechanism:
    drawn = choose(**query, whole=whole) if name is None else build(name, **query)
    drawn.prepare()
    return drawn


def _single_plan(query: str, value: Fraction, drawn: ScalarMechanism, rows: int, covers: str) -> Plan:
    clear = (f"the number of rows, {rows}, and the query with its range",)
    return Plan(query, (value,), rows, about(drawn.guarantee(), covers, clear), drawn)


def _width(allowed: Range) -> Fraction:
    return allowed.width or Fraction(0)


def deviation_moves(width: Fraction, rows: int) -> Fraction:
    """Return ΔF of a standard deviation: at most 1 % above width·√(n-1)/n, and a divisor of width/2.

    >>> float(deviation_moves(Fraction(1), 2)), float(deviation_moves(Fraction(10), 100))
    (0.5, 1.0)
    """
    parts = 1
    while True:
        # q = ⌊parts·n/(2√(n-1))⌋, so that parts/q ≥ 2√(n-1)/n, and the same without the root.
        whole = isqrt(parts**2 * rows**2 // (4 * (rows - 1)))
        moved = width / 2 * Fraction(parts, whole)
        if 10000 * moved**2 * rows**2 <= 10201 * width**2 * (rows - 1):
            return moved
        parts *= 2


def _variance(numbers: Sequence[Fraction]) -> Fraction:
    n = len(numbers)
    total = sum(numbers, Fraction(0))
    return (sum((x * x for x in numbers), Fraction(0)) - total * total / n) / n


def _nearest_root(square: Fraction, step: Fraction) -> Fraction:
    """Return the multiple of `step` nearest to √square, halves up, exactly: ⌊q + ½⌋ = ⌊(⌊2q⌋ + 1)/2⌋."""
    twice = isqrt((4 * square / step**2).__floor__())
    return (twice + 1) // 2 * step


def _satisfies(value: Any, row: int, equals: Any, over: Fraction | None, under: Fraction | None) -> bool:
    if is_missing(value):
        return False
    if equals is not None and not _is_same(value, equals):
        return False
    if over is None and under is None:
        return True
    found = number(value, row)
    return (over is None or found > over) and (under is None or found < under)


def _is_same(value: Any, wanted: Any) -> bool:
    """Return whether two values are the same number, however written, or else the same text."""
    one, other = _number(value), _number(wanted)
    if one is None and other is None:
        return str(value).strip() == str(wanted).strip()
    return one == other


def _number(value: Any) -> Fraction | None:
    try:
        return exact(value)
    except InvalidParameter:
        return None


def _edges(allowed: Range, bins: int | Sequence[Number]) -> tuple[Fraction, ...]:
    low, width = allowed.low or Fraction(0), _width(allowed)
    if isinstance(bins, int | np.integer):
        if isinstance(bins, bool) or not 1 <= bins <= 10_000:
            raise InvalidParameter("bins", bins, "is out of range", hint="from 1 to 10000")
        return tuple(low + width * Fraction(k, int(bins)) for k in range(int(bins) + 1))
    edges = tuple(exact(edge, "bins") for edge in bins)
    if len(edges) < 2 or any(a >= b for a, b in pairwise(edges)):
        raise InvalidParameter("bins", None, "are not edges in order", hint="such as 0,18,65,120")
    if (edges[0], edges[-1]) != (allowed.low, allowed.high):
        shown = f"{show(edges[0])} to {show(edges[-1])}"
        raise InvalidParameter(
            "bins", shown, f"do not cover the range {allowed}", hint="begin and end with its ends"
        )
    return edges


DIGITS: Final = 128  # bits of the largest weight
OFF: Final = 3  # `exp_below` is too low by less than this many units
MOST_RANGE_POINTS: Final = 1 << 16  # points of the range that may be chosen, at most
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
        if not 2 <= count <= MOST_RANGE_POINTS:
            hint = f"such as {show(two_digits(width / DEFAULT_POINTS))}"
            raise InvalidParameter(
                "step", show(self.step), f"leaves {count} points, not 2 to {MOST_RANGE_POINTS}", hint=hint
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
        upto = list(accumulate(self.law(values)))
        size = upto[-1].bit_length()
        words = -(-size // 64)
        while True:
            drawn = int.from_bytes(bits.words(words).tobytes(), "little") >> 64 * words - size
            if drawn < upto[-1]:
                return self.points[bisect_right(upto, drawn)]

    def parameters(self) -> dict[str, Json]:
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
    guarantee = Guarantee(
        kind="pure", epsilon=budget, relation=Relation(DATABASE_RECORD), scope=Scope(covers, clear)
    )
    return Plan("quantile", tuple(numbers), len(rows), guarantee, drawn)


def median(values: Iterable[Any], **settings: Any) -> Plan:
    """Plan a private median: `quantile` with q = 0.5, whose other arguments it takes."""
    return replace(quantile(values, Fraction(1, 2), **settings), query="median")
