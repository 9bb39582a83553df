"""The outcome of a run, printed for people or programs, and its exit code."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

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
from dpveil.core.guarantee import Guarantee, count_noun
from dpveil.errors import (
    BudgetRefused,
    DPVeilError,
    OutputError,
    PhotoError,
    RegionsDiffer,
    TooWeak,
    UsageError,
)
from dpveil.io.names import show_path
from dpveil.release.words import worth

if TYPE_CHECKING:
    from dpveil.batch.task import Choices
    from dpveil.core.region import Region
    from dpveil.ledger import Ledger
    from dpveil.mechanisms.method import Method
    from dpveil.release.plan import Plan
    from dpveil.release.quote import Quote


MOST_REFUSED: Final = 20
"""Most photos whose refusals are printed."""
NUMBER: Final = re.compile(r"[0-9]+")
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
        say.note(
            SKIPPED.format(photos=say.first_and_count([show_path(entry.source) for entry in report.skipped]))
        )
    for text in (text for entry in report.skipped for text in entry.warnings):
        if isinstance(text, Unfinished):
            say.note(text)
    if lost := report.discarded:
        say.note(DISCARDED.format(photos=say.first_and_count([show_path(entry.source) for entry in lost])))
    say.note(_counts(report))


def write_file(path: Path | None, write: Callable[[Path], None]) -> int:
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
    count = len(promise.guarantees)
    if promise.total.formal and promise.total.free:
        what = count_noun(count, "face" if promise.faces else "region")
        return f"{what} replaced, nothing of {'it' if count == 1 else 'them'} is kept"
    total = str(promise.total)
    if promise.total.formal:
        total = _number(promise.total)
        total = f"{total} ({worth(promise.total, str(promise.strength))}), {promise.total.relation}"
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
    counts = {
        "failed": report.failed,
        "skipped": report.skipped,
        "no region": report.no_region,
        "not tried": report.untried,
    }
    told = [f"{name} {len(entries)}" for name, entries in counts.items() if entries]
    return ", ".join([first, *told]) + (DRY if report.dry else "")


def _tell_each(report: Report) -> None:
    for entry in report.released:
        if entry.promise is not None:
            place = WAITS if entry.output is None else show_path(str(entry.output))
            say.answer(f"{show_path(entry.source)} -> {place}  {cost(entry.promise)}")
    for entry in report.priced:
        if entry.promise is not None:
            say.answer(f"{show_path(entry.source)}  {cost(entry.promise)}")
    refused = [entry for entry in report.entries if entry.failure and entry.status != UNTRIED]
    for entry in refused[:MOST_REFUSED]:
        name, why = show_path(entry.source), _failure_text(entry)
        say.note(why if why.startswith(f"{name} ") else f"{name}: {why}")
    if left := len(refused[MOST_REFUSED:]):
        say.note(f"and {count_noun(left, 'more photo')}: --json and --manifest name all")
    if untried := report.untried:
        what = say.first_and_count([show_path(entry.source) for entry in untried])
        say.note(
            f"{'nothing was drawn' if report.stopped == UNAFFORDABLE else what}: {_failure_text(untried[0])}"
        )


def _failure_text(entry: Entry) -> str:
    failure = entry.failure
    return "" if failure is None else str(DPVeilError(failure.message, hint=failure.hint))


def warn(entries: Sequence[Entry], start: str = "warning: ", *, asides: bool = True) -> None:
    """Print every warning, those of certificates first, and then the `asides`, for information.

    Those that differ in numbers alone are one line, with the first photo and what it says there.
    """
    about: dict[str, dict[str, str]] = {}
    for entry in entries:
        for text in entry.warnings:
            about.setdefault(NUMBER.sub("0", text), {}).setdefault(show_path(entry.source), text)
    for photos in sorted(about.values(), key=lambda photos: _rank(next(iter(photos.values())))):
        texts = [*photos.values()]
        told = texts[0] + " (the others with other numbers)" * (len({*texts}) > 1)
        if not isinstance(texts[0], Aside):
            say.note(f"{start}{say.first_and_count([*photos])}: {told}")
        elif asides:
            say.note(told if len(photos) == len(entries) else f"{say.first_and_count([*photos])}: {told}")


def _rank(text: str) -> int:
    return 0 if isinstance(text, Caution) else 2 if isinstance(text, Aside) else 1


PROMISED: Final = "{promised}: {cost}; not hidden: {clear}"
BLIND: Final = "each new face was chosen without looking at the old one (ε = 0)"
FACES: Final = (
    "all that was not replaced, including faces that were not found or not chosen, and the {} of each face"
)
"""What `Plan.in_the_clear` says of faces, in short."""
OTHERS: Final = "all that was not replaced, and place and size of each region; --json lists everything"
MOST_SHOWN: Final = 2
"""Sentences about what is not hidden of which no more are printed as they are."""
WORST: Final = "in the worst of {} {}, "
UNSURE: Final = (
    "unsure: {replaced} {faces} with a score below {least}, in {photos}: {look}, and --threshold {least}"
    " leaves all of them as they are"
)
LEFT: Final = "not hidden: {places}, in {photos}: {look}, and --threshold {least} replaces all of them"
LOOK: Final = {False: "--review shows each", True: "dpveil faces shows each"}
"""What shows a photo's faces, after its release and before."""
KEPT: Final = "gender=1", "gender=1,age=1"
KEEP: Final = "to keep gender or age, add --attributes {choices} ({faces} in {photo})"


def tell(method: Method, promises: Sequence[Promise], promised: str = "promised") -> None:
    """Print what releases have `promised` and leave in the clear, for the one that costs most.

    Prints nothing if all are copies.
    """
    worst = costliest(promises)
    if worst is None or worst.total is None:
        return
    drawn, total = worst.faces and method.regions == "faces", worst.total
    told = cost_of(promises, "photos") if total.formal else "nothing"
    if drawn and total.free:
        told = BLIND
    clear = FACES.format("place, size and turn" if drawn else "place and size")
    listed = total.scope.in_the_clear
    seen = clear if worst.faces else "; ".join(listed) if len(listed) <= MOST_SHOWN else OTHERS
    say.note(PROMISED.format(promised=promised, cost=told, clear=seen))


def costliest(promises: Sequence[Promise]) -> Promise | None:
    """Return the promise of the release that costs most, of equal ones that with most faces or regions.

    One without a formal guarantee costs more than any other. Copies do not count.
    """
    kept = [promise for promise in promises if promise.total is not None]

    def amount(promise: Promise) -> tuple[Any, ...]:
        total: Any = promise.total
        paid = tuple(getattr(total, name) or 0 for name in ("epsilon", "rho", "delta"))
        reach = inf if total.kind == "metric" and total.diameter is None else total.diameter or 0
        return (not total.formal, *paid, reach, promise.faces, len(promise.guarantees))

    return max(kept, key=amount, default=None)


def cost_of(promises: Sequence[Promise], what: str) -> str:
    """Return in words what the one costs that costs most of these releases, which are photos or clips."""
    worst, many = costliest(promises), sum(promise.total is not None for promise in promises)
    if worst is None:
        return ""
    return f"{WORST.format(many, what) if many > 1 else ''}{cost(worst)}"


@dataclass
class Doubts:
    """What the detector was not sure of in a run, by photo: how many faces that were replaced, and the places
    that may be faces and were not. And the faces of crowds, around which what is replaced is not bounded.
    """

    replaced: dict[str, int] = field(default_factory=dict)
    left: dict[str, Sequence[Region]] = field(default_factory=dict)
    crowds: dict[str, str] = field(default_factory=dict)

    def add(self, photo: str, plan: Plan) -> None:
        """Take note of the plan by which a photo was released."""
        if plan.unsure:
            self.replaced[photo] = len(plan.unsure)
        if plan.doubtful:
            self.left[photo] = plan.doubtful
        if crowd := plan.crowd.in_words():
            self.crowds[photo] = crowd

    def join(self, other: Doubts) -> None:
        """Take note of what is known of other photos."""
        self.replaced |= other.replaced
        self.left |= other.left
        self.crowds |= other.crowds

    def tell(self, *, before: bool = False) -> None:
        """Print one line about each kind, if there are any, `before` the release of these photos or after."""
        from dpveil.release.words import UNSURE as LEAST
        from dpveil.release.words import lowest

        if count := sum(self.replaced.values()):
            done, photos = "would replace" if before else "replaced", say.first_and_count([*self.replaced])
            words = {"faces": count_noun(count, "face"), "replaced": done, "look": LOOK[before]}
            say.note(UNSURE.format(**words, least=LEAST, photos=photos))
        if places := [place for left in self.left.values() for place in left]:
            many = count_noun(len(places), "place") + " that may show a face"
            words = {"photos": say.first_and_count([*self.left]), "look": LOOK[before]}
            say.note(LEFT.format(places=many, least=lowest(places), **words))
        for photo, faces in [*self.crowds.items()][:1]:
            others = f"; and faces of {count_noun(len(self.crowds) - 1, 'more photo')}, which --json names"
            say.note(f"crowded: {photo}: {faces}" + others * (len(self.crowds) > 1))


def tell_costs(method: Method, faces: int, *, of: int = 1) -> None:
    """Print what keeping attributes would cost in a photo of so many faces, the worst `of` so many photos.

    Prints nothing where no model is installed that reads faces.
    """
    from dpveil.assets.reference import DEFAULT
    from dpveil.assets.store import installed_path

    changed: Any = method
    if installed_path("attributes") is None:
        return
    quotes = {kept: _quote(replace(changed, attributes=kept, model=DEFAULT), faces) for kept in KEPT}
    choices = " or ".join(f"{kept} for {_with_strength(q.total, q.strength)}" for kept, q in quotes.items())
    photo = "a photo" if of == 1 else WORST.format(of, "photos").removeprefix("in ").removesuffix(", ")
    say.note(KEEP.format(choices=choices, photo=photo, faces=count_noun(faces, "face")))


def tell_terms(users: Iterable[object]) -> None:
    """Say what the licences of the trained files allow that methods and steps use, if there are any."""
    from dpveil.assets.reference import terms_of

    if told := [f"{name.split()[0]}: {terms}" for name, terms in terms_of(users).items()]:
        say.note(f"licence of {'; '.join(told)}")


def tell_chosen(method: Method) -> None:
    """Say what the user chose to show, which no promise covers, if anything."""
    from dpveil.release.words import CHOSEN

    if method.set_by_user:
        say.note(CHOSEN.format(", ".join(method.set_by_user)))


def _quote(method: Method, faces: int) -> Quote:
    """Return the quote for so many faces in one photo, whose cost does not depend on their size."""
    from dpveil.release.quote import quote_of_sizes

    return quote_of_sizes(method, [{"height": 128, "width": 128, "channels": 3}] * faces)


def _with_strength(total: Guarantee, strength: str) -> str:
    return f"{_number(total)} ({strength})"


PRICE: Final = "price: {what}, {amounts}; {subject}: {limits}"
REFUSED: Final = "{photo} (beside {refused}, refused for releases with other regions before)"
YET: Final = "warning: nothing is {done} yet: "


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
    """Return how releases are paid, as arguments of `Choices`; `private` are files about the run.

    The ledger is opened, and nothing that the run writes about itself may belong to it.
    """
    check_payer(url, subject, seed)
    if url is None or subject is None:
        if other_regions:
            raise UsageError("--other-regions needs --ledger", hint="without one, nothing is compared")
        return {}
    from dpveil.batch.task import check_apart
    from dpveil.cli.ledger import check_limited
    from dpveil.ledger import Ledger
    from dpveil.ledger.limits import check_subject

    check_subject(subject)
    opened = Ledger(url)
    check_apart(opened.files, [path for path in private if path is not None])
    check_limited(opened, subject)
    return {"ledger": opened, "subject": subject, "other_regions": other_regions}


def tell_price(choices: Choices, dry: Report, doubts: Doubts) -> None:
    """Say what a run will cost, which photos will be refused, and all that warns of the releases, which the
    report of its dry run and the `doubts` of its detector tell.
    """
    due = [entry for entry in dry.priced if not entry.paid]
    totals = [entry.promise.total for entry in due if entry.promise is not None]
    ledger: Any = choices.ledger
    if totals and ledger is not None and choices.subject is not None:
        paid = [total for total in totals if total is not None]
        tell_cost(_with_refused(count_noun(len(totals), "photo"), dry), paid, ledger, choices.subject)
    yet = YET.format(done="drawn" if ledger is None else "paid")
    _tell_noise(choices, dry, yet)
    warn([_without_noise(entry) for entry in dry.priced], yet, asides=choices.dry)
    doubts.tell(before=True)


def _with_refused(priced: str, dry: Report) -> str:
    """Return the photos that have a price, and those that the ledger will refuse for earlier releases."""
    failures = ((entry.source, entry.failure) for entry in dry.failed)
    refused = [show_path(source) for source, why in failures if why and issubclass(why.kind, RegionsDiffer)]
    return REFUSED.format(photo=priced, refused=say.first_and_count(refused)) if refused else priced


def _without_noise(entry: Entry) -> Entry:
    """Return an entry without the warnings of pure noise, which are told for all photos together."""
    from dpveil.release.words import NOISE

    return replace(entry, warnings=tuple(text for text in entry.warnings if f": {NOISE}" not in text))


def tell_cost(what: str, totals: Sequence[Guarantee], ledger: Ledger, subject: str) -> None:
    """Say what something of these `totals` will cost together, and what the subject has left.

    What cannot be paid at all has no price: it is refused later, and that is told.
    """
    from dpveil.ledger.amounts import Total
    from dpveil.ledger.limits import amounts_in_words

    with suppress(DPVeilError):
        cost, account = sum(map(Total.of, totals), Total()), ledger.show(subject)
        amounts = amounts_in_words(cost) + " together" * (len(totals) > 1)
        limits = account.limits_in_words()
        say.note(PRICE.format(what=what, amounts=amounts, subject=subject, limits=limits))


def tell_dry(choices: Choices, report: Report, doubts: Doubts) -> None:
    """Say what the photos of a dry run, if it is one, would cost together, and first of all if a ledger lacks
    that: then its report is that of a run which is stopped.
    """
    from dpveil.batch.releasing import check_price
    from dpveil.batch.report import UNAFFORDABLE

    if not choices.dry:
        return
    try:
        if choices.ledger is not None and report.stopped is None:
            check_price(choices, report, fewest=1)
    except BudgetRefused as error:
        say.note(f"dpveil: nothing would be released: {say.one_line(error)}")
        report.stopped = UNAFFORDABLE
    tell_price(choices, report, doubts)


def _tell_noise(choices: Choices, dry: Report, yet: str) -> None:
    """Say which photos would be practically pure noise, if any, and what would be less."""
    from dpveil.release.quote import remedy
    from dpveil.release.words import pure_noise

    noisy = {show_path(entry.source): entry.noisy for entry in dry.priced if entry.noisy is not None}
    if not noisy:
        return
    worst = max(noisy.values(), key=lambda one: one.scale)
    told = [pure_noise(choices.method, **worst.size), remedy(choices.method, worst)]
    say.note(f"{yet}{say.first_and_count([*noisy])}: {'; '.join(filter(None, told))}")


def tell_budget(ledger: Ledger | None, subject: str | None) -> None:
    """Say what the subject has spent, and what is left, and let go of the ledger."""
    if ledger is not None and subject is not None:
        try:
            say.note(ledger.show(subject).in_words())
        except DPVeilError as error:  # the releases are written, and the report says if it failed
            say.note(f"dpveil: {say.one_line(error)}")
        ledger.close()
