"""The rows of a ledger's tables: statements, and strict reading of what a received file may hold."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, Protocol

from dpveil.errors import InvalidParameter, LedgerError
from dpveil.ledger import entries
from dpveil.ledger.amounts import Total
from dpveil.ledger.entries import HASH, NAME, START, Debit, Entry, Event, Part, Stored
from dpveil.ledger.limits import Limit
from dpveil.ledger.subjects import check_subject

SQL: Final = {
    "ledger": "SELECT name, secret FROM ledger",
    "last": "SELECT number, head, text FROM entries ORDER BY number DESC LIMIT 1",
    "at": "SELECT number, head, text FROM entries WHERE number = :number",
    "append": "INSERT INTO entries (number, head, unit, sha256, text)"
    " VALUES (:number, :head, :unit, :sha256, :text)",
    "of_unit": "SELECT number, head, text FROM entries WHERE unit = :unit ORDER BY number DESC",
    "of_file": "SELECT number, head, text FROM entries WHERE sha256 = :sha256 ORDER BY number",
    "of_photo": "SELECT number, head, text FROM entries WHERE sha256 = :photo ORDER BY number DESC LIMIT 1",
    "page": "SELECT number, head, unit, sha256, text FROM entries"
    " WHERE number > :after ORDER BY number LIMIT 1000",
    "subject": "SELECT subject, cost, relation, limits FROM subjects WHERE subject = :subject",
    "subjects": "SELECT subject, cost, relation, limits FROM subjects ORDER BY subject",
    "new_subject": "INSERT INTO subjects (subject, cost, relation, limits)"
    " VALUES (:subject, :cost, :relation, :limits)",
    "set_subject": "UPDATE subjects SET cost = :cost, relation = :relation, limits = :limits"
    " WHERE subject = :subject",
    "reserved": "SELECT id, subject, unit, cost, relation, expires FROM reservations ORDER BY id LIMIT 10001",
    "held": "SELECT id, subject, unit, cost, relation, expires FROM reservations"
    " WHERE expires >= :now AND expires <= :far ORDER BY id LIMIT 10001",
    "reserve": "INSERT INTO reservations (id, subject, unit, cost, relation, expires)"
    " VALUES (:id, :subject, :unit, :cost, :relation, :expires)",
    "free": "DELETE FROM reservations WHERE id = :id",
    "expire": "DELETE FROM reservations WHERE expires < :now OR expires > :far",
    "replace": "DELETE FROM reservations WHERE unit = :unit",
}
"""Statements that every database understands."""
MOST_SECONDS: Final = 86_400
"""Longest time of a reservation; one that ends later was made before the clock was set back."""
MOST_RESERVED: Final = 10_000
"""Most reservations at once; `SQL` reads one more."""
Read = tuple[str, dict[str, str | int | None]]
"""A statement of `SQL` by name, and its values."""


class Rows(Protocol):
    """Rows that a statement gives, or how many it changed."""

    @property
    def rowcount(self) -> int:
        """How many rows an INSERT, UPDATE or DELETE changed."""

    def fetchone(self) -> Any:
        """Return the next row, or None."""

    def fetchmany(self, size: int, /) -> list[Any]:
        """Return up to `size` rows."""

    def fetchall(self) -> list[Any]:
        """Return all rows."""


class Connection(Protocol):
    """A connection to a database inside a transaction, with parameters written :name."""

    def execute(self, sql: str, parameters: Any = ..., /) -> Rows:
        """Run one statement."""


def run(connection: Connection, name: str, **values: str | int | None) -> Rows:
    """Run one of the statements."""
    return connection.execute(SQL[name], values)


def put(connection: Connection, name: str, **values: str | int | None) -> None:
    """Run a statement that writes one row; raises `LedgerError` if the database wrote another number."""
    if run(connection, name, **values).rowcount != 1:
        raise damaged("a row that was written is not there")


@dataclass(frozen=True)
class Reserved:
    """A row of reservations, which ends at `expires` in Unix seconds."""

    id: str
    subject: str
    unit: str
    cost: Total
    expires: int

    def holds(self, now: int) -> bool:
        """Whether it has not expired."""
        return now <= self.expires <= now + MOST_SECONDS


@dataclass
class Balance:
    """A row of subjects: what was spent, and the limits; `new` if there is no row yet."""

    subject: str
    spent: Total
    limits: list[Limit]
    new: bool = False


def damaged(what: str) -> LedgerError:
    """Return the error for a row that no ledger has."""
    return LedgerError(
        f"the ledger is damaged: {what}", hint="use an intact copy; dpveil ledger check says more"
    )


def identity(connection: Connection) -> tuple[str, str]:
    """Return the ledger's name and secret."""
    rows = run(connection, "ledger").fetchmany(2)
    values = [value for row in rows for value in row]
    if len(values) != 2 or not all(isinstance(v, str) for v in values):
        raise damaged("it has no name, or several")
    if not NAME.fullmatch(values[0]) or not HASH.fullmatch(values[1]):
        raise damaged("its name or its secret is not as written")
    return values[0], values[1]


def entry(row: Sequence[Any]) -> Entry:
    """Return the entry of a row of number, head and text."""
    try:
        return _entry(*row)
    except (ValueError, TypeError) as error:
        raise damaged(f"entry {str(row[0])[:20]!r} is not as written") from error


_entry = lru_cache(maxsize=16, typed=True)(entries.parse)
"""The last entry is read several times."""


def last(connection: Connection) -> tuple[int, str, int]:
    """Return number, hash and time of the last entry; 0, `START` and 0 if there is none."""
    row = run(connection, "last").fetchone()
    if row is None:
        return 0, START, 0
    found = entry(row)
    return found.number, found.head, found.time


def head_at(connection: Connection, number: int) -> str | None:
    """Return the hash of the entry with this number; None if there is none."""
    row = run(connection, "at", number=number).fetchone()
    return None if row is None else entry(row).head


def append(connection: Connection, event: Event, now: int) -> Entry:
    """Write an entry after the last one, whose time it has if the clock was set back since."""
    number, head, before = last(connection)
    made = entries.written(number + 1, max(now, before), event, head)
    unit, sha256 = made.listed
    put(connection, "append", number=made.number, head=made.head, unit=unit, sha256=sha256, text=made.text)
    return made


def of_unit(connection: Connection, unit: str) -> list[Entry]:
    """Return the debits and files of a work unit, newest first."""
    found = [entry(row) for row in run(connection, "of_unit", unit=unit).fetchall()]
    if any(getattr(each.event, "unit", None) != unit for each in found):
        raise damaged("entries are listed under another work unit")
    return found


def of_file(connection: Connection, sha256: str) -> list[Stored]:
    """Return what is stored about a file."""
    found = [entry(row).event for row in run(connection, "of_file", sha256=sha256).fetchall()]
    if any(not isinstance(event, Stored) or event.sha256 != sha256 for event in found):
        raise damaged("entries are listed under another file")
    return found


def of_photo(connection: Connection, photo: str) -> Part | None:
    """Return what the last debit of a photo is of; debits are listed by it in the column of hashes."""
    row = run(connection, "of_photo", photo=entries.photo_name(photo)).fetchone()
    if row is None:
        return None
    part = getattr(entry(row).event, "part", None)
    if not isinstance(part, Part) or part.photo != photo:
        raise damaged("entries are listed under another photo")
    return part


def debit_of(connection: Connection, stored: Stored) -> tuple[Entry, Debit] | None:
    """Return the debit that paid for a file."""
    for each in of_unit(connection, stored.unit):
        event = each.event
        if isinstance(event, Debit) and (event.draw, event.subject) == (stored.draw, stored.subject):
            return each, event
    return None


def page(connection: Connection, after: int) -> list[Any]:
    """Return number, head, unit, sha256 and text of up to a thousand entries in order, after this number."""
    return list(run(connection, "page", after=after).fetchall())


def balance(connection: Connection, subject: str) -> Balance:
    """Return a subject's row, or a new one."""
    rows = run(connection, "subject", subject=subject).fetchmany(2)
    if len(rows) > 1:
        raise damaged("a subject is there twice")
    return _balance(rows[0], subject) if rows else Balance(subject, Total(), [], new=True)


def balances(connection: Connection) -> Iterator[Balance]:
    """Yield the rows of all subjects."""
    for row in run(connection, "subjects").fetchall():
        yield _balance(row, row[0])


def keep(connection: Connection, row: Balance) -> None:
    """Write a subject's row."""
    cost, relation = row.spent.cost.to_text(), row.spent.relation_text()
    limits = json.dumps([limit.entry() for limit in row.limits], sort_keys=True)
    name = "new_subject" if row.new else "set_subject"
    put(connection, name, subject=row.subject, cost=cost, relation=relation, limits=limits)


def _balance(row: Sequence[Any], subject: object) -> Balance:
    try:
        name, cost, relation, limits = row
        if name != subject or check_subject(name) != name or not isinstance(limits, str):
            raise ValueError("no subject")
        return Balance(name, Total.parse(cost, relation), list(_limits(limits)))
    except (InvalidParameter, ValueError, TypeError, RecursionError) as error:
        raise damaged("the row of a subject is not as written") from error


@lru_cache(maxsize=256)
def _limits(text: str) -> tuple[Limit, ...]:
    return tuple(Limit.parse(each) for each in json.loads(text))


def reserve(connection: Connection, row: Reserved) -> None:
    """Write a reservation."""
    values = {"id": row.id, "subject": row.subject, "unit": row.unit, "relation": row.cost.relation_text()}
    put(connection, "reserve", **values, cost=row.cost.cost.to_text(), expires=row.expires)


def reserved(connection: Connection, now: int | None = None) -> list[Reserved]:
    """Return all reservations, or those that have not expired `now`; raises `LedgerError` for too many."""
    rows = (
        _reservations(connection, "reserved")
        if now is None
        else _reservations(connection, "held", now=now, far=now + MOST_SECONDS)
    )
    if len(rows) > MOST_RESERVED:
        raise LedgerError(
            f"the ledger has more than {MOST_RESERVED:,} reservations", hint="wait until they expire"
        )
    return rows


def held(connection: Connection, now: int) -> list[Reserved]:
    """Return the reservations that have not expired, and remove the others; raises `LedgerError`."""
    if not all(each.holds(now) for each in _reservations(connection, "reserved")):
        run(connection, "expire", now=now, far=now + MOST_SECONDS)
    return reserved(connection)


def replace(connection: Connection, held: list[Reserved], unit: str) -> list[Reserved]:
    """Remove the reservations of a work unit; return the others of `held`."""
    others = [each for each in held if each.unit != unit]
    if len(others) < len(held):
        run(connection, "replace", unit=unit)
    return others


def _reservations(connection: Connection, query: str, **values: int) -> list[Reserved]:
    try:
        return [
            Reserved(str(name), str(subject), str(unit), Total.parse(cost, relation), entries.second(expires))
            for name, subject, unit, cost, relation, expires in run(connection, query, **values).fetchall()
        ]
    except ValueError as error:
        raise damaged("a reservation is not as written") from error
