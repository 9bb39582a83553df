"""What a user asks for: a method, or the usual one for the regions, and the finders of these regions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from numbers import Integral
from typing import Any, Final, cast

from dpveil.catalogue import build
from dpveil.mechanisms.method import Method
from dpveil.regions import Finder, Spec, parse
from dpveil.regions.spec import several
from dpveil.regions.things import Things

COVER: Final = "fill"
"""The default method where nothing but text and the like is to be replaced: it costs nothing."""


def chosen(
    method: str | Method | None, regions: Spec | Sequence[Spec] | None, parameters: Mapping[str, Any]
) -> tuple[Method, tuple[Finder, ...]]:
    """Return the method and the finders, as it uses them.

    Without a method it is `COVER` if all regions are text and the like, and else `catalogue.DEFAULT`. Raises
    as `build`, `parse` and `Method.accepts`.
    """
    finders = None if regions is None or method or parameters else [parse(spec) for spec in listed(regions)]
    made = build(usual(finders) if finders else method, parameters)
    if finders is None:
        finders = [parse(spec) for spec in listed(made.regions if regions is None else regions)]
    return made, made.accepts(finders)


def usual(finders: Sequence[Finder]) -> str | None:
    """Return the name of the default method for these regions; None for `catalogue.DEFAULT`."""
    return COVER if finders and all(isinstance(finder, Things) for finder in finders) else None


def listed(regions: Spec | Sequence[Spec]) -> list[Spec]:
    """Return a list of choices: four whole numbers are one box, any other list or tuple is several.

    >>> listed("faces+text"), listed([1, 2, 3, 4])
    (['faces', 'text'], [[1, 2, 3, 4]])
    """
    if not isinstance(regions, list | tuple) or (regions and isinstance(regions[0], Integral)):
        return [*several(cast(Spec, regions))]
    return [part for spec in cast(Sequence[Spec], regions) for part in several(spec)]
