"""Data sets in `dpveil verify`: a folder with a certificate for all of its pictures together."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dpveil.synthesis.saving import SetVerification

HINT = "do not rely on this set; get an intact copy of it, or make it again"
UNSIGNED = "data sets are not signed, so that nobody of --trust vouches for it"


def split(outputs: list[Path]) -> tuple[list[Path], list[Path]]:
    """Return the folders that are data sets, and all else."""
    from dpveil.io import is_present
    from dpveil.io.folders import is_folder, is_link
    from dpveil.synthesis.names import NAME

    sets = [path for path in outputs if is_folder(path) and not is_link(path) and is_present(path / NAME)]
    return sets, [path for path in outputs if path not in sets]


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
    return f"consistent    {path}  {pictures}, {stated.plan.guarantee}  {stated.strength}: {standing}"


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
        "warnings": [] if stated is None else list(stated.warnings),
    }
    problem = why or "; ".join(found.problems)
    return told | ({"error": problem, "hint": HINT} if problem else {})
