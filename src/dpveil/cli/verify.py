"""`dpveil verify`: checks that saved releases match their certificates."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dpveil.cli import exits, say
from dpveil.cli.options import AsJson, AtLeast, Trust
from dpveil.errors import INTACT, PhotoError

if TYPE_CHECKING:
    from dpveil.release.keys import PublicKey
    from dpveil.release.verification import Verification

WORDS = {
    "inconsistent": "INCONSISTENT",
    "missing": "MISSING",
    "unchecked": "NOT CHECKED",
    "unprotected": "UNPROTECTED",
}
UNPROTECTED_HINT = "it is a copy of the original and carries no guarantee: do not publish it"
INCONSISTENT_HINT = f"do not rely on this file; {INTACT}"
TOO_WEAK_HINT = "release the photo again with a smaller budget (dpveil explain), or ask for less"
HINTS = {
    "inconsistent": INCONSISTENT_HINT,
    "missing": f"{INTACT}, and keep both side by side",
    "unchecked": "nothing is known of it until it is checked",
    "unprotected": UNPROTECTED_HINT,
}
UNFINISHED = (
    "{} in {}, where an unfinished run keeps releases: give that command again, then verify what it writes"
)
LINK = "it is a symbolic link, and links are not followed"
NOT_FORGERY = "without --trust this finds inconsistency, not forgery"
UNTRUSTED_HINT = "get its signer's public key from a source that you trust, or do not rely on this file"


def verify_command(
    outputs: Annotated[
        list[Path],
        typer.Argument(metavar="OUTPUT", help="Releases, shards, PDF files, folders of them, or data sets."),
    ],
    at_least: AtLeast = None,
    trust: Trust = None,
    json: AsJson = False,
    max_pixels: Annotated[
        int, typer.Option(metavar="N", min=1, max=2**31, help="Refuse photos with more pixels.")
    ] = 100_000_000,
) -> int:
    """Check that released photos and clips are the ones their certificates describe, and recompute every
    guarantee.

    \b
    Examples:
      dpveil verify private.png
      dpveil verify private.mp4
      dpveil verify private.png --trust releases.key.pub
      dpveil verify private/000.tar private/001.parquet

    Without --trust it finds inconsistency, not forgery: anybody can write a certificate that fits a photo of
    theirs. Exit code 1: a file has no certificate, or does not match it, or promises less than --at-least, or
    cannot be checked as far as that asks for, or nobody of --trust signed it. Without --at-least any promise
    will do.
    """
    from dpveil.accounting.meaning import check_strength_name
    from dpveil.batch.inside import STAGE
    from dpveil.cli import verify_set
    from dpveil.cli.entries import Entries, print_document
    from dpveil.cli.verify_counts import Counts
    from dpveil.core.guarantee import counted
    from dpveil.release.keys import trusted_keys

    trusted = trusted_keys(trust or None)
    least = None if at_least is None else check_strength_name(at_least)
    sets, others = verify_set.split(outputs)
    counts, lines, waiting = Counts(), _Lines(others, least, silent=json), 0
    with Entries(kept=json) as good, Entries(kept=json) as bad:
        for result in results(others, max_pixels, least, trusted, sets):
            counts.add(result)
            lines.add(result)
            waiting += STAGE in result.path.parts
            (good if result.sound else bad).add(_entry(result) if json else {})
        lines.end()
        if not good and not bad:
            raise PhotoError(
                "there is nothing to verify", hint="name released images, or folders that contain some"
            )
        note = vouched(trusted)
        if json:
            print_document({"verified": good, "failed": bad}, {"note": note})
    for line in counts.lines(least):
        say.note(line)
    if waiting:
        say.note(UNFINISHED.format(counted(waiting, "file"), STAGE))
    say.note(f"{counts.summary(least)}; {note}")
    return exits.INCOMPLETE if bad else exits.DONE


def vouched(trusted: Sequence[PublicKey] | None) -> str:
    """Return by whom everything that passed is signed, or that nobody was asked for."""
    from dpveil.core.guarantee import counted

    if trusted is None:
        return NOT_FORGERY
    first = f"{trusted[0].name} ({trusted[0].fingerprint})"
    return f"trusted: {first if len(trusted) == 1 else counted(len(trusted), 'key')}"


class _Lines:
    """Prints a line for each file, and few for what lies in a file of many, or has no certificate."""

    def __init__(self, outputs: Collection[Path], least: str | None, *, silent: bool) -> None:
        from dpveil.cli.verify_folded import Bare
        from dpveil.cli.verify_inside import Folded

        self._least, self._silent, self._named = least, silent, frozenset(outputs)
        self._inside, self._bare = Folded("consistent    "), Bare(outputs)

    def add(self, result: Verification) -> None:
        """Take the next result."""
        from dpveil.cli.verify_inside import alike

        if self._silent:
            return
        if result.inside is None:
            self._inside.end()
            if not self._bare.keeps(result):
                say.answer(_line(result, self._least))
                self._block(result)
        elif result.sound:
            self._inside.good(result.inside, alike(result, self._least), result.together)
        else:
            broken = result.status not in ("consistent", "unprotected")
            self._inside.bad(result.inside, _line(result, self._least), broken=broken)

    def _block(self, result: Verification) -> None:
        """Print what is said of a release that was named itself."""
        from dpveil.cli.verify_words import block
        from dpveil.release.saving import certificate_path

        if not self._named.isdisjoint((result.path, certificate_path(result.path))):
            for line in block(result):
                say.answer(f"  {line}")

    def end(self) -> None:
        """Print what is left to say."""
        self._inside.end()
        for line in self._bare.lines():
            say.answer(line)


def results(
    outputs: Iterable[Path],
    max_pixels: int,
    least: str | None,
    trusted: Sequence[PublicKey] | None,
    sets: Collection[Path] = (),
) -> Iterator[Verification]:
    """Yield the verification of all `sets`, and of every target outside of them, each once, as it is done.

    Of a WebDataset shard, Parquet file or PDF, it is that of everything in it.
    """
    from dpveil.cli.verify_set import of_a_set
    from dpveil.release.saving import image_path
    from dpveil.release.verification import Verification
    from dpveil.verifying import verify, verify_each

    for made in sets:
        yield verify(made, at_least=least, trust=trusted)
    seen: set[Path] = set()
    for path, problem in targets(outputs, sets):
        image = image_path(path) or path
        if image in seen:
            continue
        seen.add(image)
        if problem:
            yield Verification(image, "inconsistent", (problem,))
            continue
        for found in verify_each(path, max_pixels=max_pixels, at_least=least, trust=trusted):
            whose = of_a_set(image) if found.status == "missing" and found.inside is None else ""
            yield Verification(image, "missing", (whose,)) if whose else found


def targets(outputs: Iterable[Path], sets: Collection[Path] = ()) -> Iterator[tuple[Path, str]]:
    """Yield the files to verify with an empty string, and others with the reason why they fail.

    Folders are searched for pictures, videos, files of many, certificates, links, and unreadable folders,
    also hidden ones, because all of these would be published with the folder; what lies in one of `sets` is
    left out, as that is verified as a whole.
    """
    from dpveil.batch.archives import ARCHIVES
    from dpveil.io import FORMATS
    from dpveil.io.document import PDF
    from dpveil.io.folders import UNWRITTEN, is_folder, is_link, walk
    from dpveil.release.saving import SUFFIX

    apart = frozenset(sets)
    for output in outputs:
        if not is_folder(output):
            if output.parent not in apart or not os.path.lexists(output):
                yield output, ""
        elif is_link(output):
            yield output, LINK
        else:
            for path, problem in walk(output, hidden=True):
                if not apart.isdisjoint(path.parents):
                    continue
                link = LINK if is_link(path) else ""
                ends = UNWRITTEN.union(FORMATS, ARCHIVES, (PDF,))
                if problem or link or path.suffix.lower() in ends or path.name.endswith(SUFFIX):
                    yield path, f"the folder {problem}" if problem else link


def _entry(result: Verification) -> dict[str, Any]:
    from dpveil.cli.verify_words import promise
    from dpveil.io.document import PDF
    from dpveil.release.saving import certificate_path
    from dpveil.synthesis.plan import NAME
    from dpveil.verifying import SetVerification

    certificate, document = result.certificate, result.inside
    if isinstance(result, SetVerification):
        beside = result.path / NAME
    elif document is None or document.suffix.lower() != PDF:
        beside = certificate_path(result.path)
    else:
        beside = certificate_path(document)
    entry: dict[str, Any] = {
        "output": str(result.path),
        **({} if result.inside is None else {"inside": str(result.inside)}),
        "certificate": str(beside),
        "status": "untrusted" if result.status == "consistent" and result.untrusted else result.status,
        "publishable": result.publishable,
        "objections": list(result.objections),
        "guarantee": None if certificate is None else promise(result),
        "strength": None if certificate is None else certificate.strength,
        "warnings": [] if certificate is None else list(certificate.warnings),
        "in_the_clear": list(result.in_the_clear),
        "notes": list(result.notes),
        "sha256": result.sha256 or None,
        "signed_by": result.signer or None,
        "trusted_as": result.trusted_as or None,
    }
    if result.status == "consistent":
        if result.untrusted:
            return entry | {"error": result.untrusted, "hint": UNTRUSTED_HINT}
        return entry if not result.refused else entry | {"error": result.refused, "hint": TOO_WEAK_HINT}
    unprotected = result.status == "unprotected"
    error = "unprotected copy" if unprotected else "; ".join(result.problems)
    return entry | {"error": error, "hint": HINTS[result.status]}


def _line(result: Verification, least: str | None) -> str:
    from dpveil.cli.verify_words import called, promise, standing
    from dpveil.io.names import quoted

    path = quoted(called(result))
    if result.status in WORDS:
        told = UNPROTECTED_HINT if result.status == "unprotected" else "; ".join(result.problems)
        return f"{WORDS[result.status]:<13} {path}  {told}"
    if result.untrusted:
        return f"UNTRUSTED     {path}  {quoted(result.untrusted)}"
    if result.refused:
        return f"TOO WEAK      {path}  {quoted(result.refused)}"
    # Everything printed here is recomputed: texts of the certificate are untrusted.
    told = quoted(str(promise(result)))
    known = [say.hash_in_short(result.sha256)] if result.sha256 else []
    return "  ".join([f"consistent    {path}", told, standing(result, least), *result.notes, *known])
