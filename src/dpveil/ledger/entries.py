"""Entries of a ledger: canonical texts in a hash chain, from which everything else follows.

The hash of an entry is SHA-256(hash of the one before, newline, text). Whoever holds one hash can tell
whether the entries up to it were changed; nothing in the file itself can.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Final

from dpveil.core.numbers import Json
from dpveil.core.region import Covered
from dpveil.errors import AlreadyPaid, BudgetRefused, InvalidParameter, LedgerError, RegionsDiffer
from dpveil.ledger import entries
from dpveil.ledger.amounts import Total
from dpveil.ledger.database import Connection
from dpveil.ledger.limits import LATEST, Limit, check_subject, is_under, path_to

START: Final = "0" * 64
"""The hash before the first entry."""
HASH: Final = re.compile("[0-9a-f]{64}")
NAME: Final = re.compile("[0-9a-f]{32}")
FORMAT: Final = "dpveil.ledger/1"
MOST_DRAWS: Final = 1 << 53
NAMED: Final = {"secret": "secret_sha256"}
"""Fields that readers are shown by another name; their names in the text of an entry are under its hash."""


@dataclass(frozen=True)
class Open:
    """The first entry: the ledger's random name, and SHA-256 of its secret."""

    name: str
    secret: str


@dataclass(frozen=True)
class LimitSet:
    """A limit of a subject was set in the place of one with the same kind and relation, or removed."""

    subject: str
    limit: Limit
    removed: bool = False


@dataclass(frozen=True)
class Part:
    """Which photo a debit is of, and which part of it the release covers, as HMACs.

    `other_regions` says that earlier debits of this photo are of another part, as was asked for.
    """

    photo: str
    covered: str
    other_regions: bool = False

    def differs(self, before: Part | None) -> bool:
        """Whether a photo's last debit is of another part, or says that one before it is."""
        return before is not None and (before.other_regions or before.covered != self.covered)


@dataclass(frozen=True)
class Debit:
    """A release was paid for: the number `draw` of the work unit `unit`, which is an HMAC.

    `part` is None for what is not of a photo.
    """

    subject: str
    unit: str
    draw: int
    cost: Total
    part: Part | None = None


@dataclass(frozen=True)
class Stored:
    """A file of the release by this draw has this SHA-256."""

    subject: str
    unit: str
    draw: int
    sha256: str


Event = Open | LimitSet | Debit | Stored
NAMES: Final[dict[type[Any], str]] = {Open: "open", LimitSet: "limit", Debit: "debit", Stored: "stored"}


def fields(event: Event) -> dict[str, Json]:
    """Return what the entry of an event says, besides its kind."""
    if isinstance(event, Open):
        return {"format": FORMAT, **vars(event)}
    if isinstance(event, LimitSet):
        return {**vars(event), "limit": event.limit.entry()}
    if isinstance(event, Stored):
        return dict(vars(event))
    cost = {"cost": event.cost.cost.to_text(), "relation": event.cost.relation_text()}
    part = {} if event.part is None else vars(event.part)
    return {"subject": event.subject, "unit": event.unit, "draw": event.draw, **cost, **part}


def _event(data: dict[str, Any]) -> Event:
    """Return the event of `fields` and its kind; raises `ValueError`, and what wrong types raise."""
    kind = data["kind"]
    if kind == "open":
        return Open(_like(NAME, data["name"]), _like(HASH, data["secret"]))
    subject = check_subject(data["subject"])
    if kind == "limit":
        return LimitSet(subject, Limit.parse(data["limit"]), _flag(data["removed"]))
    unit, draw = _like(HASH, data["unit"]), number(data["draw"])
    if kind == "stored":
        return Stored(subject, unit, draw, _like(HASH, data["sha256"]))
    cost, part = Total.parse(data["cost"], data["relation"]), None
    _check(kind == "debit" and cost.relation is not None)
    if "photo" in data:
        photo, covered = _like(HASH, data["photo"]), _like(HASH, data["covered"])
        part = Part(photo, covered, _flag(data["other_regions"]))
    return Debit(subject, unit, draw, cost, part)


@dataclass(frozen=True)
class Entry:
    """One entry: its number from 1, its time in Unix seconds, what happened, and its hash (`head`)."""

    number: int
    time: int
    event: Any
    head: str
    text: str

    @property
    def kind(self) -> str:
        """The kind of its event: open, limit, debit or stored."""
        return NAMES[type(self.event)]

    @property
    def listed(self) -> tuple[str | None, str | None]:
        """What it is looked up by: its work unit, and the file that was stored or the photo that was paid.

        A photo is listed so that no file has its name.
        """
        part, sha256 = getattr(self.event, "part", None), getattr(self.event, "sha256", None)
        return getattr(self.event, "unit", None), sha256 if part is None else photo_name(part.photo)

    def to_json(self) -> dict[str, Json]:
        """Return number, time, kind and what happened, in names for readers."""
        told = {NAMED.get(name, name): value for name, value in fields(self.event).items()}
        return {"number": self.number, "time": self.time, "kind": self.kind, **told}


def photo_name(photo: str) -> str:
    """Return what a photo is listed under, by its HMAC."""
    return f"photo:{photo}"


def written(number: int, now: int, event: Event, before: str) -> Entry:
    """Return the entry for an event after the one with the hash `before`."""
    data = {"number": number, "time": now, "kind": NAMES[type(event)], **fields(event)}
    text = _canonical(data)
    return Entry(number, now, event, chained(before, text), text)


def chained(before: str, text: str) -> str:
    """Return the hash of the entry with this text after the one with the hash `before`."""
    return hashlib.sha256(f"{before}\n{text}".encode()).hexdigest()


def parse(number_: object, head: object, text: object) -> Entry:
    """Return the entry of a row; raises `ValueError` unless it is as written. Its hash is not checked."""
    _check(isinstance(text, str))
    try:
        data = json.loads(str(text))
        made = Entry(number(data["number"]), second(data["time"]), _event(data), _like(HASH, head), str(text))
        same: dict[str, Any] = {"number": number_, "time": made.time, "kind": made.kind, **fields(made.event)}
    except (KeyError, TypeError, AttributeError, RecursionError, ArithmeticError, ValueError) as error:
        raise ValueError("no entry") from error
    _check(_canonical(same) == text)
    return made


def hashed(secret: str) -> str:
    """Return SHA-256 of the secret, by which the first entry names it."""
    return hashlib.sha256(bytes.fromhex(secret)).hexdigest()


def unit_of(secret: str, subject: str, key: object) -> str:
    """Return the name of a work unit: an HMAC, from which nobody without the secret guesses the content.

    It differs for keys that are text and bytes. Raises `InvalidParameter` for other keys.
    """
    if not isinstance(key, str | bytes) or not key:
        hint = "name the work unit, such as photo-1"
        raise InvalidParameter("key", None, "is no text or bytes, or empty", hint=hint)
    named = b"data " + key if isinstance(key, bytes) else b"text " + key.encode("utf-8", "surrogatepass")
    message = subject.encode() + b"\0" + hashlib.sha256(named).digest()
    return hmac.new(bytes.fromhex(secret), message, "sha256").hexdigest()


def part_of(secret: str, covered: object, other_regions: bool) -> Part | None:
    """Return a photo and what is covered of it as HMACs, None for no photo; raises `InvalidParameter`.

    That of the same pixels differs between photos. No message is one of `unit_of`: those begin with a
    subject, and no subject has a zero.
    """
    if covered is None:
        return None
    if not isinstance(covered, Covered):
        hint = "give what a plan covers, plan.covered"
        raise InvalidParameter("covered", type(covered).__name__, "is no part of a photo", hint=hint)
    photo, pixels = (
        hmac.new(bytes.fromhex(secret), b"\0" + what, "sha256").hexdigest()
        for what in (covered.photo, covered.photo + covered.pixels)
    )
    return Part(photo, pixels, other_regions)


def _canonical(data: dict[str, Json]) -> str:
    return json.dumps(data, sort_keys=True, separators=(",", ":"), allow_nan=False)


def number(value: object) -> int:
    """Return a number of an entry or a draw, from 1; raises `ValueError`."""
    _check(isinstance(value, int) and not isinstance(value, bool) and 1 <= value < MOST_DRAWS)
    return int(value)  # type: ignore[call-overload, no-any-return]


def second(value: object) -> int:
    """Return a time in Unix seconds; raises `ValueError`."""
    _check(isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= LATEST)
    return int(value)  # type: ignore[call-overload, no-any-return]


def _flag(value: object) -> bool:
    _check(isinstance(value, bool))
    return bool(value)


def _like(pattern: re.Pattern[str], value: object) -> str:
    _check(isinstance(value, str) and bool(pattern.fullmatch(value)))
    return str(value)


def _check(holds: bool) -> None:
    if not holds:
        raise ValueError("no entry")


MOST_SECONDS: Final = 86_400
"""Longest time of a reservation; one that ends later was made before the clock was set back."""
MOST_RESERVED: Final = 10_000
"""Most reservations at once."""
PAGE: Final = 1000
"""Entries that are read at once."""
COLUMNS: Final = {
    "entry": "SELECT number, head, text FROM entries",
    "subject": "SELECT subject, cost, relation, limits FROM subjects",
}
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
        return [entry(row) for row in self._rows(f"{COLUMNS['entry']} {which}", **values)]

    def identity(self) -> tuple[str, str]:
        """Return the ledger's name and secret."""
        values = [value for row in self._rows("SELECT name, secret FROM ledger") for value in row]
        if len(values) != 2 or not all(isinstance(value, str) for value in values):
            raise damaged("it has no name, or several")
        if not NAME.fullmatch(values[0]) or not HASH.fullmatch(values[1]):
            raise damaged("its name or its secret is not as written")
        return values[0], values[1]

    def open(self, name: str, secret: str, now: int) -> None:
        """Write the first rows."""
        self._run("INSERT INTO ledger VALUES (:name, :secret)", {"name": name, "secret": secret})
        self.append(entries.Open(name, entries.hashed(secret)), now)

    def last(self) -> tuple[int, str, int]:
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
        number, head, before = self.last()
        made = self.newest = entries.written(number + 1, max(now, before), event, head)
        unit, sha256 = made.listed
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
            raise damaged("entries are listed under another work unit")
        return found

    def of_file(self, sha256: str) -> list[Stored]:
        """Return what is stored about a file."""
        found = [
            each.event for each in self._entries("WHERE sha256 = :sha256 ORDER BY number", sha256=sha256)
        ]
        if any(not isinstance(event, Stored) or event.sha256 != sha256 for event in found):
            raise damaged("entries are listed under another file")
        return found

    def debit_of(self, stored: Stored) -> Entry | None:
        """Return the debit that paid for a file."""
        for each in self.of_unit(stored.unit):
            event = each.event
            if isinstance(event, Debit) and (event.draw, event.subject) == (stored.draw, stored.subject):
                return each
        return None

    def path(self, subject: str) -> list[Balance]:
        """Return the rows of a subject's ancestors and its own, new ones for those that are missing."""
        names = {f"s{level}": name for level, name in enumerate(path_to(subject))}
        which = f"WHERE subject IN ({', '.join(f':{each}' for each in names)})"
        found = {
            row[0]: _balance(row, row[0]) for row in self._rows(f"{COLUMNS['subject']} {which}", **names)
        }
        return [found.get(name, Balance(name, Total(), [], new=True)) for name in names.values()]

    def balances(self) -> list[Balance]:
        """Return the rows of all subjects, sorted."""
        rows = [_balance(row, row[0]) for row in self._rows(COLUMNS["subject"])]
        return sorted(rows, key=lambda row: row.subject)

    def keep(self, row: Balance) -> None:
        """Write a subject's row."""
        values = {
            "subject": row.subject,
            "relation": row.spent.relation_text(),
            "cost": row.spent.cost.to_text(),
        }
        values["limits"] = json.dumps([limit.entry() for limit in row.limits], sort_keys=True)
        change = "UPDATE subjects SET cost = :cost, relation = :relation, limits = :limits"
        insert = "INSERT INTO subjects VALUES (:subject, :cost, :relation, :limits)"
        self._run(insert if row.new else f"{change} WHERE subject = :subject", values)

    def reserved(self, now: int) -> list[Reserved]:
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
                Reserved(
                    str(name), str(subject), str(unit), Total.parse(cost, relation), entries.second(expires)
                )
                for name, subject, unit, cost, relation, expires in rows
            ]
        except ValueError as error:
            raise damaged("a reservation is not as written") from error

    def reserve(self, row: Reserved, now: int) -> None:
        """Write a reservation, and remove those that have expired."""
        far = now + MOST_SECONDS
        self._run(
            "DELETE FROM reservations WHERE expires NOT BETWEEN :now AND :far", {"now": now, "far": far}
        )
        cost, relation = row.cost.cost.to_text(), row.cost.relation_text()
        self._run(
            "INSERT INTO reservations VALUES (:id, :subject, :unit, :cost, :relation, :expires)",
            {**vars(row), "cost": cost, "relation": relation},
        )

    def free(self, name: str) -> None:
        """Remove a reservation."""
        self._run("DELETE FROM reservations WHERE id = :name", {"name": name})

    def others(self, subject: str, unit: str, now: int, *, again: bool) -> list[Reserved]:
        """Return the reservations that another draw of a work unit has to leave room for.

        Unless `again`, those of the same unit give way; raises `AlreadyPaid` if its release was stored.
        """
        held = self.reserved(now)
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
        rows = self.check_limits(wanted.subject, wanted.cost, held, now)
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
            raise damaged("entries are listed under another photo")
        differ = part.differs(before)
        if differ and not part.other_regions:
            raise RegionsDiffer(DIFFER, hint=SAME, arguments={"other_regions": "other_regions=True"})
        return replace(part, other_regions=differ)

    def check_limits(self, subject: str, cost: Total, held: list[Reserved], now: int) -> list[Balance]:
        """Return the rows of the subject's path; raises `BudgetRefused` unless each limit there has room.

        `held` are the other reservations. A clock that was set back behind the last entry opens no window
        again.
        """
        rows = self.path(subject)
        if not any(row.limits for row in rows):
            hint = f"set one with dpveil ledger limit {subject}"
            raise BudgetRefused(f"{subject} has no limit, so nothing may be spent for it", hint=hint)
        now = max(now, self.last()[2])
        for row in rows:
            reserved = sum((each.cost for each in held if is_under(each.subject, row.subject)), Total())
            for limit in row.limits:
                limit.check(row.subject, row.spent + reserved + cost, cost.cost, now)
        return rows


def last_files(found: list[Entry]) -> tuple[int, tuple[str, ...]]:
    """Return the number of the last draw of a work unit that was stored, and its files; 0 without any."""
    stored = [each.event for each in found if isinstance(each.event, Stored)]
    draw = max((event.draw for event in stored), default=0)
    return draw, tuple(event.sha256 for event in reversed(stored) if event.draw == draw)


def damaged(what: str) -> LedgerError:
    """Return the error for a row that no ledger has."""
    return LedgerError(
        f"the ledger is damaged: {what}", hint="use an intact copy; dpveil ledger check says more"
    )


def entry(row: Sequence[Any]) -> Entry:
    """Return the entry of a row that begins with number, head and text."""
    try:
        return _parsed(*row[:3])
    except (ValueError, TypeError) as error:
        raise damaged(f"entry {str(row[0])[:20]!r} is not as written") from error


_parsed = lru_cache(maxsize=16, typed=True)(entries.parse)
"""The last entry is read several times."""


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
