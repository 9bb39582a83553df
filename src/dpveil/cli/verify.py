"""`dpveil verify`: checks that saved releases match their certificates."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from dpveil.accounting.meaning import NONE, STRENGTHS, check_strength_name
from dpveil.cli import exits, say
from dpveil.cli.options import AsJson, AtLeast, Silent, Trust, Verbose
from dpveil.cli.say import Voice
from dpveil.core.guarantee import count_noun
from dpveil.errors import INTACT, PhotoError
from dpveil.io import FORMATS
from dpveil.io.document import PDF
from dpveil.io.folders import MANY, STAGE, UNWRITTEN, is_folder, is_link, walk
from dpveil.io.names import escape_text, show_path
from dpveil.release.documents import number_of
from dpveil.release.keys import PublicKey, trusted_keys
from dpveil.release.saving import SUFFIX, certificate_path, image_path, is_clip
from dpveil.release.verification import Verification
from dpveil.release.words import in_short, share
from dpveil.verifying import verify, verify_each

SOUND: Final = "unmodified"
"""What is said of a release that fits its certificate."""
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
UNCHECKED = "signer not checked (use --trust)"
UNTRUSTED_HINT = "get its signer's public key from a source that you trust, or do not rely on this file"


def verify_command(
    outputs: Annotated[
        list[Path],
        typer.Argument(metavar="OUTPUT", help="Releases, shards, PDF files, folders of them, or data sets."),
    ],
    at_least: AtLeast = None,
    trust: Trust = None,
    quiet: Silent = False,
    verbose: Verbose = False,
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

    Without --trust it shows that a file is unmodified, and not who made it: anybody can write a certificate
    that fits a photo of theirs. Exit code 1: a file has no certificate, or does not match it, or promises
    less than --at-least, or cannot be checked as far as that asks for, or nobody of --trust signed it.
    Without --at-least any promise will do.
    """
    voice = Voice.of(quiet=quiet, verbose=verbose)
    trusted = trusted_keys(trust or None)
    least = None if at_least is None else check_strength_name(at_least)
    sets, others = sets_among(outputs)
    counts, waiting, entries = Counts(), 0, list[dict[str, Any]]()
    found = results(others, max_pixels, least, trusted, sets)
    for _, group in groupby(found, lambda one: one.inside or one.path):  # what lies in a file, together
        several = [*group]
        inside = several[0].inside
        for result in several:
            counts.add(result)
            waiting += STAGE in result.path.parts
        if json:
            entries += map(_entry, several)
        elif inside is not None:
            _tell_inside(inside, several, least, voice)
        else:
            _tell_each(several, least, voice, bare=len(counts.bare), named={*others})
    if not (counts.sound or counts.failed or counts.bare):
        hint = "name released images, or folders that contain some"
        raise PhotoError("there is nothing to verify", hint=hint)
    note = trust_text(trusted)
    if json:
        verified = [entry for entry in entries if "error" not in entry]
        failed = [entry for entry in entries if "error" in entry]
        say.document({"verified": verified, "failed": failed, "note": note})
    elif (more := len(counts.bare) - MOST_LINES) > 0:
        say.answer(f"MISSING       and {count_noun(more, 'more file')} without a certificate: {ALL}")
    for line in counts.lines(least):
        voice.note(line)
    if waiting:
        voice.note(UNFINISHED.format(count_noun(waiting, "file"), STAGE))
    bad = counts.failed + len(counts.bare)
    if counts.sound or bad > 1:
        voice.note("; ".join(filter(None, [counts.summary(least), note])))
    return exits.INCOMPLETE if bad else exits.DONE


def _tell_each(
    several: Sequence[Verification], least: str | None, voice: Voice, *, bare: int, named: Collection[Path]
) -> None:
    """Print a line for each file, but not for many without a certificate, of which `bare` were seen."""
    for result in several:
        if (result.sound and voice.quiet) or (is_bare(result) and bare > MOST_LINES):
            continue
        say.answer(_line(result, least, voice))
        if voice.verbose and not {*named}.isdisjoint((result.path, certificate_path(result.path))):
            for line in block(result):
                say.answer(f"  {line}")


def _tell_inside(file: Path, several: Sequence[Verification], least: str | None, voice: Voice) -> None:
    """Print the first problems in a file of many releases, and of the others how many promise what.

    Of a document without a page that is broken one line says what all pages promise together.
    """
    path = escape_text(show_path(file))
    bad = [result for result in several if not result.sound]
    for result in bad[:MOST_LINES]:
        say.answer(_line(result, least, voice))
    if len(bad) > MOST_LINES:
        say.answer(f"and {count_noun(len(bad) - MOST_LINES, 'other problem')} in {path}: {ALL}")
    sound = [result for result in several if result.sound]
    together = next((result.together for result in sound if result.together), "")
    if voice.quiet or not sound:
        return
    alike = Counter("; ".join(result_parts(result, least)) for result in sound)
    if together and all(result.status in ("consistent", "unprotected") for result in bad):
        parts = (part for one in sound for part in result_parts(one, least)[one.publishable :])
        told = "; ".join([together, *dict.fromkeys(parts)])
        say.answer(f"{SOUND:<13} {path}  {escape_text(told)}")
        alike = alike if voice.verbose else Counter()
    for text, count in alike.most_common(MOST_LINES):
        say.answer(f"{SOUND:<13} {path}  {count_noun(count, 'release')}: {text}")


def trust_text(trusted: Sequence[PublicKey] | None) -> str:
    """Return by whom everything that passed is signed, or that nobody was asked for."""
    if trusted is None:
        return UNCHECKED
    first = f"{trusted[0].name} ({trusted[0].fingerprint})"
    return f"trusted: {first if len(trusted) == 1 else count_noun(len(trusted), 'key')}"


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
                ends = UNWRITTEN.union(FORMATS, MANY)
                if problem or link or path.suffix.lower() in ends or path.name.endswith(SUFFIX):
                    yield path, f"the folder {problem}" if problem else link


def _entry(result: Verification) -> dict[str, Any]:
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


def _line(result: Verification, least: str | None, voice: Voice = say.PLAIN) -> str:
    path = escape_text(display_name(result))
    if result.status in WORDS:
        told = UNPROTECTED_HINT if result.status == "unprotected" else "; ".join(result.problems)
        return f"{WORDS[result.status]:<13} {path}  {told}"
    if result.untrusted:
        return f"UNTRUSTED     {path}  {escape_text(result.untrusted)}"
    if result.refused:
        return f"TOO WEAK      {path}  {escape_text(result.refused)}"
    # Everything printed here is recomputed: texts of the certificate are untrusted.
    known = [say.hash_in_short(result.sha256)] if result.sha256 and voice.verbose else []
    notes = [note for note in result.notes if voice.verbose or note != _share(result)]
    return f"{SOUND:<13} {path}  " + "; ".join([standing(result, least), *notes, *known])


KEEP_APART = "they may be originals, so keep them apart from what you publish"
UNPUBLISHABLE = "nothing here is publishable, although it is what its certificate says"


@dataclass
class Counts:
    """How many files are sound, publishable and not sound; `bare` are those that have no certificate."""

    sound: int = 0
    publishable: int = 0
    failed: int = 0
    bare: list[Path] = field(default_factory=list)

    def add(self, result: Verification) -> None:
        """Count one file."""
        bare = is_bare(result)
        self.sound += result.sound
        self.publishable += result.publishable
        self.failed += not bare and not result.sound
        self.bare += [result.path] * bare

    def summary(self, least: str | None) -> str:
        """Return all numbers but zeros in one line; empty if there is one file alone, which has its own."""
        counts = {
            SOUND if least is None else f"at least {least}": self.sound,
            "of them not publishable": self.sound - self.publishable,
            "without a certificate": len(self.bare),
            "failed": self.failed,
        }
        several = self.sound + self.failed + len(self.bare) > 1
        return ", ".join(f"{count:,} {word}" for word, count in counts.items() if count) * several

    def lines(self, least: str | None) -> Iterator[str]:
        """Yield what is to be known before the files are published, if anything."""
        if self.bare and not self.sound and not self.failed:
            yield f"no release is here: {count_noun(len(self.bare), 'file')} without a certificate"
        elif self.bare:
            files = say.first_and_count([escape_text(show_path(path)) for path in self.bare])
            yield f"without a certificate: {files}: {KEEP_APART}"
        if least is None and self.sound > 1 and not self.publishable:
            yield UNPUBLISHABLE


def is_bare(result: Verification) -> bool:
    """Whether a file is there, has no certificate, and is not part of a data set."""
    inside = result.inside
    there = result.status == "missing" and os.path.lexists(inside or result.path)
    return there and (inside is not None or not of_a_set(result.path))


MOST_LINES: Final = 10
"""Most problems in one file that have a line, and most files without a certificate."""
ALL: Final = "--json has all of them"


def result_parts(result: Verification, least: str | None) -> list[str]:
    """Return what is said of each sound release like this one: what it promises, and notes.

    Without what is its own: the hash, and the share of the photo that its regions have; nor what all together
    promise.
    """
    notes = [note for note in result.notes if note not in (_share(result), result.together)]
    return [standing(result, least), *notes]


def _share(result: Verification) -> str:
    """Return the note on how much of a photo is replaced; empty if there is none."""
    stated = result.certificate
    output = getattr(stated, "output", None)
    regions = getattr(stated, "regions", None)
    return "" if output is None or regions is None else share(regions, output.width, output.height)


PART = "it has no certificate of its own: check its data set with dpveil verify {}"


def sets_among(outputs: Iterable[Path]) -> tuple[list[Path], list[Path]]:
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
            sets |= dict.fromkeys(sets_below(path))
    return [*sets], others


def sets_below(folder: Path) -> list[Path]:
    """Return the data sets below a folder, without those that lie in another one."""
    from dpveil.synthesis.plan import NAME

    found: dict[Path, None] = {}
    for path, _ in walk(folder, hidden=True) if is_folder(folder) and not is_link(folder) else ():
        if path.name == NAME and found.keys().isdisjoint(path.parents):
            found[path.parent] = None
    return [*found]


def of_a_set(picture: Path) -> str:
    """Return why a picture without a certificate is not verified by itself, if it lies in a data set."""
    from dpveil.synthesis.saving import is_set

    return PART.format(show_path(picture.parent)) if is_set(picture.parent) else ""


def display_name(result: Verification) -> str:
    """Return the name of a file, or of a page with that of its document."""
    document = result.inside
    if document is None or document == result.path or document.suffix.lower() != PDF:
        return show_path(result.path)
    return f"{show_path(document)}, page {number_of(result.path.name):,}"


def promise(result: Verification) -> str | None:
    """Return the total of a release in words, or None."""
    composition = None if result.certificate is None else result.certificate.composition
    return None if composition is None else str(composition)


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
    return f"{in_short(total)}{grade}: " + (
        f"publishable{asked}" if result.publishable else f"not publishable{why}"
    )


def block(result: Verification) -> tuple[str, ...]:
    """Return what is said of a clip, a line for each question, recomputed from data; empty for photos."""
    if not is_clip(result.path):
        return ()
    from dpveil.video.verification import ClipVerification
    from dpveil.video.words import lines

    if not isinstance(result, ClipVerification) or result.certificate is None:
        return ()
    sound = result.status == "consistent"
    return tuple(map(escape_text, lines(result.certificate.quote))) if sound else ()
