"""What answers say of costs, beside what was asked for: a ledger that cannot be read stops no answer."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

from dpveil.core.numbers import Json
from dpveil.errors import LedgerError
from dpveil.service.answers import Answer
from dpveil.service.desk import Desk
from dpveil.service.orders import Order


async def of_release(desk: Desk, order: Order, answer: Answer) -> Answer:
    """Return an answer with what was paid for its release and what is left, if it has a release."""
    if answer.made is None:
        return answer
    key = order.key or answer.made.id
    return answer.beside(await _told(desk, desk.budget.account, order.caller, order.subject, key))


async def of_plan(desk: Desk, order: Order, plan: dict[str, Any]) -> dict[str, Any]:
    """Return a plan with what it would cost, what is left, and whether that fits."""
    total = plan.get("total")
    return {**plan, **await _told(desk, desk.budget.forecast, order.caller, order.subject, total)}


async def _told(desk: Desk, do: Callable[..., dict[str, Json]], *arguments: Any) -> dict[str, Json]:
    with suppress(LedgerError):  # what was released is paid for, and a plan pays nothing
        return await desk.payments(do, *arguments)
    return {}
