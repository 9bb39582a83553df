"""The ledger: budgets of subjects, reserved before a release and committed before its first bit is drawn."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import islice
from pathlib import Path
from types import TracebackType
from typing import Final

from dpveil.core.covered import Covered
from dpveil.core.guarantee import Guarantee
from dpveil.errors import InvalidParameter, ReservationLost, UsageError
from dpveil.io.names import shown
from dpveil.ledger import databases, entries, kept_head, rules, store
from dpveil.ledger.account import Account, Paid
from dpveil.ledger.amounts import Total
from dpveil.ledger.check import Checked, check, parse_head
from dpveil.ledger.entries import Debit, Entry, LimitSet, Open, Part, Stored
from dpveil.ledger.limits import Limit
from dpveil.ledger.reservation import Reservation
from dpveil.ledger.store import MOST_SECONDS, Balance, Connection, Reserved
from dpveil.ledger.subjects import check_subject, is_under, path_to

SECONDS: Final = 600
"""Seconds after which a reservation expires that was never committed."""


class Ledger:
    """Budgets of subjects in a database, such as `Ledger("sqlite:///budget.db")`.

    Subjects are paths, such as studio/album-7, and a debit counts for all that lead to it. `create` makes a
    missing file, which `created` tells. An older copy is refused unless it is `restored` and to be checked.
    Threads may share one; so may processes that fork. Raises
    `UsageError` for other URLs, and `LedgerError` if the file is missing, damaged or no ledger. Source: docs,
    "Ledger".
    """

    def __init__(self, url: str, *, create: bool = False, restored: bool = False) -> None:
        self._database, self.created = databases.opened(url, _first_rows if create else None)
        self._restored, self._batch = restored, _Batch()
        try:
            with self._database.read() as connection:
                self.name, self._secret = store.identity(connection)
            # Read before the state that it is looked for in: another process may be paying just now.
            head = None if restored else kept_head.kept(self.name)
            with self._database.read() as connection:
                kept_head.check_newest(connection, head, shown(self.files[0]) if self.files else "the ledger")
        except BaseException:
            self.close()
            raise

    def __repr__(self) -> str:
        """Return the random name of the ledger."""
        return f"Ledger({self.name})"

    def __enter__(self) -> Ledger:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close its file; using it again opens it again."""
        self._database.close()

    @property
    def files(self) -> tuple[Path, ...]:
        """The files that nothing else in this process may open, not even to read them."""
        return self._database.files

    @contextmanager
    def together(self) -> Iterator[None]:
        """Let commits of this thread be durable only at the end of the context: one flush does for all.

        Nothing that they pay for may be drawn within. Raises `LedgerError` at the end if the flush fails.
        """
        outer, self._batch.open = self._batch.open, True
        try:
            with self._database.together():
                yield
        except BaseException:
            self._batch.newest = None
            raise
        finally:
            self._batch.open = outer
        if self._batch.newest is not None:
            self._keep(self._batch.newest)

    def reserve(
        self,
        subject: str,
        guarantee: Guarantee,
        key: str | bytes,
        *,
        again: bool = False,
        covered: Covered | None = None,
        other_regions: bool = False,
        seconds: int = SECONDS,
    ) -> Reservation:
        """Set budget aside for a release with this guarantee, if every limit on the subject's path has room.

        `key` names the work unit, such as an application's own number for it or the content itself; the
        ledger keeps an HMAC of it. If the unit's release was stored, raises `AlreadyPaid`, unless `again`
        asks for another draw. A reservation of the same unit that is not committed gives way, and any expires
        after `seconds`. `covered` says which photo it is of and what of it is covered, as `Plan.covered`: if
        earlier debits of that photo, of any subject, are of other pixels, raises `RegionsDiffer`, unless
        `other_regions` accepts that their sum holds for what all of them cover. Raises `BudgetRefused`
        without any limit or total, `BudgetExceeded` if too little is left, `InvalidParameter` and
        `LedgerError`.
        """
        name, cost = check_subject(subject), rules.priced(guarantee)
        part = rules.part_of(self._secret, covered, other_regions)
        unit = entries.unit_of(self._secret, name, rules.key_bytes(key))
        given: object = seconds
        if isinstance(given, bool) or not isinstance(given, int) or not 1 <= given <= MOST_SECONDS:
            raise InvalidParameter("seconds", None, f"is not in 1..{MOST_SECONDS}", hint=f"such as {SECONDS}")
        identity, now = os.urandom(16).hex(), int(time.time())
        with self._database.write(durable=False, reads=rules.reads(name, unit, part)) as connection:
            held = rules.others(connection, name, unit, now, again=again)
            rules.check_part(connection, part)
            rules.check_limits(connection, name, cost, held, now)
            store.reserve(connection, Reserved(identity, name, unit, cost, now + seconds))
        return Reservation(self, identity, name, unit, part)

    def debit(
        self,
        subject: str,
        guarantee: Guarantee,
        key: str | bytes,
        *,
        again: bool = False,
        covered: Covered | None = None,
        other_regions: bool = False,
    ) -> Reservation:
        """Reserve and commit in one step, which takes less than half of the time; on return it is committed.

        Takes and raises what `reserve` does.
        """
        name, cost = check_subject(subject), rules.priced(guarantee)
        part = rules.part_of(self._secret, covered, other_regions)
        unit, now = entries.unit_of(self._secret, name, rules.key_bytes(key)), int(time.time())
        with self._database.write(durable=True, reads=rules.reads(name, unit, part)) as connection:
            held = rules.others(connection, name, unit, now, again=again)
            draw, entry = rules.debited(connection, Debit(name, unit, 1, cost, part), held, now)
        self._keep(entry)
        return Reservation(self, "", name, unit, part, draw)

    def set_limit(self, subject: str, limit: Limit) -> None:
        """Set a limit of a subject, in the place of one with the same kind and relation."""
        self._change(LimitSet(check_subject(subject), limit))

    def remove_limit(self, subject: str, limit: Limit) -> None:
        """Remove the limit with this one's kind and relation; raises `UsageError` if there is none."""
        self._change(LimitSet(check_subject(subject), limit, removed=True))

    def knows(self, subject: str, sha256: str) -> bool:
        """Whether this subject paid for a file with this SHA-256."""
        name = check_subject(subject)
        return any(paid.subject == name for paid in self.paid_for(sha256))

    def paid_for(self, sha256: str) -> list[Paid]:
        """Return who paid for a file with this SHA-256; nobody if it is not a release of this ledger."""
        found = []
        with self._database.read() as connection:
            for stored in store.of_file(connection, sha256):
                if (debit := store.debit_of(connection, stored)) is not None:
                    entry, event = debit
                    found.append(Paid(event.subject, event.draw, event.cost, entry.number))
        return found

    def find(self, subject: str, key: str | bytes) -> tuple[str, ...]:
        """Return the SHA-256 of every file of the newest stored release of this key, if any."""
        name = check_subject(subject)
        with self._database.read() as connection:
            unit = entries.unit_of(self._secret, name, rules.key_bytes(key))
            return rules.last_files(store.of_unit(connection, unit))[1]

    def paid(self, subject: str, key: str | bytes) -> Paid | None:
        """Return how much the newest stored release of this key was paid for; None if there is none."""
        name = check_subject(subject)
        with self._database.read() as connection:
            found = store.of_unit(connection, entries.unit_of(self._secret, name, rules.key_bytes(key)))
        draw, _ = rules.last_files(found)
        for entry in found:
            if isinstance(entry.event, Debit) and entry.event.draw == draw:
                return Paid(name, draw, entry.event.cost, entry.number)
        return None

    def unfinished(self, subject: str, key: str | bytes) -> Reservation | None:
        """Return the newest debit of a key, if any: a killed run goes on with it and draws the same again."""
        name = check_subject(subject)
        unit = entries.unit_of(self._secret, name, rules.key_bytes(key))
        with self._database.read() as connection:
            draw = rules.last_draw(store.of_unit(connection, unit))
        return Reservation(self, "", name, unit, None, draw) if draw else None

    def show(self, subject: str) -> Account:
        """Return what a subject spent and reserved, its limits, and those above it."""
        name = check_subject(subject)
        with self._database.read() as connection:
            held = store.reserved(connection, int(time.time()))
            rows = [store.balance(connection, each) for each in path_to(name)]
        *above, own = (_account(row, held) for row in rows)
        return replace(own, parents=tuple(each for each in above if each.limits))

    def accounts(self, most: int | None = None) -> list[Account]:
        """Return what `show` returns of every subject, sorted, or of the first `most` of them."""
        with self._database.read() as connection:
            held = store.reserved(connection, int(time.time()))
            rows = islice(store.balances(connection), most)
            found = {row.subject: _account(row, held) for row in rows}
        above = {name: each for name, each in found.items() if each.limits}
        return [
            replace(own, parents=tuple(above[each] for each in path_to(name)[:-1] if each in above))
            for name, own in found.items()
        ]

    def check_room(self, subject: str, guarantees: Iterable[Guarantee]) -> None:
        """Raise as `reserve` does unless releases with all of these would fit; sets nothing aside."""
        name, cost = check_subject(subject), sum(map(rules.priced, guarantees), Total())
        with self._database.read() as connection:
            now = int(time.time())
            rules.check_limits(connection, name, cost, store.reserved(connection, now), now)

    def check_regions(self, covered: Covered) -> None:
        """Raise `RegionsDiffer` if earlier debits of this photo, of any subject, are of other pixels."""
        part = rules.part_of(self._secret, covered, False)
        with self._database.read() as connection:
            rules.check_part(connection, part)

    def subjects(self) -> list[str]:
        """Return all subjects, sorted."""
        with self._database.read() as connection:
            return [row.subject for row in store.balances(connection)]

    def head(self) -> str:
        """Return number and hash of the last entry: kept elsewhere, it tells `check` what was lost since."""
        with self._database.read() as connection:
            number, head, _ = store.last(connection)
            return f"{number}:{head}"

    def history(self, subject: str | None = None) -> Iterator[Entry]:
        """Yield all entries in order, or those of a subject and of those below it."""
        name, after = None if subject is None else check_subject(subject), 0
        while True:
            with self._database.read() as connection:
                page = store.page(connection, after)
            found = [store.entry((number, head, text)) for number, head, _, _, text in page]
            yield from (e for e in found if name is None or is_under(getattr(e.event, "subject", ""), name))
            if not found:
                return
            after = found[-1].number

    def check(self, head: str | None = None) -> Checked:
        """Recompute everything from the entries alone, in time linear in their number.

        `head` is what `head` returned earlier: the entries up to it have to be the same. Raises
        `LedgerError`, which names the first entry that does not fit, and `InvalidParameter` for another text.
        """
        anchor = None if head is None else parse_head(head)
        with self._database.read() as connection:
            self._database.examine(connection)
            found = check(connection, anchor)
        kept = kept_head.keep(self.name, *parse_head(found.head), back=self._restored)
        return replace(found, kept=kept)

    def _change(self, event: LimitSet) -> None:
        with self._database.write(durable=True) as connection:
            row = store.balance(connection, event.subject)
            kept = [each for each in row.limits if each.slot != event.limit.slot]
            if event.removed and len(kept) == len(row.limits):
                raise UsageError(
                    f"{event.subject} has no such limit", hint="see its limits and their relations"
                )
            row.limits = kept if event.removed else [*kept, event.limit]
            entry = store.append(connection, event, int(time.time()))
            store.keep(connection, row)
        self._keep(entry)

    def _commit(self, identity: str, subject: str, unit: str, part: Part | None) -> int:
        now = int(time.time())
        with self._database.write(durable=True, reads=rules.reads(subject, unit, part)) as connection:
            held = store.held(connection, now)
            mine = [each for each in held if each.id == identity]
            if not mine or (mine[0].subject, mine[0].unit) != (subject, unit):
                raise ReservationLost(
                    f"the reservation for {subject} expired, or another one took its place",
                    hint="reserve it again",
                )
            held.remove(mine[0])
            draw, entry = rules.debited(connection, Debit(subject, unit, 1, mine[0].cost, part), held, now)
            store.run(connection, "free", id=identity)
        self._keep(entry)
        return draw

    def _cancel(self, identity: str) -> None:
        with self._database.write(durable=False) as connection:
            store.run(connection, "free", id=identity)

    def _append(self, event: Stored) -> None:
        with self._database.write(durable=True) as connection:
            entry = store.append(connection, event, int(time.time()))
        self._keep(entry)

    def _keep(self, entry: Entry) -> None:
        """Keep the head of an entry once it is durable: one that is not may be lost, and its head not."""
        if self._batch.open:
            self._batch.newest = entry
        else:
            self._batch.newest = None
            kept_head.keep(self.name, entry.number, entry.head)


class _Batch(threading.local):
    """Whether this thread's commits are flushed later, and the last of them."""

    open = False
    newest: Entry | None = None


def _account(row: Balance, held: Iterable[Reserved]) -> Account:
    """Return the account of a subject's row, with the reservations of it and those below it."""
    below = (each.cost for each in held if is_under(each.subject, row.subject))
    return Account(row.subject, row.spent, sum(below, Total()), tuple(row.limits), known=not row.new)


def _first_rows(connection: Connection) -> None:
    name, secret = os.urandom(16).hex(), os.urandom(32).hex()
    insert = f"INSERT INTO ledger (name, secret) VALUES ('{name}', '{secret}')"  # noqa: S608  both are hexadecimal
    connection.execute(insert)
    store.append(connection, Open(name, entries.hashed(secret)), int(time.time()))
