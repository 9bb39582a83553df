"""The price of a whole run, which is compared with what is left before anything is drawn."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from dpveil.batch.choices import Choices
from dpveil.batch.prefetch import prefetch
from dpveil.batch.tasks import Task
from dpveil.core.guarantee import Guarantee
from dpveil.core.numbers import exact, show
from dpveil.errors import BudgetExceeded, BudgetRefused
from dpveil.ledger.limits import show_left


def check_price(
    choices: Choices,
    tasks: Sequence[Task],
    prepare: Callable[[Task], Any],
    *,
    at_once: int,
) -> None:
    """Raise `BudgetRefused` if the ledger has less left than all releases of a run cost together.

    `prepare` returns something with a `plan` for a photo that will be released, and is called in `at_once`
    threads. It is not called after a photo that is free, as a method costs nothing for all or for none: the
    price of each is compared again when it is paid. So is that of a single photo, which is not planned here.
    """
    if choices.ledger is None or choices.subject is None or len(tasks) < 2:
        return
    paid = []
    with prefetch(partial(_price, prepare), tasks, at_once=at_once) as prices:
        for _, known in prices:
            total = known()
            if total is not None and total.free:
                return
            paid += [] if total is None else [total]
    if len(paid) < 2:
        return
    ledger: Any = choices.ledger
    try:
        ledger.check_room(choices.subject, paid)
    except BudgetExceeded as error:
        raise _too_dear(error, len(paid)) from error


def _price(prepare: Callable[[Task], Any], task: Task) -> Guarantee | None:
    """Return what a release would cost; None for one that is there, or whose error the run reports."""
    try:
        planned = getattr(prepare(task), "plan", None)
    except Exception:  # noqa: BLE001  it comes again when the photo is released
        return None
    return None if planned is None else planned.total


def _too_dear(error: BudgetExceeded, photos: int) -> BudgetRefused:
    """Return the error for a run of several photos, with advice for all of them together."""
    left, asked = exact(error.left), exact(error.asked)
    each = f"ask for {show_left(left / photos)} or less for each on average, " if left else ""
    have = f"{error.subject} has {error.unit} {error.left} left"
    return BudgetRefused(
        f"{have}, and {photos:,} photos cost {error.asked} together",
        hint=f"release fewer, {each}use what costs nothing, such as fill, or raise its limit by"
        f" {show(asked - left)}",
    )
