"""The tables of a ledger within a transaction: strict reading of their rows, and the rules of a debit."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Final

from dpveil.core.strict_json import Hash, read
from dpveil.errors import AlreadyPaid, BudgetRefused, InvalidParameter, LedgerError, RegionsDiffer
from dpveil.ledger import entries
from dpveil.ledger.amounts import Total
from dpveil.ledger.database import Connection
from dpveil.ledger.entries import START, Debit, Entry, Event, Name, Part, StoredFile
from dpveil.ledger.limits import Limit, check_subject, is_under, path_to

MOST_SECONDS: Final = 86_400
"""Longest time of a reservation; one that ends later was made before the clock was set back."""
MOST_RESERVED: Final = 10_000  # most reservations at once
PAGE: Final = 1000  # entries that are read at once
SUBJECTS: Final = "SELECT subject, cost, relation, limits FROM subjects"
DIFFER: Final = (
    "this photo was released with other regions before, and together the releases show what any one of them"
    " leaves in the clear"
)
SAME: Final = (
    "replace the same regions; or add {other_regions}, and its costs add up to a promise about what all of"
    " its releases cover, and about nothing else"
)


@dataclass(frozen=True)
class Reserved:
    """A row of reservations, which ends at `expires` in Unix seconds."""

    id: str
    subject: str
    unit: str
    cost: Total
    expires: int


@dataclass
class Balance:
    """A row of subjects: what was spent, and the limits; `new` if there is no row yet."""

    subject: str
    spent: Total
    limits: list[Limit]
    new: bool = False


class Tables:
    """The tables, for one transaction. `newest` is the entry that was written last in it, if any."""

    def __init__(self, connection: Connection) -> None:
        self._run = connection.execute
        self.newest: Entry | None = None

    def _rows(self, sql: str, **values: str | int | None) -> list[Any]:
        return list(self._run(sql, values).fetchall())

    def _entries(self, which: str, **values: str | int) -> list[Entry]:
        sql = f"SELECT number, head, text FROM entries {which}"  # noqa: S608  the clauses below, no others
        return [entry(row) for row in self._rows(sql, **values)]

    def identity(self) -> tuple[str, str]:
        try:
            ((name, secret),) = self._rows("SELECT name, secret FROM ledger")
            return read(Name, name), read(Hash, secret)
        except ValueError as error:
            raise damage_error("its name or its secret is missing, there twice, or not as written") from error

    def open(self, name: str, secret: str, now: int) -> None:
        self._run("INSERT INTO ledger VALUES (:name, :secret)", {"name": name, "secret": secret})
        self.append(entries.Open(name, entries.secret_hash(secret)), now)

    def last_entry(self) -> tuple[int, str, int]:
        """Return number, hash and time of the last entry; 0, `START` and 0 if there is none."""
        if self.newest is None:
            for found in self._entries("ORDER BY number DESC LIMIT 1"):
                return found.number, found.head, found.time
            return 0, START, 0
        return self.newest.number, self.newest.head, self.newest.time

    def head_at(self, number: int) -> str | None:
        """Return the hash of the entry with this number; None if there is none."""
        found = self._entries("WHERE number = :number", number=number)
        return found[0].head if found else None

    def append(self, event: Event, now: int) -> None:
        """Write an entry after the last one, whose time it has if the clock was set back since."""
        number, head, before = self.last_entry()
        made = self.newest = entries.make_entry(number + 1, max(now, before), event, head)
        unit, sha256 = made.index_keys
        values = {"number": made.number, "head": made.head, "unit": unit, "sha256": sha256, "text": made.text}
        self._run("INSERT INTO entries VALUES (:number, :head, :unit, :sha256, :text)", values)

    def page(self, after: int) -> list[Any]:
        """Return number, head, text, unit and sha256 of the next entries in order, after this number."""
        sql = "SELECT number, head, text, unit, sha256 FROM entries WHERE number > :after ORDER BY number"
        return self._rows(f"{sql} LIMIT {PAGE}", after=after)

    def of_unit(self, unit: str) -> list[Entry]:
        """Return the debits and files of a work unit, newest first."""
        found = self._entries("WHERE unit = :unit ORDER BY number DESC", unit=unit)
        if any(getattr(each.event, "unit", None) != unit for each in found):
            raise damage_error("entries are listed under another work unit")
        return found

    def of_file(self, sha256: str) -> list[StoredFile]:
        found = [e.event for e in self._entries("WHERE sha256 = :sha256 ORDER BY number", sha256=sha256)]
        if any(not isinstance(event, StoredFile) or event.sha256 != sha256 for event in found):
            raise damage_error("entries are listed under another file")
        return found

    def debit_of(self, stored: StoredFile) -> Entry | None:
        for each in self.of_unit(stored.unit):
            event = each.event
            if isinstance(event, Debit) and (event.draw, event.subject) == (stored.draw, stored.subject):
                return each
        return None

    def path(self, subject: str) -> list[Balance]:
        """Return the rows of a subject's ancestors and its own, new ones for those that are missing."""
        names = {f"s{level}": name for level, name in enumerate(path_to(subject))}
        which = f"WHERE subject IN ({', '.join(f':{each}' for each in names)})"
        found = {row[0]: _balance(row) for row in self._rows(f"{SUBJECTS} {which}", **names)}
        return [found.get(name, Balance(name, Total(), [], new=True)) for name in names.values()]

    def balances(self) -> list[Balance]:
        return sorted(map(_balance, self._rows(SUBJECTS)), key=lambda row: row.subject)

    def keep(self, row: Balance) -> None:
        cost, relation = row.spent.cost.to_text(), row.spent.relation_text()
        limits = json.dumps([limit.entry() for limit in row.limits], sort_keys=True)
        values = {"subject": row.subject, "cost": cost, "relation": relation, "limits": limits}
        change = "UPDATE subjects SET cost = :cost, relation = :relation, limits = :limits"
        insert = "INSERT INTO subjects VALUES (:subject, :cost, :relation, :limits)"
        self._run(insert if row.new else f"{change} WHERE subject = :subject", values)

    def reservations(self, now: int) -> list[Reserved]:
        """Return the reservations that have not expired; raises `LedgerError` for too many."""
        sql = "SELECT id, subject, unit, cost, relation, expires FROM reservations"
        rows = self._rows(
            f"{sql} WHERE expires BETWEEN :now AND :far ORDER BY id LIMIT {MOST_RESERVED + 1}",
            now=now,
            far=now + MOST_SECONDS,
        )
        if len(rows) > MOST_RESERVED:
            problem = f"the ledger has more than {MOST_RESERVED:,} reservations"
            raise LedgerError(problem, hint="wait until they expire")
        try:
            return [
                Reserved(str(name), str(subject), str(unit), Total.parse(cost, relation), int(expires))
                for name, subject, unit, cost, relation, expires in rows
            ]
        except ValueError as error:
            raise damage_error("a reservation is not as written") from error

    def reserve(self, row: Reserved, now: int) -> None:
        """Write a reservation, and remove those that have expired."""
        far = now + MOST_SECONDS
        delete = "DELETE FROM reservations WHERE expires NOT BETWEEN :now AND :far"
        self._run(delete, {"now": now, "far": far})
        cost, relation = row.cost.cost.to_text(), row.cost.relation_text()
        self._run(
            "INSERT INTO reservations VALUES (:id, :subject, :unit, :cost, :relation, :expires)",
            {**vars(row), "cost": cost, "relation": relation},
        )

    def free(self, name: str) -> None:
        self._run("DELETE FROM reservations WHERE id = :name", {"name": name})

    def others(self, subject: str, unit: str, now: int, *, again: bool) -> list[Reserved]:
        """Return the reservations that another draw of a work unit has to leave room for.

        Unless `again`, those of the same unit give way; raises `AlreadyPaid` if its release was stored.
        """
        held = self.reservations(now)
        if again:
            return held
        draw, sha256s = last_files(self.of_unit(unit))
        if sha256s:
            raise AlreadyPaid(subject=subject, draw=draw, sha256s=sha256s)
        others = [each for each in held if each.unit != unit]
        if len(others) < len(held):
            self._run("DELETE FROM reservations WHERE unit = :unit", {"unit": unit})
        return others

    def debit(self, wanted: Debit, held: list[Reserved], now: int) -> int:
        """Write a debit as the next draw of its work unit if every limit has room; return the draw."""
        part = self.check_part(wanted.part)
        rows = self.check_limits(wanted.subject, wanted.cost, held)
        debits = [each.event.draw for each in self.of_unit(wanted.unit) if isinstance(each.event, Debit)]
        draw = max(debits, default=0) + 1
        self.append(replace(wanted, draw=draw, part=part), now)
        for row in rows:
            row.spent += wanted.cost
            self.keep(row)
        return draw

    def check_part(self, part: Part | None) -> Part | None:
        """Return the part as its debit states it. Subjects do not matter: a photo is the same whoever pays.

        Raises `RegionsDiffer` unless all debits of its photo are of the same part, or it accepts that not.
        """
        if part is None:
            return None
        name = entries.photo_name(part.photo)
        last = self._entries("WHERE sha256 = :name ORDER BY number DESC LIMIT 1", name=name)
        before = getattr(last[0].event, "part", None) if last else None
        if last and (before is None or before.photo != part.photo):
            raise damage_error("entries are listed under another photo")
        differ = part.differs(before)
        if differ and not part.other_regions:
            raise RegionsDiffer(DIFFER, hint=SAME, arguments={"other_regions": "other_regions=True"})
        return replace(part, other_regions=differ)

    def check_limits(self, subject: str, cost: Total, held: list[Reserved]) -> list[Balance]:
        """Return the rows of the subject's path; raises `BudgetRefused` unless each limit there has room.

        `held` are the other reservations.
        """
        rows = self.path(subject)
        if not any(row.limits for row in rows):
            hint = f"set one with dpveil ledger limit {subject}"
            raise BudgetRefused(f"{subject} has no limit, so nothing may be spent for it", hint=hint)
        for row in rows:
            reserved = sum((each.cost for each in held if is_under(each.subject, row.subject)), Total())
            for limit in row.limits:
                limit.check(row.subject, row.spent + reserved + cost, cost.cost)
        return rows


def last_files(found: list[Entry]) -> tuple[int, tuple[str, ...]]:
    """Return the number of the last draw of a work unit that was stored, and its files; 0 without any."""
    stored = [each.event for each in found if isinstance(each.event, StoredFile)]
    draw = max((event.draw for event in stored), default=0)
    return draw, tuple(event.sha256 for event in reversed(stored) if event.draw == draw)


def damage_error(what: str) -> LedgerError:
    """Return the error for a row that no ledger has."""
    return LedgerError(
        f"the ledger is damaged: {what}", hint="use an intact copy; dpveil ledger check says more"
    )


def entry(row: Sequence[Any]) -> Entry:
    """Return the entry of a row that begins with number, head and text."""
    try:
        return _parsed(*row[:3])
    except (ValueError, TypeError) as error:
        raise damage_error(f"entry {str(row[0])[:20]!r} is not as written") from error


_parsed = lru_cache(maxsize=16, typed=True)(entries.parse)  # the last entry is read several times


def _balance(row: Sequence[Any]) -> Balance:
    try:
        name, cost, relation, limits = row
        if check_subject(name) != name:
            raise ValueError("no subject")
        return Balance(name, Total.parse(cost, relation), list(_limits(limits)))
    except (InvalidParameter, ValueError, TypeError, RecursionError) as error:
        raise damage_error("the row of a subject is not as written") from error


@lru_cache(maxsize=256)
def _limits(text: str) -> tuple[Limit, ...]:
    return tuple(Limit.from_json(each) for each in json.loads(text))
