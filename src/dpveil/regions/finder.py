"""The interface of a finder, which returns the regions of a photo that are to be protected."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import ClassVar

from dpveil.core.photo import Photo
from dpveil.core.region import Region
from dpveil.errors import NoRegion
from dpveil.regions.numbering import Order


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

    def seen(self, photo: Photo) -> list[Seen]:
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
