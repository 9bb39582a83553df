"""The outcome of a run, printed for people or programs, and its exit code."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from dpveil.accounting.meaning import NONE
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
from dpveil.cli.say import Voice
from dpveil.core.guarantee import Guarantee, count_noun
from dpveil.core.notes import Aside, Caution, Unfinished
from dpveil.core.region_origin import FACE, MASK, PLATE, TEXT, WHOLE
from dpveil.errors import BudgetRefused, DPVeilError, OutputError, PhotoError, TooWeak, UsageError
from dpveil.io.names import show_path
from dpveil.release.saving import is_clip
from dpveil.release.words import NO_PROMISE, in_short, linked_faces_clause

if TYPE_CHECKING:
    from dpveil.batch.tasks import RunSettings
    from dpveil.ledger import Ledger


MOST_REFUSED: Final = 20  # most reasons of refusals that are printed
NAMED: Final = 5  # most photos that are named with one
NUMBER: Final = re.compile(r"[0-9]+")
STOPPED: Final = {
    INTERRUPTED: exits.INTERRUPTED,
    UNWRITABLE: exits.IMPOSSIBLE,
    UNPAYABLE: exits.IMPOSSIBLE,
    UNAFFORDABLE: exits.BUDGET,
    UNSTARTED: exits.IMPOSSIBLE,
}
"""Exit codes of runs that ended early, by reason."""
NOUNS: Final[Mapping[str, tuple[str, str]]] = {
    TEXT: ("line of text", "lines of text"),
    PLATE: ("number plate", "number plates"),
    MASK: ("masked region", "masked regions"),
    WHOLE: ("whole photo", "whole photos"),
    "box": ("box", "boxes"),
}
"""What regions of a kind are called, one and many, where that is not the kind itself."""
PAGES: Final = (".pdf", ".tif", ".tiff")  # how documents are called, whose pages are no photos


def exit_code(report: Report) -> int:
    errors = report.errors
    if report.stopped is not None:
        return STOPPED[report.stopped]
    if any(issubclass(error, BudgetRefused | TooWeak) for error in errors):
        return exits.BUDGET
    fruitless = errors and not (report.released or report.skipped or report.priced)
    if fruitless and any(all(issubclass(e, kind) for e in errors) for kind in (PhotoError, OutputError)):
        return exits.IMPOSSIBLE
    return exits.INCOMPLETE if errors else exits.DONE


def print_report(
    report: Report, json: bool, voice: Voice = say.PLAIN, *, out: object = None, seeded: bool = False
) -> None:
    """Print the outcome of a run: releases on stdout, everything else on stderr.

    `out` is where releases were to go. Of `seeded` releases no promise is told.
    """
    if json:
        say.document(report.to_json())
    elif not voice.quiet:
        for entry in report.released if voice.verbose else ():
            if entry.promise is not None:
                waits = "waits for the rest of its document"
                place = waits if entry.output is None else show_path(str(entry.output))
                say.answer(f"{show_path(entry.source)} → {place}  {entry.kept or cost(entry.promise)}")
        for entry in report.priced:
            if entry.promise is not None:
                say.answer(f"{show_path(entry.source)}  {entry.kept or cost(entry.promise)}")
        if text := summary(report, out, seeded=seeded):
            say.answer(text)
    if not json:
        _tell_refused(report)
    for text in report.wrote:
        voice.note(f"wrote {text}")
    for text in report.documents:
        voice.detail(text)
    for text in report.notes:
        voice.note(f"warning: {text}")
    warn(report.released, voice)
    pairs = [(entry.source.suffix.lower(), entry.output) for entry in report.released if entry.output]
    if new := [end for kind, end in pairs if kind and end != out and end.suffix == ".png" != kind]:
        voice.note(f"written as PNG: {say.first_and_count([show_path(path) for path in new])}")
    if report.skipped:
        valid = "released before with these settings, and the certificate is valid; --force releases anew"
        voice.note(f"skipped {_first(report.skipped)}: {valid}")
    for text in (text for entry in report.skipped for text in entry.warnings):
        if isinstance(text, Unfinished):
            voice.note(text)
    if lost := report.discarded:
        why = "paid and discarded, as it could not be written or another run was faster; nothing is refunded"
        voice.note(f"warning: {_first(lost)}: {why}")
    if report.dry or (len(report.entries) > 1 and len(report.released) < len(report.entries)):
        _tell_counts(report, voice)


def _tell_counts(report: Report, voice: Voice) -> None:
    sources, count = _sources(report.entries), len(report.released)
    what = f"{len(report.entries):,} ({sources})" if " and " in sources else sources
    if report.dry:
        count = 0 if report.stopped == UNAFFORDABLE else len(report.priced)
    counts = {"failed": report.failed, "were released before": report.skipped, "not tried": report.untried}
    told = [f"{'would release' if report.dry else 'released'} {count:,} of {what}"]
    told += [f"{len(entries):,} {name}" for name, entries in counts.items() if entries]
    told += [f"in {len(report.no_region):,} nothing was found to replace"] * bool(report.no_region)
    told += ["a dry run draws, pays and writes nothing"] * report.dry
    voice.note("; ".join(told))


def write_file(path: Path | None, write: Callable[[Path], None]) -> int:
    """Write a file about the run, if any, and return an exit code; a failure is printed and stops nothing."""
    try:
        if path is not None:
            write(path)
    except Exception as error:  # noqa: BLE001  the releases are written, and their report is due
        say.note(f"dpveil: {say.one_line(error)}")
        return exits.IMPOSSIBLE
    return exits.DONE


def _noun(kind: str, count: int) -> str:
    return NOUNS.get(kind, (kind, f"{kind}s"))[count != 1]


def _counted(kinds: Mapping[str, int]) -> str:
    told = [f"{count:,} {_noun(kind, count)}" for kind, count in kinds.items()]
    return " and ".join([", ".join(told[:-1]), told[-1]] if len(told) > 1 else told)


def _sources(entries: Sequence[Entry]) -> str:
    return _counted(
        Counter(
            "clip" if is_clip(e.source) else "page" if e.source.parent.suffix.lower() in PAGES else "photo"
            for e in entries
        )
    )


def _first(entries: Iterable[Entry]) -> str:
    return say.first_and_count([show_path(entry.source) for entry in entries])


def cost(promise: Promise) -> str:
    """Return a release's cost in one clause: for each region, in total, and the total's strength.

    >>> from dpveil.core.guarantee import Relation, Scope
    >>> one = Guarantee(kind="pure", epsilon=4, relation=Relation("any-image"), scope=Scope("a face"))
    >>> cost(Promise((one, one), one, "weak", ("face", "face")))
    '2 faces, each ε = 4, together ε = 4 (weak)'
    """
    if promise.total is None:
        return "UNPROTECTED COPY"
    what = _counted(Counter(promise.kinds))
    if promise.total.formal and promise.total.free:
        return f"{what}: {in_short(promise.total, of='')}"
    total = f"{in_short(promise.total)} ({promise.strength})" if promise.total.formal else NO_PROMISE
    each = {in_short(guarantee) for guarantee in promise.guarantees}
    if len(promise.guarantees) == 1 or not promise.total.formal:
        return f"{what}: {total}"
    return f"{what}, each {each.pop()}, together {total}" if len(each) == 1 else f"{what}: together {total}"


def summary(report: Report, out: object = None, *, seeded: bool = False) -> str:
    """Return what a run replaced, what that promises, what is not hidden, and where the releases are.

    Empty if nothing was released.
    """
    # pages wait, without outputs, for a document of which another one failed
    entries = [entry for entry in report.released if entry.promise is not None and entry.output is not None]
    drawn = [entry for entry in entries if entry.promise and entry.promise.total is not None]
    said = [_promised(drawn, seeded=seeded), _not_hidden(drawn)] if drawn else []
    if copies := [entry for entry in entries if entry.promise and entry.promise.total is None]:
        kept, copies = [e for e in copies if e.kept], [e for e in copies if not e.kept]
        said += [f"{text}." for text in _kept_pages(kept)]
        are = "it is" if len(copies) == 1 else "they are"
        said += [f"{_sources(copies)} copied as {are}."] * bool(copies)
    places = {str(entry.output) for entry in entries if entry.output is not None}
    if said and places:
        place = places.pop() if len(places) == 1 else str(out or Path(places.pop()).parent)
        said.append(f"→ {show_path(place)}")
    return " ".join(said)


def _kept_pages(kept: Sequence[Entry]) -> list[str]:
    from dpveil.release.document_certificate import kept_pages, number_of

    found: dict[tuple[Path, str], list[int]] = {}
    for entry in kept:
        number = number_of(f"{entry.source.name}.png")
        found.setdefault((entry.source.parent, entry.kept), []).append(number)
    several = len({path for path, _ in found}) > 1
    return [
        f"{show_path(path)}, {text}" if several else f"{text[0].upper()}{text[1:]}"
        for (path, nothing), pages in found.items()
        for text in [kept_pages(pages, nothing)]
    ]


def _promised(drawn: Sequence[Entry], *, seeded: bool) -> str:
    """Return what was replaced, and what of it is kept at most, in one sentence."""
    promises = [entry.promise for entry in drawn if entry.promise is not None]
    kinds, worst = Counter(kind for promise in promises for kind in promise.kinds), costliest(promises)
    them, photos = "it" if kinds.total() == 1 else "them", _sources(drawn)
    what = f"{_counted(kinds)} replaced in {photos}"
    if {*kinds} == {WHOLE}:
        what = f"{photos} replaced as a whole"
    if seeded or worst is None or worst.total is None:
        return f"{what}; nothing is promised, as --seed repeats the draw."
    if not worst.total.formal:
        return f"{what}; {NO_PROMISE} about {them}."
    if worst.total.free:
        return f"{what}; nothing of {them} is kept{linked_faces_clause(worst.total)} (ε = 0)."
    among = f", in the worst of {photos}" if len(drawn) > 1 else ""
    promise = "practically no promise" if worst.strength == NONE else worst.strength
    return f"{what}; what shows of {them} is limited to {in_short(worst.total)} ({promise}){among}."


def _not_hidden(drawn: Sequence[Entry]) -> str:
    promises = [entry.promise for entry in drawn if entry.promise is not None]
    kinds, totals = Counter(kind for p in promises for kind in p.kinds), [p.total for p in promises]
    svd = any(total is not None and total.relation.name == "singular-values" for total in totals)
    vectors = ", and the singular vectors of what was replaced" * svd
    texts = dict.fromkeys(name for promise in promises for name in promise.kept)
    kept = f" Kept: {', '.join(texts)}." if texts else ""
    if {*kinds} == {WHOLE}:
        return f"Not hidden: sizes, and whether there is colour{vectors}.{kept}"
    place = _noun(next(iter(kinds)) if len(kinds) == 1 else "region", kinds.total())
    one, clips = kinds.total() == 1, any(is_clip(entry.source) for entry in drawn)
    moved = f" and how {'it' if one else 'they'} moved" * clips
    where = f"where the {place} {'was' if one else 'were'}{moved}{vectors}"
    missed = ["missed faces", "text"] if FACE in kinds else ["missed text", "faces"] if TEXT in kinds else []
    such = f" ({' and '.join(missed)} too)" * bool(missed)
    return f"Not hidden: everything else{such}, and {where}.{kept}"


def _tell_refused(report: Report) -> None:
    """Print why photos were not released; those with the same reason share a line."""

    def why(entry: Entry) -> str:
        failure = entry.failure
        return "" if failure is None else str(DPVeilError(failure.message, hint=failure.hint))

    refused: dict[str, list[str]] = {}
    for entry in report.entries:
        if entry.failure and entry.status != UNTRIED:
            name = show_path(entry.source)
            refused.setdefault(why(entry).removeprefix(f"{name} "), []).append(name)
    for text, names in [*refused.items()][:MOST_REFUSED]:
        say.note(f"{say.first_and_count(names, NAMED)}: {text}")
    if left := [name for names in [*refused.values()][MOST_REFUSED:] for name in names]:
        say.note(f"and {count_noun(len(left), 'more photo')}: --json and --manifest name all")
    if untried := report.untried:
        what = "nothing was drawn" if report.stopped == UNAFFORDABLE else _first(untried)
        say.note(f"{what}: {why(untried[0])}")


def warn(entries: Sequence[Entry], voice: Voice, start: str = "warning: ") -> None:
    """Print every warning, those of certificates first, and then the asides, for information.

    Those that differ in numbers alone are one line, with the first photo and what it says there. Without
    further photos it is not named.
    """
    about: dict[str, dict[str, str]] = {}
    for entry in entries:
        for text in entry.warnings:
            about.setdefault(NUMBER.sub("0", text), {}).setdefault(show_path(entry.source), text)

    def rank(photos: Mapping[str, str]) -> int:
        text = next(iter(photos.values()))
        return 0 if isinstance(text, Caution) else 2 if isinstance(text, Aside) else 1

    for photos in sorted(about.values(), key=rank):
        texts = [*photos.values()]
        told = texts[0] + " (and others alike)" * (len({*texts}) > 1)
        alike = len(photos) == len(entries) and len({*texts}) == 1
        named = "" if alike else f"{say.first_and_count([*photos])}: "
        if isinstance(texts[0], Aside):
            voice.detail(f"{named}{told}")
        else:
            voice.note(f"{start}{named}{told}")


def tell_left(entries: Sequence[Entry], voice: Voice, *, before: bool = False) -> None:
    """Print the places that may be faces and are not replaced, by photo, `before` their release or after."""
    if places := [place for entry in entries for place in entry.left]:
        from dpveil.release.words import finding_threshold

        many = count_noun(len(places), "place") + " that may show a face"
        look = "dpveil faces shows each" if before else "--review shows each"
        photos = _first(entry for entry in entries if entry.left)
        least = f"--threshold {finding_threshold(places)} replaces all of them"
        voice.note(f"not hidden: {many}, in {photos}: {look}, and {least}")


def tell_more(report: Report, choices: RunSettings, voice: Voice) -> None:
    """Say after its report what else is to be known of a run, and what is left of the budget.

    That is what may be faces and stays; what the user chose to show, which no promise covers; for details,
    all that is not hidden of the release that costs most; and licences.
    """
    from dpveil.release.words import CHOSEN

    promises = [entry.promise for entry in report.released or report.priced if entry.promise]
    if report.released:
        tell_left(report.released, voice)
        if choices.method.set_by_user:
            voice.note(CHOSEN.format(", ".join(choices.method.set_by_user)))
    if (worst := costliest(promises)) is not None and worst.total is not None:
        for text in worst.total.scope.in_the_clear:
            voice.detail(f"not hidden: {text}")
        tell_terms((choices.method, *choices.post_processing), voice)
    tell_budget(choices.ledger, choices.subject, voice)


def costliest(promises: Sequence[Promise]) -> Promise | None:
    """Return the promise of the release that costs most, of equal ones that with most regions.

    One without a formal guarantee costs more than any other. Copies do not count.
    """

    def amount(promise: Promise) -> tuple[Any, ...]:
        total: Any = promise.total
        paid = tuple(getattr(total, name) or 0 for name in ("epsilon", "rho", "delta"))
        reach = inf if total.kind == "metric" and total.diameter is None else total.diameter or 0
        return (not total.formal, *paid, reach, len(promise.guarantees))

    return max((promise for promise in promises if promise.total is not None), key=amount, default=None)


RESEARCH: Final = (
    "licence: for non-commercial research only, as the faces of dpveil-faces are (-v); for any use,"
    " release with --gallery heads --outside none"
)


def tell_terms(users: Sequence[object], voice: Voice = say.PLAIN) -> None:
    """Say if the licence of a trained file that methods and steps use restricts what releases are for."""
    from dpveil.assets.file_reference import forbids_commerce, terms_of

    terms = terms_of(users)
    if forbids_commerce(terms.values()):
        voice.note(RESEARCH)
    for name, text in terms.items():
        voice.detail(f"licence of {name.split()[0]}: {text}")


def check_payer(url: str | None, subject: str | None, seed: int | None) -> None:
    """Raise `UsageError` unless ledger and subject are both named, or neither, and no seed is paid for."""
    if (url is None) != (subject is None):
        missing, given = ("--ledger", "--subject") if url is None else ("--subject", "--ledger")
        raise UsageError(f"{given} needs {missing}", hint="name both, or neither")
    if url is not None and seed is not None:
        raise UsageError("a release with --seed is not paid for", hint="leave out --seed, or --ledger")


def paying(
    url: str | None,
    subject: str | None,
    other_regions: bool,
    seed: int | None,
    private: Sequence[Path | None],
) -> dict[str, Any]:
    """Return how releases are paid, as arguments of `RunSettings`; `private` are files about the run.

    The ledger is opened, and nothing that the run writes about itself may belong to it.
    """
    check_payer(url, subject, seed)
    if url is None or subject is None:
        if other_regions:
            raise UsageError("--other-regions needs --ledger", hint="without one, nothing is compared")
        return {}
    from dpveil.batch.tasks import check_apart
    from dpveil.cli.ledger import check_limited
    from dpveil.ledger import Ledger
    from dpveil.ledger.limits import check_subject

    check_subject(subject)
    opened = Ledger(url)
    check_apart(opened.files, [path for path in private if path is not None])
    check_limited(opened, subject)
    return {"ledger": opened, "subject": subject, "other_regions": other_regions}


def tell_price(choices: RunSettings, dry: Report, voice: Voice) -> None:
    due = [entry for entry in dry.priced if not entry.paid]
    totals = [entry.promise.total for entry in due if entry.promise is not None]
    ledger: Any = choices.ledger
    if totals and ledger is not None and choices.subject is not None:
        paid = [total for total in totals if total is not None]
        tell_cost(count_noun(len(totals), "photo"), paid, ledger, choices.subject, voice)
    if choices.dry:
        warn(dry.priced, voice)
    else:
        before = f"warning, before anything is {'drawn' if ledger is None else 'paid'}: "
        warn(dry.priced, Voice(voice.quiet), before)
    tell_left(dry.priced, voice, before=True)


def tell_cost(
    what: str, totals: Sequence[Guarantee], ledger: Ledger, subject: str, voice: Voice = say.PLAIN
) -> None:
    """Say what something of these `totals` will cost together, and what the subject has left.

    What cannot be paid at all has no price: it is refused later, and that is told.
    """
    from dpveil.ledger.amounts import Total
    from dpveil.ledger.limits import amounts_in_words

    with suppress(DPVeilError):
        cost, account = sum(map(Total.of, totals), Total()), ledger.show(subject)
        amounts = amounts_in_words(cost) + " together" * (len(totals) > 1)
        limits = account.limits_in_words()
        voice.note(f"price: {what}, {amounts}; {subject}: {limits}")


def tell_dry(choices: RunSettings, report: Report, voice: Voice) -> None:
    """Say what the photos of a dry run, if it is one, would cost together, and first of all if a ledger lacks
    that: then its report is that of a run which is stopped.
    """
    from dpveil.batch.report import UNAFFORDABLE
    from dpveil.batch.run import check_price

    if not choices.dry:
        return
    try:
        if choices.ledger is not None and report.stopped is None:
            check_price(choices, report, fewest=1)
    except BudgetRefused as error:
        say.note(f"dpveil: nothing would be released: {say.one_line(error)}")
        report.stopped = UNAFFORDABLE
    tell_price(choices, report, voice)


def tell_budget(ledger: Ledger | None, subject: str | None, voice: Voice = say.PLAIN) -> None:
    """Say what the subject has spent, and what is left, and let go of the ledger."""
    if ledger is not None and subject is not None:
        try:
            voice.note(ledger.show(subject).in_words())
        except DPVeilError as error:  # the releases are written, and the report says if it failed
            say.note(f"dpveil: {say.one_line(error)}")
        ledger.close()
