"""The price of a whole run, which is compared with what is left before anything is drawn."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dpveil.batch.choices import Choices
from dpveil.batch.report import INTERRUPTED, PRICED, Report
from dpveil.batch.task import Task
from dpveil.core.numbers import exact, show
from dpveil.errors import BudgetExceeded, BudgetRefused


def is_priced(choices: Choices, tasks: Sequence[Task]) -> bool:
    """Whether a run is to be priced beforehand: photos are paid for, and the method costs something.

    The price of each is compared again when it is paid, so nothing depends on this but what is said
    beforehand: what they cost, that not all of them can be paid, and that a release would be pure noise.
    """
    return choices.ledger is not None and not choices.dry and bool(tasks) and not choices.free


def check_price(choices: Choices, dry: Report, *, fewest: int = 2) -> None:
    """Raise `BudgetRefused` if the ledger has less left than all releases of a run cost together.

    Nothing is raised for less than the `fewest` releases: of a single one, paying tells it. `dry` is the
    report of the dry run. What is released already costs nothing there, and what failed will be reported by
    the run. Raises `KeyboardInterrupt` if it was interrupted.
    """
    if dry.stopped == INTERRUPTED:
        raise KeyboardInterrupt
    due = [entry for entry in dry.of(PRICED) if not entry.paid]
    promises = [entry.promise for entry in due if entry.promise is not None]
    paid = [promise.total for promise in promises if promise.total is not None]
    if len(paid) < fewest:
        return
    ledger: Any = choices.ledger
    try:
        ledger.check_room(choices.subject, paid)
    except BudgetExceeded as error:
        if len(paid) == 1:
            raise
        raise _too_dear(error, len(paid)) from error


def _too_dear(error: BudgetExceeded, photos: int) -> BudgetRefused:
    """Return the error for a run of several photos, with advice for all of them together."""
    left, asked = exact(error.left), exact(error.asked)
    from dpveil.ledger.limits import show_left

    each = f"multiply what you ask for by {show_left(left / asked)} or less, " if left else ""
    have = f"{error.subject} has {error.unit} {error.left} left"
    return BudgetRefused(
        f"{have}, and {photos:,} photos cost {error.asked} together",
        hint=f"release fewer, {each}use what costs nothing, such as fill, or raise its limit by"
        f" {show(asked - left)}",
    )
