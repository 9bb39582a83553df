"""Photos among the objects below a URL, listed in a fixed order before any of them is read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Set
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Final

from dpveil.core.urls import Url, expanded
from dpveil.errors import PhotoError, UsageError
from dpveil.io.names import shown
from dpveil.io.refused import Refused
from dpveil.io.urls import objects
from dpveil.release.saving import SUFFIX

WILD: Final = frozenset("*?[")


def photos_below(start: Url, out: Path | None, suffixes: Set[str]) -> Iterator[tuple[Path, Path]]:
    """Yield the photos below a URL, or the one object that it names, each with its path below it.

    Left out are hidden ones, releases with their certificates, other `suffixes`, and what is below `out`.
    Raises `PhotoError` if any part of the list is missing.
    """
    found = _listed(start)
    if found == [start]:
        yield found[0], Path(start.name)
        return
    names = {str(each) for each in found if each.name.endswith(SUFFIX)}
    for each in found:
        relative = Path(*each.parts[len(start.parts) :])
        own = f"{each}{SUFFIX}" in names or each.name.endswith(SUFFIX)
        hidden = any(part.startswith(".") for part in relative.parts)
        below = isinstance(out, Url) and each.is_relative_to(out)
        if each.problem or (each.suffix.lower() in suffixes and not (own or hidden or below)):
            yield each, relative


def named(inputs: Iterable[Path]) -> list[Path]:
    """Return the places for which inputs stand: URLs with numbers in braces or wildcards stand for several.

    Raises `UsageError` and `PhotoError`.
    """
    return [each for start in inputs for one in expanded(start) for each in matching(one)]


def matching(start: Path) -> list[Path]:
    """Return the objects for which a URL stands whose last part has wildcards; any other place itself.

    Raises `PhotoError` if there are none.
    """
    if not isinstance(start, Url) or not WILD & set(str(start)):
        return [start]
    prefix = start.parent
    if WILD & set(str(prefix)) or not isinstance(prefix, Url):
        raise UsageError(f"{start} has wildcards in a prefix", hint="use them in the last part only")
    prefix.prefix = True
    found: list[Path] = [
        each for each in _listed(prefix) if each.parent == prefix and fnmatchcase(each.name, start.name)
    ]
    if not found:
        raise PhotoError(f"{shown(start)} stands for no object", hint="check the name")
    return found


def _listed(start: Url) -> list[Url]:
    try:
        return list(objects(start))
    except Refused as reason:
        raise PhotoError(f"{shown(start)} {reason.problem}", hint=reason.remedy) from reason
