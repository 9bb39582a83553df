"""Ranges of answers and responses: with or without ends, and with finite gaps (Croft thesis §5.1.1)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import Any, Final

from dpveil.core.parameters import Value
from dpveil.core.rationals import Number, exact, show
from dpveil.errors import InvalidParameter

LARGEST: Final = Fraction(10) ** 300  # largest absolute value of an end
HINT = "write 0:5, 0: (no upper end), :5, or : (all numbers)"


@dataclass(frozen=True, init=False)
class Range:
    """All numbers from `low` to `high` (None: unbounded), except those strictly inside one of the `gaps`.

    Ends are exact rationals; gaps are disjoint pairs, in order and strictly inside. Raises
    `InvalidParameter`. Source: Croft thesis §5.1.1, "Constraint configurations", where constraints are the
    complement.

    >>> str(Range(0, 100, gaps=[(10, 20)]))
    '0:100 without 10:20'
    >>> Range.parse("0:").high is None
    True
    """

    low: Fraction | None
    high: Fraction | None
    gaps: tuple[tuple[Fraction, Fraction], ...]

    def __init__(
        self,
        low: Number | None = None,
        high: Number | None = None,
        gaps: Sequence[tuple[Number, Number]] = (),
    ) -> None:
        ends = tuple(None if end is None else exact(end, "range") for end in (low, high))
        holes = tuple((exact(left, "gap"), exact(right, "gap")) for left, right in gaps)
        for name, value in zip(("low", "high", "gaps"), (*ends, holes), strict=True):
            object.__setattr__(self, name, value)
        self._check()

    def _check(self) -> None:
        edges = [self.low, *(edge for gap in self.gaps for edge in gap), self.high]
        given = [edge for edge in edges if edge is not None]
        if any(abs(edge) > LARGEST for edge in given):
            raise InvalidParameter("range", None, "has numbers beyond 1e300", hint="leave the end away: 0:")
        if any(left >= right for left, right in pairwise(given)):
            raise InvalidParameter(
                "range", str(self), "is not in order", hint=f"each number larger than the last; {HINT}"
            )

    @classmethod
    def parse(cls, text: str, gaps: Sequence[str] = ()) -> Range:
        """Return the range written as LOW:HIGH, either of which may be missing, and likewise gaps."""
        ends = [end.strip() for end in text.split(":")]
        holes = [tuple(gap.split(":")) for gap in gaps]
        if len(ends) != 2 or any(len(hole) != 2 for hole in holes):
            raise InvalidParameter("range", text, "is not LOW:HIGH", hint=HINT)
        low, high = (end or None for end in ends)
        return cls(low, high, gaps=[(hole[0], hole[1]) for hole in holes])

    @classmethod
    def of(cls, value: Any) -> Range:
        """Return a range given as `Range`, text or pair (low, high). Raises `InvalidParameter`."""
        if isinstance(value, Range):
            return value
        if isinstance(value, str):
            return cls.parse(value)
        if isinstance(value, (tuple, list)) and len(value) == 2:
            return cls(*value)
        raise InvalidParameter("range", type(value).__name__, "is not a range", hint=HINT)

    @property
    def finite(self) -> bool:
        return self.low is not None and self.high is not None

    @property
    def width(self) -> Fraction | None:
        """High minus low, or None if unbounded."""
        return None if self.low is None or self.high is None else self.high - self.low

    def __contains__(self, value: Fraction) -> bool:
        inside = (self.low is None or self.low <= value) and (self.high is None or value <= self.high)
        return inside and not any(left < value < right for left, right in self.gaps)

    def __str__(self) -> str:
        ends = ("" if end is None else show(end, 12) for end in (self.low, self.high))
        holes = " and ".join(f"{show(left, 12)}:{show(right, 12)}" for left, right in self.gaps)
        return ":".join(ends) + (f" without {holes}" if holes else "")


class RangeParameter(Value[Any, Range]):
    """The range of a query: a `Range`, a pair of numbers, or text such as 0:5."""

    hint = f"there is no default: what is publicly known of the answer, never what the data show; {HINT}"

    def check(self, value: Any) -> Range:
        return Range.of(value)
