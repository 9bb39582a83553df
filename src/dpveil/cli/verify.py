"""`dpveil verify`: do saved releases fit their certificates?"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dpveil.cli import exits, say
from dpveil.errors import PhotoError

if TYPE_CHECKING:
    from dpveil.verification import Verification

UNPROTECTED_HINT = "it is a copy of the original and carries no guarantee: do not publish it"
INCONSISTENT_HINT = "release the photo again, and do not rely on this file"


def verify_command(
    outputs: Annotated[list[Path], typer.Argument(metavar="OUTPUT", help="Releases, or folders of them.")],
    json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
    max_pixels: Annotated[
        int, typer.Option(metavar="N", min=1, max=2**31, help="Refuse photos that have more pixels.")
    ] = 100_000_000,
) -> int:
    """Check that released photos are the ones their certificates describe, and recompute every guarantee.

    \b
    Example:
      dpveil verify private.png

    Finds inconsistency, not forgery: certificates are not signed.
    """
    from dpveil.verification import NOT_FORGERY, verify

    paths = list(dict.fromkeys(_targets(outputs)))
    if not paths:
        raise PhotoError("there is nothing to verify", hint="name released images or folders with some")
    results = [verify(path, max_pixels=max_pixels) for path in paths]
    good = [result for result in results if result.status == "consistent"]
    bad = [result for result in results if result.status != "consistent"]
    if json:
        document = {"verified": [_entry(r) for r in good], "failed": [_entry(r) for r in bad]}
        say.document({**document, "note": NOT_FORGERY})
    else:
        for result in results:
            say.answer(_line(result))
    say.note(f"consistent {len(good)}, failed {len(bad)}; {NOT_FORGERY}")
    return exits.INCOMPLETE if bad else exits.DONE


def _targets(outputs: Iterable[Path]) -> Iterator[Path]:
    """Yield the image files to verify: in folders, all that are images or that a certificate is there for."""
    from dpveil.cli.inputs import is_folder, walk
    from dpveil.io import FORMATS
    from dpveil.release import SUFFIX

    for output in outputs:
        inside = walk(output) if is_folder(output) else (output,)
        for path in inside:
            if path.name.endswith(SUFFIX):
                yield path.with_name(path.name.removesuffix(SUFFIX))
            elif path == output or is_folder(path) or path.suffix.lower() in FORMATS:
                yield path


def _entry(result: Verification) -> dict[str, Any]:
    from dpveil.release import certificate_path

    certificate = result.certificate
    entry: dict[str, Any] = {
        "output": str(result.path),
        "certificate": str(certificate_path(result.path)),
        "status": result.status,
        "publishable": result.publishable,
        "guarantee": None if certificate is None else _guarantee(result),
        "warnings": [] if certificate is None else list(certificate.warnings),
    }
    if result.status == "consistent":
        return entry
    unprotected = result.status == "unprotected"
    error = "unprotected copy" if unprotected else "; ".join(result.problems)
    return entry | {"error": error, "hint": UNPROTECTED_HINT if unprotected else INCONSISTENT_HINT}


def _guarantee(result: Verification) -> str | None:
    composition = None if result.certificate is None else result.certificate.composition
    return None if composition is None else str(composition)


def _exposure(result: Verification) -> str:
    from dpveil.promise import exposure

    composition = None if result.certificate is None else result.certificate.composition
    return "" if composition is None else exposure(composition)


def _line(result: Verification) -> str:
    from dpveil.io.names import quoted, shown
    from dpveil.release import certificate_path

    path = shown(result.path)
    if result.status == "inconsistent":
        word = "INCONSISTENT" if os.path.lexists(certificate_path(result.path)) else "NO RELEASE"
        return f"{word:<13} {path}  {'; '.join(result.problems)}"
    if result.status == "unprotected":
        return f"UNPROTECTED   {path}  {UNPROTECTED_HINT}"
    text = f"consistent    {path}  {quoted(str(_guarantee(result)))}"
    if result.publishable:
        return f"{text}  {_exposure(result)}".rstrip()
    reasons = result.certificate.warnings if result.certificate else ()
    reason = next((w for w in reasons if w.isascii() and w[:3].isupper()), "NOT FOR PUBLICATION")
    return f"{text}  {quoted(reason)}"
