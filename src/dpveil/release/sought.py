"""Which regions a release protects, and what becomes of a request of which nothing is found."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from dpveil.core.certificate import MOST_REGIONS, OTHERS
from dpveil.core.photo import Photo
from dpveil.core.region import Region
from dpveil.errors import NoRegion, RegionError
from dpveil.regions import Finder, search
from dpveil.regions.numbering import Order
from dpveil.regions.spec import JOIN, last_of, passes_over
from dpveil.regions.things import ARGUMENTS, NOTHING

ALONE: Final = f"or replace what else is found alone: {{if_none}} {OTHERS}"
"""The further remedy where one request finds nothing and another one does."""
NONE: Final = NOTHING.replace(" copy", f" {OTHERS}{JOIN}copy")
"""The remedy where no request finds anything, and one that does would be enough."""


@dataclass(frozen=True)
class Sought:
    """The regions to protect, and the requests of which nothing was found.

    These are `missing` and stay in the clear, or, if the user allowed it, are `passed` over; one is empty.
    """

    regions: tuple[Region, ...]
    missing: tuple[str, ...] = ()
    passed: tuple[str, ...] = ()

    @classmethod
    def by(cls, photo: Photo, finders: Sequence[Finder], order: Order | None, if_none: str | None) -> Sought:
        """Return what `finders` find in a photo; `if_none` is as in `plan`.

        Raises `NoRegion`, and `RegionError` for more than `MOST_REGIONS`.
        """
        found, errors = search(photo, finders, order)
        missing, last = tuple(errors), last_of(if_none)
        passed = missing if found and passes_over(if_none) else ()
        if missing and not passed:
            if last is None:
                raise _refusal([*errors.values()], bool(found), passes_over(if_none))
            if last == "whole":
                return cls((Region.whole(photo, fallback=True),))
        if max(len(found), len(finders)) > MOST_REGIONS:
            raise RegionError(
                f"there are more than {MOST_REGIONS:,} regions",
                hint="protect a larger one around them, or whole",
            )
        return cls(found, passed=passed) if passed else cls(found, missing)


def _refusal(errors: Sequence[NoRegion], found: bool, passing: bool) -> NoRegion:
    """Return the first error, with a further remedy if something else was `found`; or all, if `passing`."""
    error, *more = errors
    if passing and more:
        message = ", and ".join(dict.fromkeys(each.message for each in errors))
        return NoRegion(message, hint=NONE, arguments=ARGUMENTS)
    if not found:
        return error
    message, hint = error.told({name: f"{{{name}}}" for name in error.arguments})
    arguments = {"if_none": "if_none", **error.arguments}
    return NoRegion(message, hint="; ".join(filter(None, [hint, ALONE])), arguments=arguments)
