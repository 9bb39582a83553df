"""Numbers of faces: their order, and how users select by number."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from jaxtyping import Float, Int

from dpveil.core.parameters import Parameter, check_count
from dpveil.errors import InvalidParameter


class Numbers(Parameter[str | Iterable[int], tuple[int, ...]]):
    """A choice of faces by number, such as (1, 3) or "1,3"; kept sorted, each once. Default: none."""

    def __init__(self, shown: str) -> None:
        super().__init__(default=())
        self.shown = shown

    def check(self, value: object) -> tuple[int, ...]:
        """Return the numbers in order, each at least 1."""
        hint = "write the numbers that the preview shows, such as 1,3"
        try:
            entries = [int(part) for part in value.split(",")] if isinstance(value, str) else list(value)  # type: ignore[call-overload]
        except (TypeError, ValueError):
            raise InvalidParameter(self.shown, str(value), "are not numbers of faces", hint=hint) from None
        return tuple(sorted({check_count(entry, self.shown) for entry in entries}))


def reading_order(faces: Float[np.ndarray, "n k"]) -> Int[np.ndarray, " n"]:
    """Return the order of boxes (left, top, width, height, …) as one reads: rows, and in them left to right.

    The topmost box begins a row, and every box whose centre lies above the lower edge of that one belongs to
    it; the topmost of the rest begins the next. Ties are broken by the left edge, then by the given order.

    >>> reading_order(np.array([[50.0, 0, 10, 10], [0, 4, 10, 10], [20, 30, 10, 10]])).tolist()
    [1, 0, 2]
    """
    left, top, height = faces[:, 0], faces[:, 1], faces[:, 3]
    rest = np.lexsort((left, top))
    order: list[int] = []
    while len(rest):
        first = rest[0]
        in_row = (top + height / 2)[rest] < top[first] + height[first]
        in_row[0] = True  # even where its height is lost in rounding
        row = rest[in_row]
        order += row[np.argsort(left[row], kind="stable")].tolist()
        rest = rest[~in_row]
    return np.array(order, dtype=np.int64)
