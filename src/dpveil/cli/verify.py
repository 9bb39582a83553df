"""`dpveil verify`: checks that saved releases match their certificates."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from dpveil.accounting.meaning import NONE, STRENGTHS, check_strength_name
from dpveil.cli import exits, say
from dpveil.cli.options import AsJson, AtLeast, MaxPixels, Silent, Trust, Verbose
from dpveil.cli.say import Voice
from dpveil.core.guarantee import count_noun
from dpveil.errors import INTACT, PhotoError
from dpveil.io.folders import DATA_SET, PACKED_SUFFIXES, PDF, UNWRITTEN, is_data_set, is_folder, is_link, walk
from dpveil.io.names import FORMATS, escape_text, show_path
from dpveil.release.keys import PublicKey, trusted_keys
from dpveil.release.saving import SUFFIX, certificate_path, image_path, is_clip
from dpveil.release.verification import RESEARCH_ONLY, Verification
from dpveil.release.words import in_short, passed_notes, share
from dpveil.verifying import verify, verify_each

SOUND: Final = "unmodified"  # what is said of a release that fits its certificate
WORDS = {
    "inconsistent": "INCONSISTENT",
    "missing": "UNCERTIFIED",
    "unchecked": "NOT CHECKED",
    "unprotected": "UNPROTECTED",
}
COPY: Final = (
    "it is a copy of the original and carries no guarantee (--if-none copy, or a page of a document on which"
    " nothing was found): do not publish it unless you have looked at it"
)
HINTS = {
    "inconsistent": f"do not rely on this file; {INTACT}",
    "missing": f"{INTACT}, and keep both side by side",
    "unchecked": "nothing is known of it until it is checked",
}
LINK = "it is a symbolic link, and links are not followed"
MOST_LINES: Final = 10  # most problems in one file that have a line


def verify_command(
    outputs: Annotated[
        list[Path],
        typer.Argument(
            metavar="OUTPUT...", help="Releases, shards, PDF files, folders of them, or data sets."
        ),
    ],
    at_least: AtLeast = None,
    trust: Trust = None,
    quiet: Silent = False,
    verbose: Verbose = False,
    json: AsJson = False,
    max_pixels: MaxPixels = 100_000_000,
) -> int:
    """Check that released photos and clips are the ones their certificates describe, and recompute every
    guarantee.

    \b
    Examples:
      dpveil verify private.png
      dpveil verify private.mp4
      dpveil verify private.png --trust releases.key.pub
      dpveil verify private/000.tar private/001.parquet

    Without --trust it shows that a file is unmodified, and not who made it: anybody can write a certificate
    that fits a photo of theirs. Exit code 1: a file has no certificate, or does not match it, or promises
    less than --at-least, or cannot be checked as far as that asks for, or nobody of --trust signed it.
    Without --at-least any promise will do.
    """
    voice = Voice.of(quiet=quiet, verbose=verbose)
    trusted = trusted_keys(trust or None)
    least = None if at_least is None else check_strength_name(at_least)
    sound = publishable = failed = 0
    bare, entries = list[Path](), list[dict[str, Any]]()
    found = results(outputs, max_pixels, least, trusted)
    for _, group in groupby(found, lambda one: one.inside or one.path):  # what lies in a file, together
        several = [*group]
        for result in several:
            sound += result.sound
            publishable += result.publishable
            if result.status == "missing" and os.path.lexists(result.inside or result.path):
                bare.append(result.path)
            else:
                failed += not result.sound
        entries += map(_entry, several) if json else ()
        for line in () if json else _lines(several, least, voice):
            say.answer(line)
    bad = failed + len(bare)
    if not (sound or bad):
        hint = "name released images, or folders that contain some"
        raise PhotoError("there is nothing to verify", hint=hint)
    note = "signer not checked (use --trust)"  # else by whom everything that passed is signed
    if trusted is not None:
        first = f"{trusted[0].name} ({trusted[0].fingerprint})"
        note = f"trusted: {first if len(trusted) == 1 else count_noun(len(trusted), 'key')}"
    if json:
        verified = [entry for entry in entries if "error" not in entry]
        failures = [entry for entry in entries if "error" in entry]
        say.document({"verified": verified, "failed": failures, "note": note})
    if bare:
        names = say.first_and_count([escape_text(show_path(path)) for path in bare])
        apart = "they may be originals, so keep them apart from what you publish"
        voice.note(f"without a certificate: {names}: {apart}")
    counts = {
        SOUND if least is None else f"at least {least}": sound,
        "of them not publishable": sound - publishable,
        "without a certificate": len(bare),
        "failed": failed,
    }
    told = ", ".join(f"{count:,} {word}" for word, count in counts.items() if count) * (sound + bad > 1)
    if sound or bad > 1:
        voice.note("; ".join(filter(None, [told, note])))
    return exits.INCOMPLETE if bad else exits.DONE


def _lines(several: Sequence[Verification], least: str | None, voice: Voice) -> Iterator[str]:
    """Yield what is said of a file: of many releases in it, their first problems, and how many promise what;
    of a document, what all its pages promise together.
    """
    first, bad = several[0], [result for result in several if not result.sound]
    for result in bad[:MOST_LINES]:
        yield _line(result, least, voice)
    if len(bad) > MOST_LINES:
        yield f"and {count_noun(len(bad) - MOST_LINES, 'other problem')}: --json has all of them"
    sound = [result for result in several if result.sound]
    if voice.quiet or not sound:
        return
    if first.inside is None:
        yield _line(first, least, voice)
        if voice.verbose and is_clip(first.path):
            from dpveil.video.words import lines

            yield from (f"  {escape_text(line)}" for line in lines(first.certificate.quote))  # type: ignore[union-attr]
        return
    path = escape_text(show_path(first.inside))
    if together := next((result.together for result in sound if result.together), ""):
        # what is said of one page alone is said of the document with the numbers of pages, or not at all
        common = (note for one in sound for note in one.notes if note not in (one.together, *_of_one(one)))
        if all(result.status in ("consistent", "unprotected") for result in bad):
            yield f"{SOUND:<13} {path}  {escape_text('; '.join(dict.fromkeys([together, *common])))}"
        return
    texts = (
        "; ".join([standing(one, least), *[n for n in one.notes if n not in (_share(one), RESEARCH_ONLY)]])
        for one in sound
    )
    for text, count in Counter(texts).most_common(MOST_LINES):
        yield f"{SOUND:<13} {path}  {count_noun(count, 'release')}: {text}"


def _of_one(page: Verification) -> tuple[str, ...]:
    """Return the notes that hold for one page only: its share, and what was not found on it."""
    stated = page.certificate
    return () if stated is None else (_share(page), *passed_notes(stated.passed_over))


def results(
    outputs: Iterable[Path], max_pixels: int, least: str | None, trusted: Sequence[PublicKey] | None
) -> Iterator[Verification]:
    """Yield the verification of every target as it is done; of files of many releases, that of each."""
    for path, problem in targets(outputs):
        if problem:
            yield Verification(path, "inconsistent", (problem,))
        elif is_data_set(path):
            yield verify(path, at_least=least, trust=trusted)
        else:
            yield from verify_each(path, max_pixels=max_pixels, at_least=least, trust=trusted)


def targets(outputs: Iterable[Path]) -> Iterator[tuple[Path, str]]:
    """Yield the data sets and files to verify, each once, with an empty string, or else why they fail.

    Folders are searched for pictures, videos, files of many, certificates, links, and unreadable folders,
    also hidden ones, because all of these would be published with the folder. What lies in a data set is
    verified with it.
    """
    given = [path.parent if _names_a_set(path) else path for path in outputs]
    sets = {path for path in given if is_data_set(path)}
    seen: set[Path] = set()
    for output in given:
        if output.parent in sets and os.path.lexists(output):
            continue
        inside = is_folder(output) and output not in sets
        for path, problem in _in_folder(output) if inside else [(output, "")]:
            file = image_path(path) or path
            if file not in seen:
                seen.add(file)
                yield (file if problem else path), problem


def _names_a_set(path: Path) -> bool:
    return path.name == DATA_SET and is_data_set(path.parent)


def _in_folder(folder: Path) -> Iterator[tuple[Path, str]]:
    if is_link(folder):
        yield folder, LINK
        return
    sets = {*sets_below(folder)}
    yield from ((path, "") for path in sorted(sets))
    ends = UNWRITTEN.union(FORMATS, PACKED_SUFFIXES)
    for path, problem in walk(folder, hidden=True):
        if sets.isdisjoint(path.parents):
            link = LINK if is_link(path) else ""
            if problem or link or path.suffix.lower() in ends or path.name.endswith(SUFFIX):
                yield path, f"the folder {problem}" if problem else link


def _entry(result: Verification) -> dict[str, Any]:
    from dpveil.verifying import SetVerification

    certificate, file = result.certificate, result.inside
    in_document = file is not None and file.suffix.lower() == PDF
    beside = certificate_path(file if file is not None and in_document else result.path)
    if isinstance(result, SetVerification):
        beside = result.path / DATA_SET
    total = None if certificate is None else certificate.composition
    entry: dict[str, Any] = {
        "output": str(result.path),
        **({} if result.inside is None else {"inside": str(result.inside)}),
        "certificate": str(beside),
        "status": "untrusted" if result.status == "consistent" and result.untrusted else result.status,
        "publishable": result.publishable,
        "objections": list(result.objections),
        "guarantee": None if total is None else str(total),
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
            hint = "get its signer's public key from a source that you trust, or do not rely on this file"
            return entry | {"error": result.untrusted, "hint": hint}
        hint = "release the photo again with a smaller budget (dpveil explain), or ask for less"
        return entry | {"error": result.refused, "hint": hint} if result.refused else entry
    if result.status == "unprotected":
        return entry | {"error": "unprotected copy", "hint": COPY}
    return entry | {"error": "; ".join(result.problems), "hint": HINTS[result.status]}


def _line(result: Verification, least: str | None, voice: Voice) -> str:
    path = escape_text(show_path(result.path))
    if result.inside not in (None, result.path) and result.inside.suffix.lower() == PDF:
        from dpveil.release.document_certificate import number_of

        path = escape_text(f"{show_path(result.inside)}, page {number_of(result.path.name):,}")
    if result.status in WORDS:
        told = COPY if result.status == "unprotected" else "; ".join(result.problems)
        return f"{WORDS[result.status]:<13} {path}  {told}"
    if result.untrusted:
        return f"UNTRUSTED     {path}  {escape_text(result.untrusted)}"
    if result.refused:
        return f"TOO WEAK      {path}  {escape_text(result.refused)}"
    # Everything printed here is recomputed: texts of the certificate are untrusted.
    known = [f"sha256 {result.sha256[:12]}"] if result.sha256 and voice.verbose else []
    hidden = (RESEARCH_ONLY, "" if voice.verbose else _share(result))
    notes = [note for note in result.notes if note not in hidden]
    return f"{SOUND:<13} {path}  " + "; ".join([standing(result, least), *notes, *known])


def _share(result: Verification) -> str:
    stated = result.certificate
    output = getattr(stated, "output", None)
    regions = getattr(stated, "regions", None)
    return "" if output is None or regions is None else share(regions, output.width, output.height)


def sets_below(folder: Path) -> list[Path]:
    """Return the data sets below a folder, without those that lie in another one."""
    found: dict[Path, None] = {}
    for path, _ in walk(folder, hidden=True) if is_folder(folder) and not is_link(folder) else ():
        if path.name == DATA_SET and found.keys().isdisjoint(path.parents):
            found[path.parent] = None
    return [*found]


def standing(result: Verification, least: str | None) -> str:
    """Return what is promised, and whether and why the release may be published or not.

    It may be with a strength of `least` or more, and without one with any that has a name.
    """
    stated = result.certificate
    if stated is None or stated.composition is None:
        return ""
    standard = least or [*STRENGTHS][-1]
    reasons = [reason for reason in result.objections if reason != str(stated.composition)]
    against = [f"below {standard}" if reason == NONE else reason for reason in reasons]
    why = f" ({', '.join(against)})" if against else ""
    total = stated.composition
    grade = "" if total.free or not total.formal else f" ({stated.strength})"
    asked = f" (at least {least})" if least else ""
    only = f" {RESEARCH_ONLY}" * (RESEARCH_ONLY in result.notes)
    end = f"publishable{only}{asked}" if result.publishable else f"not publishable{why}"
    return f"{in_short(total)}{grade}: {end}"
