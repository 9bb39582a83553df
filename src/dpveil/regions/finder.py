"""The interface of a finder, which returns the regions of a photo that are to be protected."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Final, Protocol

import numpy as np

from dpveil.core.array_types import Float, Int
from dpveil.core.parameters import Parameter, check_count
from dpveil.core.photo import Photo
from dpveil.core.region import Box, Region
from dpveil.core.region_origin import BY_LIKENESS
from dpveil.errors import InvalidParameter, NoRegion

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
            raise InvalidParameter(self.name, str(value), "is no list of face numbers", hint=hint) from None
        return tuple(sorted({check_count(entry, self.name) for entry in entries}))


class Likeness(Protocol):
    """What decides by its pixels whether a face stays, as `dpveil.faces.likeness.Likeness`."""

    @property
    def description(self) -> str:
        """The setting as part of a request."""

    def stays(self, photo: Photo, box: Box) -> bool:
        """Return whether the face in a detected box, without margin, stays as it is."""


@dataclass(frozen=True)
class Selection:
    """Which of the faces of a photo are replaced: `only` some, or all but `exclude`, or any `by_likeness`."""

    only: tuple[int, ...] = ()
    exclude: tuple[int, ...] = ()
    by_likeness: bool = False

    @classmethod
    def of(cls, request: str) -> Selection | None:
        """Return the selection that a request for faces states; None for a request for anything else.

        >>> Selection.of("faces margin=0 except=2,3")
        Selection(only=(), exclude=(2, 3), by_likeness=False)
        """
        name, *settings = request.split(" ")
        stated = dict(part.partition("=")[::2] for part in settings)
        only, exclude = (
            tuple(map(int, listed.split(","))) if LISTED.fullmatch(listed) else ()
            for listed in (stated.get("only", ""), stated.get("except", ""))
        )
        return cls(only, exclude, BY_LIKENESS.search(request) is not None) if name == "faces" else None


def reading_order(faces: Float[np.ndarray, "n k"]) -> Int[np.ndarray, " n"]:
    """Return the indices of boxes (left, top, width, height, …) in reading order: by row, then left to right.

    The topmost box starts a row, with every box that is beside one of the row for half of the lower one's
    height at least; the topmost of the others starts the next row. Ties are broken by the left edge, then by
    the given order.

    >>> reading_order(np.array([[50.0, 0, 10, 10], [0, 4, 10, 10], [20, 30, 10, 10]])).tolist()
    [1, 0, 2]
    """
    left, top, height = faces[:, 0], faces[:, 1], faces[:, 3]
    bottom = top + height
    shared = np.minimum.outer(bottom, bottom) - np.maximum.outer(top, top)
    beside = shared >= np.minimum.outer(height, height) / 2
    rest = np.lexsort((left, top))
    order: list[int] = []
    while len(rest):
        row = rest[:1]
        while len(more := rest[beside[np.ix_(rest, row)].any(axis=1) | np.isin(rest, row)]) > len(row):
            row = more
        order += row[np.argsort(left[row], kind="stable")].tolist()
        rest = rest[~np.isin(rest, row)]
    return np.array(order, dtype=np.int64)


@dataclass(frozen=True)
class Seen:
    """Something in one frame of a clip: its kind (`Origin.kind`), left, top, width, height in pixels, and a
    score from 0 to 1 or None. The box may reach beyond the frame. What is not `sure` only looks a little like
    what is searched for.
    """

    kind: str
    box: tuple[float, float, float, float]
    score: float | None = None
    sure: bool = True


class Finder(ABC):
    """A callable from a photo to its regions, in pixels of the oriented photo, before they grow.

    A finder checks its settings when it is created, before any photo is read. It raises `RegionError` if it
    does not fit a photo and `NoRegion` if it finds nothing. It never returns an empty list, so that a photo
    without a region is never released as if it had been protected.
    """

    kind: ClassVar[str] = "region"
    """The kind of region that it finds, as in `Origin.kind`; some methods accept only certain kinds."""

    @property
    @abstractmethod
    def description(self) -> str:
        """The request as a certificate stores it; it never contains a file name."""

    @property
    def data_dependent(self) -> bool:
        """Whether the result depends on the photo's pixels, so that the guarantee only compares photos with
        the same result. True unless a finder declares otherwise.
        """
        return True

    @property
    def notes(self) -> tuple[str, ...]:
        """Warnings for certificates of releases that used this finder."""
        return ()

    def notes_on(self, photo: Photo) -> tuple[str, ...]:
        """Return warnings about what was found in `photo`, which no certificate has."""
        return ()

    def smallest_in(self, photo: Photo) -> int | None:
        """Return the height in pixels below which nothing is searched for in `photo`; None: no limit."""
        return None

    def doubtful_in(self, photo: Photo) -> list[Region]:
        """Return places that look a little like what is searched for in `photo`, and are not replaced."""
        return []

    def in_order(self, photo: Photo, order: Order) -> list[Region]:
        """Return the regions of `photo`, numbered in another `order` if what is found depends on its pixels.

        Methods that show less of a region than its box ask for it, as the order of boxes tells of them.
        """
        found = self(photo)
        if not self.data_dependent:
            return found
        numbers = sorted((r.origin.number for r in found), key=lambda number: (number is None, number))
        placed = [found[n] for n in order(photo, [region.box for region in found])]
        return [
            replace(region, origin=replace(region.origin, number=number))
            for region, number in zip(placed, numbers, strict=True)
        ]

    @property
    def at_once(self) -> int:
        """The number of photos that may be searched concurrently, each in its own thread; default: one."""
        return 1

    def without_margin(self, reason: str) -> Finder:
        """Return the finder without a margin around its boxes, for methods that choose their own regions.

        Raises `InvalidParameter` with this `reason` if the user chose a margin. Most finders have none.
        """
        return self

    def for_frames(self, width: int, height: int, long_side: int) -> Finder:
        """Return the finder for frames of a clip of this size, in pixels, in which `long_side` are enough.

        Raises `InvalidParameter` for settings that only fit a photo. Most finders search them as photos.
        """
        return self

    def find_in_frame(self, photo: Photo) -> list[Seen]:
        """Return what is in one frame of a clip, possibly nothing; raises `RegionError` if the search fails.

        Numbers, and regions that are left out by number, are those of a photo and do not count here.
        """
        try:
            found = self(photo)
        except NoRegion:
            found = []
        both = ((found, True), (self.doubtful_in(photo), False))
        return [
            Seen(one.origin.kind, (one.box.x, one.box.y, one.box.w, one.box.h), one.score, sure)
            for regions, sure in both
            for one in regions
        ]

    def prepare(self) -> None:  # noqa: B027  most finders need nothing
        """Load what the finder needs, before a photo is read; raises `UsageError` if something is missing."""

    @abstractmethod
    def __call__(self, photo: Photo) -> list[Region]:
        """Return the regions of `photo`."""
