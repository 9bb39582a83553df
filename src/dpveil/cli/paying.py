"""Runs that a ledger pays for: who pays, what the run will cost, and what is left after it."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from dpveil.cli import say
from dpveil.core.guarantee import counted
from dpveil.errors import BudgetRefused, DPVeilError, UsageError

if TYPE_CHECKING:
    from dpveil.batch import Choices, Report
    from dpveil.core.guarantee import Guarantee
    from dpveil.ledger import Ledger

PRICE: Final = "price: {what}, {amounts}; {subject}: {limits}"
NOISE: Final = "warning: nothing is {done} yet: {photos}: {noise}"


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


def tell_price(choices: Choices, dry: Report) -> None:
    """Say what a run will cost, and that it would release noise if so, by the report of its dry run."""
    totals = [entry.promise.total for entry in dry.priced if entry.promise is not None]
    ledger: Any = choices.ledger
    if totals and ledger is not None and choices.subject is not None:
        paid = [total for total in totals if total is not None]
        tell_cost(counted(len(totals), "photo"), paid, ledger, choices.subject)
    tell_noise(choices, dry)


def tell_cost(what: str, totals: Sequence[Guarantee], ledger: Ledger, subject: str) -> None:
    """Say what something of these `totals` will cost together, and what the subject has left.

    What cannot be paid at all has no price: it is refused later, and that is told.
    """
    from dpveil.ledger.account import amounts_in_words
    from dpveil.ledger.amounts import Total
    from dpveil.ledger.rules import priced

    with suppress(DPVeilError):
        amounts = amounts_in_words(sum(map(priced, totals), Total())) + " together" * (len(totals) > 1)
        limits = ledger.show(subject).limits_in_words()
        say.note(PRICE.format(what=what, amounts=amounts, subject=subject, limits=limits))


def tell_dry(choices: Choices, report: Report) -> None:
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
    tell_price(choices, report)


def tell_noise(choices: Choices, dry: Report) -> None:
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
    done, photos = "drawn" if choices.ledger is None else "paid", several([*noisy])
    say.note(NOISE.format(done=done, photos=photos, noise="; ".join(filter(None, told))))


def tell_budget(ledger: Ledger | None, subject: str | None) -> None:
    """Say what the subject has spent, and what is left, and let go of the ledger."""
    if ledger is not None and subject is not None:
        try:
            say.note(ledger.show(subject).in_words())
        except DPVeilError as error:  # the releases are written, and the report says if it failed
            say.note(f"dpveil: {say.one_line(error)}")
        ledger.close()
