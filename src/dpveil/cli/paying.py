"""Runs that a ledger pays for: who pays, what the run will cost, and what is left after it."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from dpveil.cli import say
from dpveil.core.guarantee import counted
from dpveil.errors import BudgetRefused, DPVeilError, RegionsDiffer, UsageError

if TYPE_CHECKING:
    from dpveil.batch import Choices, Report
    from dpveil.batch.report import Entry
    from dpveil.cli.usual import Doubts
    from dpveil.core.guarantee import Guarantee
    from dpveil.ledger import Ledger

PRICE: Final = "price: {what}, {amounts}; {subject}: {limits}"
REFUSED: Final = "{photo} (beside {refused}, refused for releases with other regions before)"
FALLS: Final = (
    "{subject}'s total falls from {before} to {after}: dpveil ledger limit --relation {before} forbids that"
)
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
    from dpveil.batch import check_apart
    from dpveil.cli.ledger_words import check_limited
    from dpveil.ledger import Ledger
    from dpveil.ledger.subjects import check_subject

    check_subject(subject)
    opened = Ledger(url)
    check_apart(opened.files, [path for path in private if path is not None])
    check_limited(opened, subject)
    return {"ledger": opened, "subject": subject, "other_regions": other_regions}


def tell_price(choices: Choices, dry: Report, doubts: Doubts) -> None:
    """Say what a run will cost, which photos will be refused, and all that warns of the releases, which the
    report of its dry run and the `doubts` of its detector tell.
    """
    from dpveil.cli.run_report import warn

    due = [entry for entry in dry.priced if not entry.paid]
    totals = [entry.promise.total for entry in due if entry.promise is not None]
    ledger: Any = choices.ledger
    if totals and ledger is not None and choices.subject is not None:
        paid = [total for total in totals if total is not None]
        tell_cost(_with_refused(counted(len(totals), "photo"), dry), paid, ledger, choices.subject)
    yet = YET.format(done="drawn" if ledger is None else "paid")
    _tell_noise(choices, dry, yet)
    warn([_without_noise(entry) for entry in dry.priced], yet, asides=choices.dry)
    doubts.tell(before=True, photos=len(dry.entries))


def _with_refused(priced: str, dry: Report) -> str:
    """Return the photos that have a price, and those that the ledger will refuse for earlier releases."""
    from dpveil.cli.run_report import several
    from dpveil.io.names import shown

    failures = ((entry.source, entry.failure) for entry in dry.failed)
    refused = [shown(source) for source, why in failures if why and issubclass(why.kind, RegionsDiffer)]
    return REFUSED.format(photo=priced, refused=several(refused)) if refused else priced


def _without_noise(entry: Entry) -> Entry:
    """Return an entry without the warnings of pure noise, which are told for all photos together."""
    from dpveil.release.words import NOISE

    return replace(entry, warnings=tuple(text for text in entry.warnings if f": {NOISE}" not in text))


def tell_cost(what: str, totals: Sequence[Guarantee], ledger: Ledger, subject: str) -> None:
    """Say what something of these `totals` will cost together, what the subject has left, and whether its
    total will be about fewer neighbours then.

    What cannot be paid at all has no price: it is refused later, and that is told.
    """
    from dpveil.ledger.account import amounts_in_words
    from dpveil.ledger.amounts import Total

    with suppress(DPVeilError):
        cost, account = sum(map(Total.of, totals), Total()), ledger.show(subject)
        amounts = amounts_in_words(cost) + " together" * (len(totals) > 1)
        limits = account.limits_in_words()
        say.note(PRICE.format(what=what, amounts=amounts, subject=subject, limits=limits))
        ledger.check_room(subject, totals)
        for each in (*account.parents, account):
            before, after = each.spent.relation_text(), (each.spent + cost).relation_text()
            if before not in ("", "mixed", after):
                now = "no common neighbours" if after == "mixed" else after
                say.note(FALLS.format(subject=each.subject, before=before, after=now))


def tell_dry(choices: Choices, report: Report, doubts: Doubts) -> None:
    """Say what the photos of a dry run, if it is one, would cost together, and first of all if a ledger lacks
    that: then its report is that of a run which is stopped.
    """
    from dpveil.batch.price import check_price
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
    from dpveil.cli.run_report import several
    from dpveil.io.names import shown
    from dpveil.release.noisy import remedy
    from dpveil.release.words import pure_noise

    noisy = {shown(entry.source): entry.noisy for entry in dry.priced if entry.noisy is not None}
    if not noisy:
        return
    worst = max(noisy.values(), key=lambda one: one.scale)
    told = [pure_noise(choices.method, **worst.size), remedy(choices.method, worst)]
    say.note(f"{yet}{several([*noisy])}: {'; '.join(filter(None, told))}")


def tell_budget(ledger: Ledger | None, subject: str | None) -> None:
    """Say what the subject has spent, and what is left, and let go of the ledger."""
    if ledger is not None and subject is not None:
        try:
            say.note(ledger.show(subject).in_words())
        except DPVeilError as error:  # the releases are written, and the report says if it failed
            say.note(f"dpveil: {say.one_line(error)}")
        ledger.close()
