"""`dpveil verify`: checks that saved releases match their certificates."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dpveil.cli import exits, say
from dpveil.cli.options import AsJson, AtLeast
from dpveil.errors import INTACT, PhotoError

if TYPE_CHECKING:
    from dpveil.release.verified import Verification

WORDS = {"inconsistent": "INCONSISTENT", "missing": "MISSING", "unprotected": "UNPROTECTED"}
UNPROTECTED_HINT = "it is a copy of the original and carries no guarantee: do not publish it"
INCONSISTENT_HINT = f"do not rely on this file; {INTACT}"
TOO_WEAK_HINT = "release the photo again with a smaller budget (dpveil explain), or ask for less"
HINTS = {
    "inconsistent": INCONSISTENT_HINT,
    "missing": f"{INTACT}, and keep both side by side",
    "unprotected": UNPROTECTED_HINT,
}
LINK = "it is a symbolic link, and links are not followed"


def verify_command(
    outputs: Annotated[list[Path], typer.Argument(metavar="OUTPUT", help="Releases, or folders of them.")],
    at_least: AtLeast = None,
    json: AsJson = False,
    max_pixels: Annotated[
        int, typer.Option(metavar="N", min=1, max=2**31, help="Refuse photos with more pixels.")
    ] = 100_000_000,
) -> int:
    """Check that released photos are the ones their certificates describe, and recompute every guarantee.

    \b
    Example:
      dpveil verify private.png

    Finds inconsistency, not forgery: certificates are not signed.
    """
    from dpveil.accounting.meaning import check_strength_name
    from dpveil.release.verification import NOT_FORGERY

    least = None if at_least is None else check_strength_name(at_least)
    good: list[dict[str, Any]] = []
    bad: list[dict[str, Any]] = []
    publishable = 0
    for result in _results(outputs, max_pixels, least):
        publishable += result.publishable
        if not json:
            say.answer(_line(result, least))
        sound = result.status == "consistent" and not result.refused
        (good if sound else bad).append(_entry(result) if json else {})
    if not good and not bad:
        raise PhotoError(
            "there is nothing to verify", hint="name released images, or folders that contain some"
        )
    if json:
        say.document({"verified": good, "failed": bad, "note": NOT_FORGERY})
    passed = f"consistent {len(good)}, publishable" if least is None else f"at least {least}"
    say.note(f"{passed} {publishable}, failed {len(bad)}; {NOT_FORGERY}")
    return exits.INCOMPLETE if bad else exits.DONE


def _results(outputs: Iterable[Path], max_pixels: int, least: str | None) -> Iterator[Verification]:
    """Yield the verification of every target, each once, as soon as it is done."""
    from dpveil.release.saving import image_path
    from dpveil.release.verification import verify
    from dpveil.release.verified import Verification

    seen: set[Path] = set()
    for path, problem in _targets(outputs):
        image = image_path(path) or path
        if image not in seen:
            seen.add(image)
            failed = Verification(image, "inconsistent", (problem,))
            yield failed if problem else verify(path, max_pixels=max_pixels, at_least=least)


def _targets(outputs: Iterable[Path]) -> Iterator[tuple[Path, str]]:
    """Yield the files to verify with an empty string, and others with the reason why they fail.

    Folders are searched for pictures, videos, certificates, links, and unreadable folders, also hidden ones,
    because all of these would be published with the folder.
    """
    from dpveil.io import FORMATS
    from dpveil.io.folders import UNWRITTEN, is_folder, is_link, walk
    from dpveil.release.saving import SUFFIX

    for output in outputs:
        if not is_folder(output):
            yield output, ""
        elif is_link(output):
            yield output, LINK
        else:
            for path, problem in walk(output, hidden=True):
                link = LINK if is_link(path) else ""
                image = path.suffix.lower() in UNWRITTEN.union(FORMATS) or path.name.endswith(SUFFIX)
                if problem or link or image:
                    yield path, f"the folder {problem}" if problem else link


def _entry(result: Verification) -> dict[str, Any]:
    from dpveil.release.saving import certificate_path

    certificate = result.certificate
    entry: dict[str, Any] = {
        "output": str(result.path),
        "certificate": str(certificate_path(result.path)),
        "status": result.status,
        "publishable": result.publishable,
        "objections": list(result.objections),
        "guarantee": None if certificate is None else _guarantee(result),
        "strength": None if certificate is None else certificate.strength,
        "warnings": [] if certificate is None else list(certificate.warnings),
        "notes": list(result.notes),
    }
    if result.status == "consistent":
        return entry if not result.refused else entry | {"error": result.refused, "hint": TOO_WEAK_HINT}
    unprotected = result.status == "unprotected"
    error = "unprotected copy" if unprotected else "; ".join(result.problems)
    return entry | {"error": error, "hint": HINTS[result.status]}


def _guarantee(result: Verification) -> str | None:
    composition = None if result.certificate is None else result.certificate.composition
    return None if composition is None else str(composition)


def _line(result: Verification, least: str | None) -> str:
    from dpveil.io.names import quoted, shown

    path = quoted(shown(result.path))
    if result.status in WORDS:
        told = UNPROTECTED_HINT if result.status == "unprotected" else "; ".join(result.problems)
        return f"{WORDS[result.status]:<13} {path}  {told}"
    if result.refused:
        return f"TOO WEAK      {path}  {quoted(result.refused)}"
    # Everything printed here is recomputed: texts of the certificate are untrusted.
    told = quoted(str(_guarantee(result)))
    return "  ".join([f"consistent    {path}", told, _worth(result, least), *result.notes])


def _worth(result: Verification, least: str | None) -> str:
    """Return the strength of the total, and whether and why the release may be published or not.

    It may be with a strength of `least` or more, and without one with any that has a name.
    """
    from dpveil.accounting.meaning import NONE, STRENGTHS
    from dpveil.release.words import worth

    stated = result.certificate
    if stated is None or stated.composition is None:
        return ""
    standard = least or [*STRENGTHS][-1]
    reasons = [reason for reason in result.objections if reason != str(stated.composition)]
    against = [f"below {standard}" if reason == NONE else reason for reason in reasons]
    why = f" ({', '.join(against)})" if against else ""
    grade = f"{worth(stated.composition, str(stated.strength))}: " if stated.composition.formal else ""
    return grade + (f"publishable (at least {standard})" if result.publishable else f"not publishable{why}")
