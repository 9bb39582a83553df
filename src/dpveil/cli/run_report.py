"""The outcome of a run, printed for people or programs, and its exit code."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from dpveil.batch.report import (
    INTERRUPTED,
    UNAFFORDABLE,
    UNPAYABLE,
    UNSTARTED,
    UNTRIED,
    UNWRITABLE,
    Entry,
    Promise,
    Report,
)
from dpveil.cli import exits, say
from dpveil.core.envelope import Aside, Caution, Unfinished
from dpveil.core.guarantee import Guarantee, counted
from dpveil.errors import BudgetRefused, DPVeilError, OutputError, PhotoError, TooWeak
from dpveil.io.names import shown
from dpveil.release.words import worth

SHOWN_REASONS: Final = 20
"""Most reasons for refusals that are printed."""
SHOWN_NAMES: Final = 3
"""Most names of photos that are printed with one reason."""
STANDS: Final = "\0"
"""What stands for a name where reasons are compared."""
NUMBER: Final = re.compile(r"[0-9]+")
ALL: Final = "--json and --manifest name all"
WAITS: Final = "waits for the rest of its document"
DRY: Final = "; a dry run draws, pays and writes nothing"
SKIPPED: Final = (
    "skipped {photos}: released before with these settings, and the certificate is valid; --force releases"
    " anew"
)
DISCARDED: Final = (
    "warning: {photos}: paid and discarded, as it could not be written or another run was faster; nothing is"
    " refunded"
)
STOPPED: Final = {
    INTERRUPTED: exits.INTERRUPTED,
    UNWRITABLE: exits.IMPOSSIBLE,
    UNPAYABLE: exits.IMPOSSIBLE,
    UNAFFORDABLE: exits.BUDGET,
    UNSTARTED: exits.IMPOSSIBLE,
}
"""Exit codes of runs that ended early, by reason."""


def exit_code(report: Report) -> int:
    """Return the exit code of the whole run."""
    errors = report.errors
    if report.stopped is not None:
        return STOPPED[report.stopped]
    if any(issubclass(error, BudgetRefused | TooWeak) for error in errors):
        return exits.BUDGET
    fruitless = errors and not (report.released or report.skipped or report.priced)
    if fruitless and any(
        all(issubclass(error, kind) for error in errors) for kind in (PhotoError, OutputError)
    ):
        return exits.IMPOSSIBLE
    return exits.INCOMPLETE if errors else exits.DONE


def print_report(report: Report, json: bool) -> None:
    """Print the outcome of every input: releases on stdout, everything else on stderr."""
    if json:
        say.document(report.to_json())
    else:
        _tell_each(report)
    for text in report.wrote:
        (say.note if json else say.answer)(f"wrote {text}")
    for text in report.notes:
        say.note(f"warning: {text}")
    warn(report.released)
    if report.skipped:
        say.note(SKIPPED.format(photos=several([shown(entry.source) for entry in report.skipped])))
    for text in (text for entry in report.skipped for text in entry.warnings):
        if isinstance(text, Unfinished):
            say.note(text)
    if lost := report.discarded:
        say.note(DISCARDED.format(photos=several([shown(entry.source) for entry in lost])))
    say.note(_counts(report))


def written(path: Path | None, write: Callable[[Path], None]) -> int:
    """Write a file about the run, if any, and return an exit code; a failure is printed and stops nothing."""
    try:
        if path is not None:
            write(path)
    except Exception as error:  # noqa: BLE001  the releases are written, and their report is due
        say.note(f"dpveil: {say.one_line(error)}")
        return exits.IMPOSSIBLE
    return exits.DONE


def cost(promise: Promise) -> str:
    """Return a release's cost in one clause: for each region, in total, and the total's strength.

    >>> from dpveil.core.guarantee import Relation, Scope
    >>> one = Guarantee(kind="pure", epsilon=4, relation=Relation("any-image"), scope=Scope("a face"))
    >>> cost(Promise((one, one), one, "weak", faces=True))
    '2 faces at 4-DP each, together 4-DP (weak), any-image'
    """
    if promise.total is None:
        return "UNPROTECTED COPY"
    total = str(promise.total)
    if promise.total.formal:
        total = _number(promise.total)
        total = f"{total} ({worth(promise.total, str(promise.strength))}), {promise.total.relation}"
    count = len(promise.guarantees)
    if count == 1:
        return f"1 face at {total}" if promise.faces else total
    each = {_number(guarantee) for guarantee in promise.guarantees}
    at = f" at {each.pop()} each" if len(each) == 1 and promise.total.formal else ""
    return f"{count} {'faces' if promise.faces else 'regions'}{at}, together {total}"


def _number(guarantee: Guarantee) -> str:
    return str(guarantee).removesuffix(f", {guarantee.relation}")


def _counts(report: Report) -> str:
    """Return how many photos there are of each status."""
    none = "none of " if report.stopped == UNAFFORDABLE else ""
    first = f"would release {none}{len(report.priced)}" if report.dry else f"released {len(report.released)}"
    counts = (len(report.failed), len(report.skipped), len(report.no_region))
    told = "failed {}, skipped {}, no region {}".format(*counts)
    untried = f", not tried {len(report.untried)}" if report.untried else ""
    return f"{first}, {told}{untried}" + (DRY if report.dry else "")


def _tell_each(report: Report) -> None:
    for entry in report.released:
        if entry.promise is not None:
            place = WAITS if entry.output is None else shown(str(entry.output))
            say.answer(f"{shown(entry.source)} -> {place}  {cost(entry.promise)}")
    for entry in report.priced:
        if entry.promise is not None:
            say.answer(f"{shown(entry.source)}  {cost(entry.promise)}")
    for line in refusals([entry for entry in report.entries if entry.status != UNTRIED]):
        say.note(line)
    if untried := report.untried:
        what = several([shown(entry.source) for entry in untried])
        say.note(f"{'nothing was drawn' if report.stopped == UNAFFORDABLE else what}: {_why(untried[0])}")


def refusals(entries: Sequence[Entry]) -> list[str]:
    """Return why photos were not released: one line for each reason, with its first photos and their number.

    Reasons that differ in names and numbers alone are one, and told of the first photo.
    """
    alike: dict[str, list[Entry]] = {}
    for entry in entries:
        if entry.failure is not None:
            alike.setdefault(NUMBER.sub("0", _nameless(entry)), []).append(entry)
    groups = [*alike.values()]
    left = sum(len(group) for group in groups[SHOWN_REASONS:])
    more = [f"and {counted(left, 'more photo')}, for other reasons: {ALL}"] * bool(left)
    return [_refused(group) for group in groups[:SHOWN_REASONS]] + more


def _nameless(entry: Entry) -> str:
    """Return why a photo was not released, without its name and that of its output."""
    paths = [entry.source, *([] if entry.output is None else [entry.output])]
    names = {shown(name) for path in paths for name in (path, path.name)}
    text = _why(entry)
    for name in sorted(names, key=len, reverse=True):
        text = text.replace(name, STANDS)
    return text


def _why(entry: Entry) -> str:
    failure = entry.failure
    return "" if failure is None else str(DPVeilError(failure.message, hint=failure.hint))


def _refused(group: Sequence[Entry]) -> str:
    """Return why photos with one reason were not released, with each name once."""
    names, told = [shown(entry.source) for entry in group], _why(group[0])
    itself = told.startswith(f"{names[0]} ")
    if len(group) == 1:
        return told if itself else f"{names[0]}: {told}"
    few = ", ".join(names[:SHOWN_NAMES])
    photos = f"{len(group):,} photos ({few}{f', ...: {ALL}' if len(names) > SHOWN_NAMES else ''})"
    if len({_nameless(entry) for entry in group}) > 1:
        return f"{photos}: as the first, {told}"
    return f"{photos}: each {told.removeprefix(names[0]).lstrip()}" if itself else f"{photos}: {told}"


def warn(entries: Sequence[Entry], start: str = "warning: ", *, asides: bool = True) -> None:
    """Print every warning, those of certificates first, and then the `asides`, for information.

    Those that differ in numbers alone are one line, with the first photo and what it says there.
    """
    about: dict[str, dict[str, str]] = {}
    for entry in entries:
        for text in entry.warnings:
            about.setdefault(NUMBER.sub("0", text), {}).setdefault(shown(entry.source), text)
    for photos in sorted(about.values(), key=lambda photos: _rank(next(iter(photos.values())))):
        texts = [*photos.values()]
        told = texts[0] + " (the others with other numbers)" * (len({*texts}) > 1)
        if not isinstance(texts[0], Aside):
            say.note(f"{start}{several([*photos])}: {told}")
        elif asides:
            say.note(told if len(photos) == len(entries) else f"{several([*photos])}: {told}")


def _rank(text: str) -> int:
    return 0 if isinstance(text, Caution) else 2 if isinstance(text, Aside) else 1


def several(photos: Sequence[str]) -> str:
    """Return the name of the first photo, and how many more there are.

    >>> several(["a.jpg"]), several(["a.jpg", "b.jpg", "c.jpg"])
    ('a.jpg', 'a.jpg and 2 more')
    """
    return photos[0] + (f" and {len(photos) - 1} more" if len(photos) > 1 else "")
