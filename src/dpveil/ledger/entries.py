"""Entries of a ledger: canonical texts in a hash chain, from which everything else follows.

The hash of an entry is SHA-256(hash of the one before, newline, text). Whoever holds one hash can tell
whether the entries up to it were changed; nothing in the file itself can.
"""

from __future__ import annotations

import hashlib
import hmac
import json
from dataclasses import dataclass
from typing import Annotated, Any, Final, Self

from dpveil.core.rationals import Json
from dpveil.core.region import CoverageDigests
from dpveil.core.strict_json import Check, Hash, between, matching, of_type, one_of, read, read_object
from dpveil.errors import InvalidParameter
from dpveil.ledger.amounts import Total
from dpveil.ledger.limits import Limit, check_subject

START: Final = "0" * 64  # the hash before the first entry
FORMAT: Final = "dpveil.ledger/1"
NUMBER_LIMIT: Final = 1 << 53  # no number of an entry or a draw, and no time in Unix seconds, is as large
NAMED: Final = {"secret": "secret_sha256"}
"""Fields that readers are shown by another name; their names in the text of an entry are under its hash."""
Name = Annotated[str, matching("[0-9a-f]{32}", "name of a ledger")]
Moment = Annotated[int, between(0, NUMBER_LIMIT - 1)]
Draw = Annotated[int, between(1, NUMBER_LIMIT - 1)]
Subject = Annotated[str, Check(lambda name: check_subject(name) == name, "is no subject")]


@dataclass(frozen=True)
class Open:
    """The first entry: the ledger's random name, and SHA-256 of its secret."""

    name: Name
    secret: Hash
    format: Annotated[str, one_of(FORMAT)] = FORMAT


@dataclass(frozen=True)
class LimitSet:
    """A limit of a subject was set in the place of one with the same kind and relation, or removed."""

    subject: Subject
    limit: Limit
    removed: bool = False


@dataclass(frozen=True)
class Part:
    """Which photo a debit is of, and which part of it the release covers, as HMACs.

    `other_regions` says that earlier debits of this photo are of another part, as was asked for.
    """

    photo: Hash
    covered: Hash
    other_regions: bool = False

    def differs(self, before: Part | None) -> bool:
        """Whether a photo's last debit is of another part, or says that one before it is."""
        return before is not None and (before.other_regions or before.covered != self.covered)


@dataclass(frozen=True)
class Debit:
    """A release was paid for: the number `draw` of the work unit `unit`, which is an HMAC.

    `part` is None for what is not of a photo.
    """

    subject: Subject
    unit: Hash
    draw: Draw
    cost: Total
    part: Part | None = None

    @classmethod
    def from_json(cls, data: object, where: str) -> Self:
        """Return the debit of an entry, which states cost and part among its own members."""
        rest = dict(of_type(dict, data, where))
        cost = Total.parse(rest.pop("cost", None), rest.pop("relation", None))
        if cost.relation is None:
            raise ValueError("no debit")
        part = {name: rest.pop(name) for name in ("photo", "covered", "other_regions") if name in rest}
        return read_object(cls, {**rest, "cost": cost, "part": part or None}, where)


@dataclass(frozen=True)
class StoredFile:
    """A file of the release by this draw has this SHA-256."""

    subject: Subject
    unit: Hash
    draw: Draw
    sha256: Hash


Event = Open | LimitSet | Debit | StoredFile
NAMES: Final[dict[type[Any], str]] = {Open: "open", LimitSet: "limit", Debit: "debit", StoredFile: "stored"}


def fields(event: Event) -> dict[str, Json]:
    """Return what the entry of an event says, besides its kind."""
    told = dict(vars(event))
    if isinstance(event, LimitSet):
        return {**told, "limit": event.limit.entry()}
    if isinstance(event, Debit):
        part = {} if event.part is None else vars(event.part)
        cost = {"cost": event.cost.cost.to_text(), "relation": event.cost.relation_text()}
        return {**{name: told[name] for name in ("subject", "unit", "draw")}, **cost, **part}
    return told


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
    try:
        data = json.loads(of_type(str, text, "text"))
        stated = {name: data.pop(name) for name in ("number", "time", "kind")}
        kind = next(kind for kind, name in NAMES.items() if name == stated["kind"])
        event = kind.from_json(data, "") if kind is Debit else read_object(kind, data)
        number, moment = read(Draw, stated["number"]), read(Moment, stated["time"])
        made = Entry(number, moment, event, read(Hash, head), str(text))
        same: dict[str, Any] = {"number": number_, "time": made.time, "kind": made.kind, **fields(event)}
    except (KeyError, TypeError, AttributeError, RecursionError, StopIteration, ValueError) as error:
        raise ValueError("no entry") from error
    if _canonical(same) != text:
        raise ValueError("no entry")
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
    if not isinstance(covered, CoverageDigests):
        hint = "give what a plan covers, plan.coverage"
        raise InvalidParameter("covered", type(covered).__name__, "is no part of a photo", hint=hint)
    photo, pixels = (
        hmac.new(bytes.fromhex(secret), b"\0" + what, "sha256").hexdigest()
        for what in (covered.photo, covered.photo + covered.pixels)
    )
    return Part(photo, pixels, other_regions)


def _canonical(data: dict[str, Json]) -> str:
    return json.dumps(data, sort_keys=True, separators=(",", ":"), allow_nan=False)
