"""The price of a whole run, which is compared with what is left before anything is drawn."""

from __future__ import annotations

from collections.abc import Callable, Sequence

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
    price: Callable[[Task], Guarantee | None],
    *,
    at_once: int,
) -> None:
    """Raise `BudgetRefused` if the ledger has less left than all releases of a run cost together.

    `price` returns what a photo costs, None if it is not paid, and is called in `at_once` threads. None is
    asked for after a photo that is free, as a method costs nothing for all or for none: the price of each is
    compared again when it is paid. So is that of a single photo, which is not asked for here.
    """
    if choices.ledger is None or choices.subject is None or len(tasks) < 2:
        return
    paid = []
    with prefetch(price, tasks, at_once=at_once) as prices:
        for _, known in prices:
            total = known()
            if total is not None and total.free:
                return
            paid += [] if total is None else [total]
    if len(paid) < 2:
        return
    try:
        choices.ledger.check_room(choices.subject, paid)
    except BudgetExceeded as error:
        raise _too_dear(error, len(paid)) from error


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
