"""The outcome of a run, printed for people or programs, and its exit code."""

from __future__ import annotations

from collections.abc import Sequence
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
from dpveil.core.guarantee import Guarantee, counted
from dpveil.core.notes import Aside
from dpveil.errors import BudgetRefused, DPVeilError, OutputError, PhotoError, TooWeak
from dpveil.io.names import shown
from dpveil.release.words import worth

SHOWN_WARNINGS: Final = 5
"""Most warnings that are printed."""
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
    fruitless = errors and not report.released and not report.skipped
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
    for text in report.notes:
        say.note(f"warning: {text}")
    _warn(report.released)
    if report.skipped:
        say.note(SKIPPED.format(photos=several([shown(entry.source) for entry in report.skipped])))
    if lost := report.discarded:
        say.note(DISCARDED.format(photos=several([shown(entry.source) for entry in lost])))
    counts = (len(report.released), len(report.failed), len(report.skipped), len(report.no_region))
    untried = f", not tried {len(report.untried)}" if report.untried else ""
    say.note("released {}, failed {}, skipped {}, no region {}".format(*counts) + untried)


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


def _tell_each(report: Report) -> None:
    for entry in report.released:
        if entry.promise is not None:
            say.answer(f"{shown(entry.source)} -> {shown(str(entry.output))}  {cost(entry.promise)}")
    for entry in report.entries:
        if entry.failure is not None and entry.status != UNTRIED:
            say.note(_refused(shown(entry.source), entry.failure.message, entry.failure.hint))
    if untried := report.untried:
        failure, what = (
            untried[0].failure,
            f"{shown(untried[0].source)} and what follows, {len(untried)} in all",
        )
        why = "" if failure is None else str(DPVeilError(failure.message, hint=failure.hint))
        say.note(f"{'nothing was drawn' if report.stopped == UNAFFORDABLE else what}: {why}")


def _refused(source: str, message: str, hint: str) -> str:
    """Return why a photo was not released, with its name once."""
    told = str(DPVeilError(message, hint=hint))
    return told if message.startswith(f"{source} ") else f"{source}: {told}"


def _warn(entries: Sequence[Entry]) -> None:
    """Print every warning once, with the first photo that has it, and then what is for information."""
    about: dict[str, list[str]] = {}
    for entry in entries:
        for text in entry.warnings:
            about.setdefault(text, []).append(shown(entry.source))
    grave = {text: photos for text, photos in about.items() if not isinstance(text, Aside)}
    for text, photos in list(grave.items())[:SHOWN_WARNINGS]:
        say.note(f"warning: {several(photos)}: {text}")
    if len(grave) > SHOWN_WARNINGS:
        say.note(f"and {counted(len(grave) - SHOWN_WARNINGS, 'more warning')}: --json has them all")
    for text, photos in about.items():
        if text not in grave:
            say.note(text if len(photos) == len(entries) else f"{several(photos)}: {text}")


def several(photos: Sequence[str]) -> str:
    """Return the name of the first photo, and how many more there are.

    >>> several(["a.jpg"]), several(["a.jpg", "b.jpg", "c.jpg"])
    ('a.jpg', 'a.jpg and 2 more')
    """
    return photos[0] + (f" and {len(photos) - 1} more" if len(photos) > 1 else "")
