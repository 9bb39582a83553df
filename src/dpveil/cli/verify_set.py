"""Data sets in `dpveil verify`: a folder with a certificate for all of its pictures together."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

PART = "it has no certificate of its own: check its data set with dpveil verify {}"


def split(outputs: Iterable[Path]) -> tuple[list[Path], list[Path]]:
    """Return the folders of data sets, which may be named, lie below a folder, or be named by their
    certificate; and all outputs that are none.

    What lies in a set belongs to it: `verified` reports whatever its certificate does not list.
    """
    from dpveil.synthesis.plan import NAME
    from dpveil.synthesis.saving import is_set

    sets: dict[Path, None] = {}
    others = []
    for path in outputs:
        if is_set(path):
            sets[path] = None
        elif path.name == NAME and is_set(path.parent):
            sets[path.parent] = None
        else:
            others.append(path)
            sets |= dict.fromkeys(below(path))
    return [*sets], others


def below(folder: Path) -> list[Path]:
    """Return the data sets below a folder, without those that lie in another one."""
    from dpveil.io.folders import is_folder, is_link, walk
    from dpveil.synthesis.plan import NAME

    found: dict[Path, None] = {}
    for path, _ in walk(folder, hidden=True) if is_folder(folder) and not is_link(folder) else ():
        if path.name == NAME and found.keys().isdisjoint(path.parents):
            found[path.parent] = None
    return [*found]


def of_a_set(picture: Path) -> str:
    """Return why a picture without a certificate is not verified by itself, if it lies in a data set."""
    from dpveil.io.names import shown
    from dpveil.synthesis.saving import is_set

    return PART.format(shown(picture.parent)) if is_set(picture.parent) else ""
