"""Checking a ledger from its entries alone: every release was paid for first, and within every limit."""

from __future__ import annotations

import re
import time
from collections import defaultdict
from dataclasses import dataclass, field
from typing import Final, NoReturn

from dpveil.errors import BudgetRefused, InvalidParameter, LedgerError
from dpveil.ledger.amounts import Total
from dpveil.ledger.entries import START, Debit, Entry, LimitSet, Open, Part, chain_hash, secret_hash
from dpveil.ledger.limits import Limit, path_to
from dpveil.ledger.transaction import Tables
from dpveil.ledger.transaction import entry as parsed

HEAD: Final = re.compile("(?:head +)?([1-9][0-9]{0,15}):([0-9a-f]{64})")
BEFORE_ALL: Final = -(1 << 63)  # smaller than every number that an entry should have
REMEDY: Final = "do not rely on it: compare it with a backup, and with a head that was kept elsewhere"


@dataclass(frozen=True)
class Checked:
    """The result of a check: how many entries, debits and stored files there are, and the `head`.

    `unstored` are debits whose release was never stored: lost in crashes, kept in memory only, or under way.
    `other_regions` are debits of photos whose earlier releases cover other regions, which was accepted.
    `kept` says whether the head is in the user's state folder, so that older copies are refused.
    """

    name: str
    head: str
    entries: int
    debits: int
    files: int
    unstored: int
    other_regions: int
    kept: bool = False


@dataclass
class _Replay:
    """Everything that follows from the entries so far."""

    head: str = START
    first: Open | None = None
    spent: dict[str, Total] = field(default_factory=lambda: defaultdict(Total))
    limits: dict[str, dict[tuple[str, str], Limit]] = field(default_factory=lambda: defaultdict(dict))
    draws: dict[tuple[str, str], int] = field(default_factory=dict)
    parts: dict[str, Part] = field(default_factory=dict)
    files: int = 0
    debits: int = 0
    other_regions: int = 0
    stored: set[tuple[str, int]] = field(default_factory=set)

    def take(self, entry: Entry) -> None:
        """Take the next entry; raises `LedgerError` if it cannot follow."""
        if chain_hash(self.head, entry.text) != entry.head:
            fail(entry.number, "its hash does not follow from the entries before it")
        self.head, event = entry.head, entry.event
        if isinstance(event, Open) != (entry.number == 1):
            fail(entry.number, "a ledger is opened once, at its beginning")
        if isinstance(event, Open):
            self.first = event
        elif isinstance(event, LimitSet):
            self._limit(entry.number, event)
        elif isinstance(event, Debit):
            self._debit(entry, event)
        elif not 1 <= event.draw <= self.draws.get((event.subject, event.unit), 0):
            fail(entry.number, "a release was stored that nobody paid for")
        else:
            self.files += 1
            self.stored.add((event.unit, event.draw))

    def _limit(self, number: int, event: LimitSet) -> None:
        limits = self.limits[event.subject]
        if limits.pop(event.limit.slot, None) is None and event.removed:
            fail(number, "a limit was removed that did not exist")
        if not event.removed:
            limits[event.limit.slot] = event.limit

    def _debit(self, entry: Entry, event: Debit) -> None:
        unit = (event.subject, event.unit)
        if event.draw != self.draws.get(unit, 0) + 1:
            fail(entry.number, "its draw is not the next one of its work unit")
        path = path_to(event.subject)
        if not any(self.limits.get(each) for each in path):
            fail(entry.number, f"{event.subject} had no limit")
        for each in path:
            self.spent[each] += event.cost
            for limit in (self.limits.get(each) or {}).values():
                try:
                    limit.check(each, self.spent[each], event.cost.cost)
                except BudgetRefused as error:
                    fail(entry.number, f"it was beyond a limit ({error.message})")
        if event.part is not None:
            self._part(entry.number, event.part)
        self.draws[unit] = event.draw
        self.debits += 1

    def _part(self, number: int, part: Part) -> None:
        """Take the part of a photo that a debit is of; fails unless it says whether earlier ones differ."""
        differ = part.differs(self.parts.get(part.photo))
        if differ != part.other_regions:
            said = "other" if part.other_regions else "the same"
            fail(number, f"it says that earlier releases of its photo had {said} regions, and they had not")
        self.parts[part.photo] = part
        self.other_regions += differ


def check(tables: Tables, anchor: tuple[int, str] | None = None) -> Checked:
    """Replay all entries and compare the tables with what follows; `anchor` is the number and hash of a head.

    Raises `LedgerError` for the first thing that does not fit.
    """
    replay, number, after = _Replay(), 0, BEFORE_ALL
    while page := tables.page(after):
        for row in page:
            entry = parsed(row)
            number, after = number + 1, entry.number
            if entry.number != number:
                fail(number, "it is missing")
            if tuple(row[3:]) != entry.index_keys:
                fail(number, "it is listed under another work unit, file or photo")
            replay.take(entry)
            if anchor is not None and anchor[0] == number and anchor[1] != entry.head:
                fail(number, "it is not the one whose hash was kept: the ledger was changed")
    if anchor is not None and anchor[0] > number:
        raise LedgerError(
            f"the ledger ends at entry {number} of {anchor[0]}: it is an older copy, or was cut off",
            hint=REMEDY,
        )
    _compare(tables, replay)
    name = "" if replay.first is None else replay.first.name
    unstored = replay.debits - len(replay.stored)
    head, found = f"{number}:{replay.head}", (replay.debits, replay.files, unstored, replay.other_regions)
    return Checked(name, head, number, *found)


def _compare(tables: Tables, replay: _Replay) -> None:
    name, secret = tables.identity()
    if replay.first != Open(name, secret_hash(secret)):
        raise LedgerError("the ledger has another name or secret than at its beginning", hint=REMEDY)
    rows = tables.balances()
    for row in rows:
        limits = {limit.slot: limit for limit in row.limits}
        if len(limits) != len(row.limits) or limits != replay.limits.get(row.subject, {}):
            raise LedgerError(f"the limits of {row.subject!r} do not follow from the entries", hint=REMEDY)
        if row.spent != replay.spent.get(row.subject, Total()):
            raise LedgerError(f"what {row.subject!r} spent does not follow from the entries", hint=REMEDY)
    if len(rows) != len(replay.spent.keys() | replay.limits.keys()):
        raise LedgerError("subjects are missing", hint=REMEDY)
    tables.reservations(int(time.time()))


def fail(number: int, why: str) -> NoReturn:
    """Raise `LedgerError` for an entry."""
    raise LedgerError(f"entry {number} of the ledger does not hold: {why}", hint=REMEDY)


def parse_head(text: object) -> tuple[int, str]:
    """Return number and hash of a head, also of the whole line that check prints.

    Raises `InvalidParameter` for anything else.

    >>> parse_head(f"head 33:{'ab' * 32}") == parse_head(f"33:{'ab' * 32}") == (33, "ab" * 32)
    True
    """
    found = HEAD.fullmatch(text.strip()) if isinstance(text, str) else None
    if found is None:
        raise InvalidParameter(
            "head", None, "is no head of a ledger", hint="give NUMBER:SHA256, as check prints it"
        )
    return int(found[1]), found[2]
