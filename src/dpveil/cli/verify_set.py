"""Data sets in `dpveil verify`: a folder with a certificate for all of its pictures together."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dpveil.cli import say

if TYPE_CHECKING:
    from dpveil.synthesis.saving import SetVerification

HINT = "do not rely on this set; get an intact copy of it, or make it again"
PART = "it has no certificate of its own: check its data set with dpveil verify {}"
WEAK_HINT = "make a set with a smaller epsilon and delta, or ask for less"
UNSIGNED_HINT = "leave out --trust, and get the set from a source that you trust"
UNSIGNED = "data sets are not signed, so that nobody of --trust vouches for it"


def is_set(path: Path) -> bool:
    """Whether a path is the folder of a data set: one with a certificate for all of it."""
    from dpveil.io import is_present
    from dpveil.io.folders import is_folder, is_link
    from dpveil.synthesis.names import NAME

    return is_folder(path) and not is_link(path) and is_present(path / NAME)


def split(outputs: Iterable[Path]) -> tuple[list[Path], list[Path]]:
    """Return the folders of data sets, which may be named, lie below a folder, or be named by their
    certificate; and all outputs that are none.

    What lies in a set belongs to it: `verified` reports whatever its certificate does not list.
    """
    from dpveil.synthesis.names import NAME

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
    from dpveil.synthesis.names import NAME

    found: dict[Path, None] = {}
    for path, _ in walk(folder, hidden=True) if is_folder(folder) and not is_link(folder) else ():
        if path.name == NAME and found.keys().isdisjoint(path.parents):
            found[path.parent] = None
    return [*found]


def of_a_set(picture: Path) -> str:
    """Return why a picture without a certificate is not verified by itself, if it lies in a data set."""
    from dpveil.io.names import shown

    return PART.format(shown(picture.parent)) if is_set(picture.parent) else ""


def verified(folder: Path) -> SetVerification:
    """Return the result for one data set."""
    from dpveil.synthesis.saving import verify

    return verify(folder)


def refused(found: SetVerification, least: str | None, *, trusted: bool) -> str:
    """Return why a consistent set is not good enough; empty if it is."""
    from dpveil.accounting.meaning import at_least

    stated = found.certificate
    if stated is None or not found.consistent:
        return ""
    if trusted:
        return UNSIGNED
    if least is None or (stated.publishable and at_least(stated.strength, least)):
        return ""
    why = f"{stated.strength}, by {stated.bits} bits"
    return f"it promises {stated.plan.guarantee}, which is {why}, and at least {least} was asked for"


def line(found: SetVerification, why: str) -> str:
    """Return the result in one line; everything in it is computed again."""
    from dpveil.io.names import quoted, shown

    path, stated = quoted(shown(found.path)), found.certificate
    if stated is None or not found.consistent:
        return f"INCONSISTENT  {path}  {'; '.join(found.problems)}"
    if why:
        return f"TOO WEAK      {path}  {why}"
    standing = "publishable" if stated.publishable else "not publishable"
    pictures = f"a data set of {stated.plan.pictures:,} pictures"
    known = say.hash_in_short(stated.sha256)
    return (
        f"consistent    {path}  {pictures}, {stated.plan.guarantee}  {stated.strength}: {standing}  {known}"
    )


def entry(found: SetVerification, why: str) -> dict[str, Any]:
    """Return the result as JSON, with keys of other releases."""
    from dpveil.synthesis.names import NAME

    stated = found.certificate
    told: dict[str, Any] = {
        "output": str(found.path),
        "certificate": str(found.path / NAME),
        "status": "consistent" if found.consistent else "inconsistent",
        "publishable": stated is not None and found.consistent and stated.publishable and not why,
        "guarantee": None if stated is None else str(stated.plan.guarantee),
        "strength": None if stated is None else stated.strength,
        "sha256": stated.sha256 if stated is not None and found.consistent else None,
        "warnings": [] if stated is None else list(stated.warnings),
    }
    problem = why or "; ".join(found.problems)
    return told | ({"error": problem, "hint": hint_of(why)} if problem else {})


def hint_of(why: str) -> str:
    """Return what to do about a set that is not consistent, or for the reason `why` not good enough."""
    if not why:
        return HINT
    return UNSIGNED_HINT if why == UNSIGNED else WEAK_HINT
