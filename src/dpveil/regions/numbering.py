"""Numbers of faces: their order, and the parameter that selects faces by number."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from jaxtyping import Float, Int

from dpveil.core.parameters import Parameter, check_count
from dpveil.core.photo import Photo
from dpveil.core.region import Box
from dpveil.errors import InvalidParameter

SETTINGS: Final = re.compile(r"faces(?: [a-z-]+=[^ =]+)*")
"""A request for faces, as certificates store it."""
LISTED: Final = re.compile(r"[1-9][0-9]{0,8}(?:,[1-9][0-9]{0,8})*")
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


@dataclass(frozen=True)
class Selection:
    """Which of the faces of a photo are replaced: `only` some, or all but `exclude`; both empty: all."""

    only: tuple[int, ...] = ()
    exclude: tuple[int, ...] = ()

    @classmethod
    def of(cls, request: str) -> Selection | None:
        """Return the selection of a request for faces; None if dpveil writes no such request.

        >>> Selection.of("faces margin=0 except=2,3")
        Selection(only=(), exclude=(2, 3))
        """
        settings = [part.partition("=")[::2] for part in request.split(" ")[1:]]
        if not SETTINGS.fullmatch(request) or len(dict(settings)) < len(settings):
            return None
        stated = {name: own for name, own in settings if name in ("only", "except")}
        if len(stated) > 1 or not all(map(LISTED.fullmatch, stated.values())):
            return None
        numbers = {name: tuple(map(int, own.split(","))) for name, own in stated.items()}
        made = cls(numbers.get("only", ()), numbers.get("except", ()))
        return made if made.settings == stated else None

    @property
    def settings(self) -> dict[str, str]:
        """The selection as part of a request: sorted numbers, each once."""
        asked = {"only": self.only, "except": self.exclude}
        return {name: ",".join(map(str, sorted({*own}))) for name, own in asked.items() if own}

    def chosen(self, count: int) -> list[int]:
        """Return the numbers of the chosen ones of so many faces."""
        asked = frozenset(self.only or range(1, count + 1)) - frozenset(self.exclude)
        return [n for n in range(1, count + 1) if n in asked]

    def gives(self, numbers: Sequence[int]) -> bool:
        """Return whether there is a number of faces of which exactly these would be chosen.

        >>> Selection(exclude=(2,)).gives([1, 3]), Selection(exclude=(2,)).gives([1, 4])
        (True, False)
        """
        if self.only:
            return sorted(numbers) == sorted(self.only)
        count = max((*numbers, *self.exclude), default=0)
        return count <= len(numbers) + len(self.exclude) and sorted(numbers) == self.chosen(count)


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
