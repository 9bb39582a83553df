"""Entries of a ledger: canonical texts in a hash chain, from which everything else follows.

The hash of an entry is SHA-256(hash of the one before, newline, text). Whoever holds one hash can tell
whether the entries up to it were changed; nothing in the file itself can.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import re
from dataclasses import dataclass
from typing import Any, Final

from dpveil.core.numbers import Json
from dpveil.core.region import Covered
from dpveil.errors import InvalidParameter
from dpveil.ledger.amounts import Total
from dpveil.ledger.limits import Limit, check_subject

START: Final = "0" * 64  # the hash before the first entry
HASH: Final = re.compile("[0-9a-f]{64}")
NAME: Final = re.compile("[0-9a-f]{32}")
FORMAT: Final = "dpveil.ledger/1"
MOST: Final = 1 << 53  # no number of an entry or a draw, and no time in Unix seconds, is as large
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
    kind = data["kind"]
    if kind == "open":
        return Open(_match(NAME, data["name"]), _match(HASH, data["secret"]))
    subject = check_subject(data["subject"])
    if kind == "limit":
        return LimitSet(subject, Limit.parse(data["limit"]), _flag(data["removed"]))
    unit, draw = _match(HASH, data["unit"]), whole(data["draw"], 1)
    if kind == "stored":
        return Stored(subject, unit, draw, _match(HASH, data["sha256"]))
    cost, part = Total.parse(data["cost"], data["relation"]), None
    _check(kind == "debit" and cost.relation is not None)
    if "photo" in data:
        photo, covered = _match(HASH, data["photo"]), _match(HASH, data["covered"])
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
    def index_keys(self) -> tuple[str | None, str | None]:
        """What it is looked up by: its work unit, and the file that was stored or the photo that was paid.

        A photo is listed so that no file has its name.
        """
        part, sha256 = getattr(self.event, "part", None), getattr(self.event, "sha256", None)
        return getattr(self.event, "unit", None), sha256 if part is None else photo_name(part.photo)

    def to_json(self) -> dict[str, Json]:
        told = {NAMED.get(name, name): value for name, value in fields(self.event).items()}
        return {"number": self.number, "time": self.time, "kind": self.kind, **told}


def photo_name(photo: str) -> str:
    """Return what a photo is listed under, by its HMAC."""
    return f"photo:{photo}"


def make_entry(number: int, now: int, event: Event, before: str) -> Entry:
    """Return the entry for an event after the one with the hash `before`."""
    data = {"number": number, "time": now, "kind": NAMES[type(event)], **fields(event)}
    text = _canonical(data)
    return Entry(number, now, event, chain_hash(before, text), text)


def chain_hash(before: str, text: str) -> str:
    """Return the hash of an entry after the one with the hash `before`."""
    return hashlib.sha256(f"{before}\n{text}".encode()).hexdigest()


def parse(number_: object, head: object, text: object) -> Entry:
    """Return the entry of a row; raises `ValueError` unless it is as written. Its hash is not checked."""
    _check(isinstance(text, str))
    try:
        data = json.loads(str(text))
        number, moment = whole(data["number"], 1), whole(data["time"])
        made = Entry(number, moment, _event(data), _match(HASH, head), str(text))
        same: dict[str, Any] = {"number": number_, "time": made.time, "kind": made.kind, **fields(made.event)}
    except (KeyError, TypeError, AttributeError, RecursionError, ArithmeticError, ValueError) as error:
        raise ValueError("no entry") from error
    _check(_canonical(same) == text)
    return made


def secret_hash(secret: str) -> str:
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
        hint = "give what a plan covers, plan.coverage"
        raise InvalidParameter("covered", type(covered).__name__, "is no part of a photo", hint=hint)
    photo, pixels = (
        hmac.new(bytes.fromhex(secret), b"\0" + what, "sha256").hexdigest()
        for what in (covered.photo, covered.photo + covered.pixels)
    )
    return Part(photo, pixels, other_regions)


def _canonical(data: dict[str, Json]) -> str:
    return json.dumps(data, sort_keys=True, separators=(",", ":"), allow_nan=False)


def whole(value: object, least: int = 0) -> int:
    """Return a whole number of a received text; raises `ValueError` for others, and for too large ones."""
    _check(type(value) is int and least <= value < MOST)
    return int(value)  # type: ignore[call-overload, no-any-return]


def _flag(value: object) -> bool:
    _check(isinstance(value, bool))
    return bool(value)


def _match(pattern: re.Pattern[str], value: object) -> str:
    _check(isinstance(value, str) and bool(pattern.fullmatch(value)))
    return str(value)


def _check(holds: bool) -> None:
    if not holds:
        raise ValueError("no entry")
