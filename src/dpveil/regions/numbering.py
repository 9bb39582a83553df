"""Numbers of faces: their order, and the parameter that selects faces by number."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import numpy as np
from jaxtyping import Float, Int

from dpveil.core.parameters import Parameter, check_count
from dpveil.core.photo import Photo
from dpveil.core.region import Box
from dpveil.errors import InvalidParameter

Order = Callable[[Photo, Sequence[Box]], Sequence[int]]
"""Returns the indices of boxes that were found in a photo, in the order of their numbers."""


class Numbers(Parameter[str | Iterable[int], tuple[int, ...]]):
    """Numbers of faces, such as (1, 3) or "1,3"; stored sorted and without duplicates. Default: none."""

    def __init__(self) -> None:
        super().__init__(default=())

    def check(self, value: object) -> tuple[int, ...]:
        """Return the numbers, sorted; raises `InvalidParameter` for any below 1."""
        hint = "write the numbers that the preview shows, such as 1,3"
        try:
            entries = [int(part) for part in value.split(",")] if isinstance(value, str) else list(value)  # type: ignore[call-overload]
        except (TypeError, ValueError):
            raise InvalidParameter(self.name, str(value), "are not numbers of faces", hint=hint) from None
        return tuple(sorted({check_count(entry, self.name) for entry in entries}))


def reading_order(faces: Float[np.ndarray, "n k"]) -> Int[np.ndarray, " n"]:
    """Return the indices of boxes (left, top, width, height, …) in reading order: by row, then left to right.

    The topmost box starts a row, which has every box whose centre is above that box's lower edge; the topmost
    of the others starts the next row. Ties are broken by the left edge, then by the given order.

    >>> reading_order(np.array([[50.0, 0, 10, 10], [0, 4, 10, 10], [20, 30, 10, 10]])).tolist()
    [1, 0, 2]
    """
    left, top, height = faces[:, 0], faces[:, 1], faces[:, 3]
    rest = np.lexsort((left, top))
    order: list[int] = []
    while len(rest):
        first = rest[0]
        in_row = (top + height / 2)[rest] < top[first] + height[first]
        in_row[0] = True  # even if rounding makes its height vanish
        row = rest[in_row]
        order += row[np.argsort(left[row], kind="stable")].tolist()
        rest = rest[~in_row]
    return np.array(order, dtype=np.int64)
