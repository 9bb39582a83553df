"""The rules of a debit, inside a transaction: what it costs, whether it was paid before, and whether it fits."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dpveil.core.guarantee import Guarantee
from dpveil.errors import AlreadyPaid, BudgetRefused, InvalidParameter
from dpveil.ledger import store
from dpveil.ledger.amounts import Cost, Total
from dpveil.ledger.entries import Debit, Entry, Stored
from dpveil.ledger.subjects import is_under, path_to

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from dpveil.ledger.store import Balance


def priced(guarantee: object) -> Total:
    if not isinstance(guarantee, Guarantee):
        hint = "give a guarantee, such as plan.total"
        raise InvalidParameter("guarantee", type(guarantee).__name__, "is not a guarantee", hint=hint)
    return Total(Cost.of(guarantee), guarantee.relation)


def key_bytes(key: object) -> bytes:
    if isinstance(key, str) and key:
        return b"text " + key.encode("utf-8", "surrogatepass")
    if isinstance(key, bytes) and key:
        return b"data " + key
    raise InvalidParameter(
        "key", None, "is no text or bytes, or empty", hint="name the work unit, such as photo-1"
    )


def newest(found: list[Entry]) -> tuple[int, tuple[str, ...]]:
    """Return the last draw of a unit, and the files of the last draw that was stored."""
    draws = [each.event.draw for each in found if isinstance(each.event, Debit)]
    stored = [each.event for each in found if isinstance(each.event, Stored)]
    last = max((event.draw for event in stored), default=0)
    return max(draws, default=0), tuple(event.sha256 for event in reversed(stored) if event.draw == last)


def refuse_stored(connection: Connection, subject: str, unit: str) -> None:
    draw, sha256s = newest(store.of_unit(connection, unit))
    if sha256s:
        raise AlreadyPaid(subject=subject, draw=draw, sha256s=sha256s)


def check_limits(connection: Connection, subject: str, cost: Total, now: int) -> list[Balance]:
    """Return the rows of the subject's path; raises `BudgetRefused` unless each limit there has room."""
    rows = [store.balance(connection, each) for each in path_to(subject)]
    if not any(row.limits for row in rows):
        raise BudgetRefused(
            f"{subject} has no limit, so nothing may be spent for it",
            hint=f"dpveil ledger limit {subject} --epsilon E --ledger URL sets one",
        )
    held = store.reserved(connection)
    for row in rows:
        reserved = sum((each.cost for each in held if is_under(each.subject, row.subject)), Total())
        for limit in row.limits:
            limit.check(row.subject, row.spent + reserved + cost, cost.cost, now)
    return rows
