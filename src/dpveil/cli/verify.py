"""`dpveil verify`: checks that saved releases match their certificates."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from dpveil.accounting.meaning import NONE, STRENGTHS, check_strength_name
from dpveil.cli import exits, say
from dpveil.cli.options import AsJson, AtLeast, Silent, Trust, Verbose
from dpveil.cli.say import Entries, Voice, print_document
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
    counts, lines, waiting = Counts(), _Lines(others, least, voice, silent=json), 0
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
        note = trust_text(trusted)
        if json:
            print_document({"verified": good, "failed": bad}, {"note": note})
    for line in counts.lines(least):
        voice.note(line)
    if waiting:
        voice.note(UNFINISHED.format(count_noun(waiting, "file"), STAGE))
    if good or len(bad) > 1:
        voice.note("; ".join(filter(None, [counts.summary(least), note])))
    return exits.INCOMPLETE if bad else exits.DONE


def trust_text(trusted: Sequence[PublicKey] | None) -> str:
    """Return by whom everything that passed is signed, or that nobody was asked for."""
    if trusted is None:
        return UNCHECKED
    first = f"{trusted[0].name} ({trusted[0].fingerprint})"
    return f"trusted: {first if len(trusted) == 1 else count_noun(len(trusted), 'key')}"


class _Lines:
    """Prints a line for each file, and few for what lies in a file of many, or has no certificate."""

    def __init__(self, outputs: Collection[Path], least: str | None, voice: Voice, *, silent: bool) -> None:
        self._least, self._silent, self._named = least, silent, frozenset(outputs)
        self._voice, self._inside, self._bare = voice, Folded(f"{SOUND:<13} ", voice), 0

    def add(self, result: Verification) -> None:
        """Take the next result."""
        if self._silent:
            return
        if result.inside is None:
            self._inside.end()
            self._bare += is_bare(result)
            shown = not result.sound or not self._voice.quiet
            if shown and (self._bare <= MOST_LINES or not is_bare(result)):
                say.answer(_line(result, self._least, self._voice))
                self._block(result)
        elif result.sound:
            parts = result_parts(result, self._least)
            self._inside.good(result.inside, "; ".join(parts), result.together, parts[result.publishable :])
        else:
            broken = result.status not in ("consistent", "unprotected")
            self._inside.bad(result.inside, _line(result, self._least, self._voice), broken=broken)

    def _block(self, result: Verification) -> None:
        """Print the details of a release that was named itself."""
        if self._voice.verbose and not self._named.isdisjoint((result.path, certificate_path(result.path))):
            for line in block(result):
                say.answer(f"  {line}")

    def end(self) -> None:
        """Print what is left to say."""
        self._inside.end()
        if (more := self._bare - MOST_LINES) > 0:
            say.answer(f"MISSING       and {count_noun(more, 'more file')} without a certificate: {ALL}")


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
MOST_KINDS: Final = 8
"""Most lines of one file about releases that are alike."""
ALL: Final = "--json has all of them"


class Folded:
    """Prints lines about what lies in files of many releases, one file after another.

    Of a file, the first problems have a line each, and what else is the same of several releases is one line
    at the end of the file, which begins with `word`; of a document all that is sound is one line.
    """

    def __init__(self, word: str, voice: Voice = say.PLAIN) -> None:
        self._word, self._voice = word, voice
        self._file: Path | None = None
        self._alike, self._notes = Counter[str](), dict[str, None]()
        self._together = ""
        self._broken = False
        self._others = self._bad = 0

    def good(self, file: Path, text: str, together: str = "", notes: Sequence[str] = ()) -> None:
        """Take a release of which `text` holds; of a document, what all promise `together`, and `notes`."""
        self._turn(file)
        self._together = together
        self._notes |= dict.fromkeys(notes)
        if text in self._alike or len(self._alike) < MOST_KINDS:
            self._alike[text] += 1
        else:
            self._others += 1

    def bad(self, file: Path, line: str, *, broken: bool = True) -> None:
        """Take a problem, which is told in a `line` of its own if it is one of the first.

        Of a document with one that is `broken`, nothing is said of what all of it promises.
        """
        self._turn(file)
        self._broken |= broken
        self._bad += 1
        if self._bad <= MOST_LINES:
            say.answer(line)

    def end(self) -> None:
        """Print what is left to say of the file."""
        path = escape_text(show_path(self._file or ""))
        if self._bad > MOST_LINES:
            say.answer(f"and {count_noun(self._bad - MOST_LINES, 'other problem')} in {path}: {ALL}")
        word, lines = self._word, [(count_noun(n, "release"), text) for text, n in self._alike.items()]
        lines += [(count_noun(self._others, "other release"), ALL)] * bool(self._others)
        if self._together and not self._broken:
            word = " " * len(word) if self._bad else word
            self._say(f"{word}{path}  " + escape_text("; ".join([self._together, *self._notes])))
            word, lines = " " * len(word), lines if self._voice.verbose else []
        for releases, text in lines:
            self._say(f"{word}{path}  {releases}: {text}")
        self._file, self._together, self._broken, self._others, self._bad = None, "", False, 0, 0
        self._alike.clear()
        self._notes.clear()

    def _say(self, line: str) -> None:
        if not self._voice.quiet:
            say.answer(line)

    def _turn(self, file: Path) -> None:
        if self._file is not None and self._file != file:
            self.end()
        self._file = file


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
