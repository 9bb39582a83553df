"""The rules of a debit, inside a transaction: its cost, whether it was paid before, whether it fits."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from dpveil.core.covered import Covered
from dpveil.core.guarantee import Guarantee
from dpveil.errors import AlreadyPaid, BudgetRefused, InvalidParameter, RegionsDiffer
from dpveil.ledger import entries, store
from dpveil.ledger.amounts import Cost, Total
from dpveil.ledger.entries import Debit, Entry, Part, Stored
from dpveil.ledger.store import Balance, Connection, Read, Reserved
from dpveil.ledger.subjects import is_under, path_to

DIFFER: Final = (
    "this photo was released with other regions before, and together the releases show what any one of them"
    " leaves in the clear"
)
SAME: Final = (
    "replace the same regions; or add {other_regions}, and its costs add up to a promise about what all of"
    " its releases cover, and about nothing else"
)


def priced(guarantee: object) -> Total:
    """Return what a release costs; raises `InvalidParameter` and `BudgetRefused`."""
    if not isinstance(guarantee, Guarantee):
        hint = "give a guarantee, such as plan.total"
        raise InvalidParameter("guarantee", type(guarantee).__name__, "is not a guarantee", hint=hint)
    return Total(Cost.of(guarantee), guarantee.relation)


def part_of(secret: str, covered: object, other_regions: bool) -> Part | None:
    """Return what a release covers as a debit names it, None for no photo; raises `InvalidParameter`."""
    if covered is None:
        return None
    if not isinstance(covered, Covered):
        hint = "give what a plan covers, plan.covered"
        raise InvalidParameter("covered", type(covered).__name__, "is no part of a photo", hint=hint)
    return entries.part_of(secret, covered, other_regions)


def key_bytes(key: object) -> bytes:
    """Return a key's bytes, which differ for text and bytes; raises `InvalidParameter`."""
    if isinstance(key, str) and key:
        return b"text " + key.encode("utf-8", "surrogatepass")
    if isinstance(key, bytes) and key:
        return b"data " + key
    raise InvalidParameter(
        "key", None, "is no text or bytes, or empty", hint="name the work unit, such as photo-1"
    )


def last_draw(found: list[Entry]) -> int:
    """Return the number of the last draw of a work unit; 0 if there is none."""
    return max((each.event.draw for each in found if isinstance(each.event, Debit)), default=0)


def last_files(found: list[Entry]) -> tuple[int, tuple[str, ...]]:
    """Return the number of the last draw of a work unit that was stored, and its files; 0 without any."""
    stored = [each.event for each in found if isinstance(each.event, Stored)]
    draw = max((event.draw for event in stored), default=0)
    return draw, tuple(event.sha256 for event in reversed(stored) if event.draw == draw)


def refuse_stored(connection: Connection, subject: str, unit: str) -> None:
    """Raise `AlreadyPaid` if a release of this work unit was stored."""
    draw, sha256s = last_files(store.of_unit(connection, unit))
    if sha256s:
        raise AlreadyPaid(subject=subject, draw=draw, sha256s=sha256s)


def regions_differ(before: Part | None, now: Part) -> bool:
    """Whether a photo's last debit, or any before it, is of another part than this one.

    Each debit says whether others before it differ, so the last one tells of all.
    """
    return before is not None and (before.other_regions or before.covered != now.covered)


def check_part(connection: Connection, part: Part | None) -> Part | None:
    """Return the part as its debit states it; raises `RegionsDiffer` unless all debits of its photo are of
    the same part, or it says `other_regions`. Subjects do not matter: a photo is the same whoever pays.
    """
    if part is None:
        return None
    differ = regions_differ(store.of_photo(connection, part.photo), part)
    if differ and not part.other_regions:
        raise RegionsDiffer(DIFFER, hint=SAME, arguments={"other_regions": "other_regions=True"})
    return replace(part, other_regions=differ)


def reads(subject: str, unit: str, part: Part | None) -> list[Read]:
    """Return what reserving and committing read, for databases that are asked for it all at once."""
    rows: list[Read] = [("subject", {"subject": each}) for each in path_to(subject)]
    photo: list[Read] = [] if part is None else [("of_photo", {"photo": entries.photo_name(part.photo)})]
    return [("reserved", {}), ("last", {}), ("of_unit", {"unit": unit}), *rows, *photo]


def others(connection: Connection, subject: str, unit: str, now: int, *, again: bool) -> list[Reserved]:
    """Return the reservations that another draw of a work unit has to leave room for.

    Unless `again`, those of the same unit give way, and `AlreadyPaid` is raised if its release was stored.
    """
    held = store.held(connection, now)
    if again:
        return held
    refuse_stored(connection, subject, unit)
    return store.replace(connection, held, unit)


def debited(connection: Connection, wanted: Debit, held: list[Reserved], now: int) -> tuple[int, Entry]:
    """Write a debit as the next draw of its work unit if every limit has room; return draw and entry."""
    part = check_part(connection, wanted.part)
    rows = check_limits(connection, wanted.subject, wanted.cost, held, now)
    draw = last_draw(store.of_unit(connection, wanted.unit)) + 1
    made = store.append(connection, replace(wanted, draw=draw, part=part), now)
    for row in rows:
        row.spent += wanted.cost
        store.keep(connection, row)
    return draw, made


def check_limits(
    connection: Connection, subject: str, cost: Total, held: list[Reserved], now: int
) -> list[Balance]:
    """Return the rows of the subject's path; raises `BudgetRefused` unless each limit there has room.

    `held` are the other reservations.
    A clock that was set back behind the last entry opens no window again.
    """
    rows = [store.balance(connection, each) for each in path_to(subject)]
    if not any(row.limits for row in rows):
        raise BudgetRefused(
            f"{subject} has no limit, so nothing may be spent for it",
            hint=f"set one with dpveil ledger limit {subject}",
        )
    now = max(now, store.last(connection)[2])
    for row in rows:
        reserved = sum((each.cost for each in held if is_under(each.subject, row.subject)), Total())
        for limit in row.limits:
            limit.check(row.subject, row.spent + reserved + cost, cost.cost, now)
    return rows
