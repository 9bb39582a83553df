"""The ledger: budgets of subjects, reserved before a release and committed before its first bit is drawn."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Final

from dpveil.core.guarantee import Guarantee
from dpveil.core.parameters import check_count
from dpveil.core.region import CoverageDigests
from dpveil.core.strict_json import Hash, read
from dpveil.errors import InvalidParameter, LedgerError, ReservationLost, UsageError
from dpveil.io.folders import state_home
from dpveil.io.locking import in_use
from dpveil.io.names import show_path
from dpveil.ledger.amounts import Total
from dpveil.ledger.check import REMEDY, Checked, check, parse_head
from dpveil.ledger.database import Connection, database_of
from dpveil.ledger.entries import Debit, Entry, LimitSet, StoredFile, part_of, unit_of
from dpveil.ledger.limits import Account, Limit, Paid, check_subject, is_under, path_to
from dpveil.ledger.transaction import MOST_SECONDS, Balance, Reserved, Tables, entry, last_files

WIDTH: Final = 90
"""Bytes of the file: heads are written over one another, and one short write is never seen in part."""


@contextmanager
def _open_head(name: str, how: int = 0) -> Iterator[tuple[int, tuple[int, str] | None]]:
    """Hold the file of a ledger's newest head: its handle, and the number and hash in it, if any."""
    handle = os.open(state_home() / f"{name}.head", how | os.O_CLOEXEC, 0o600)
    try:
        with in_use(handle):
            kept = None
            with suppress(InvalidParameter, ValueError):  # empty, as after a crash when it was new
                kept = parse_head(os.read(handle, WIDTH).decode("ascii"))
            yield handle, kept
    finally:
        os.close(handle)


def read_head(name: str) -> tuple[int, str] | None:
    """Return number and hash of the head that is kept of a ledger, if any."""
    with suppress(OSError), _open_head(name) as (_, kept):
        return kept
    return None


def keep(name: str, number: int, head: str, *, back: bool = False) -> bool:
    """Keep the head of a ledger, unless a later one is kept and may not be put `back`.

    Return whether heads can be kept.
    """
    try:
        state_home().mkdir(mode=0o700, parents=True, exist_ok=True)
        with _open_head(name, os.O_RDWR | os.O_CREAT) as (handle, kept):
            if back or kept is None or kept[0] < number:
                os.lseek(handle, 0, os.SEEK_SET)
                os.write(handle, f"{number}:{head}".ljust(WIDTH).encode())
    except OSError:
        return False
    return True


SECONDS: Final = 600  # seconds after which a reservation expires that was never committed


class Ledger:
    """Budgets of subjects in a database, such as `Ledger("sqlite:///budget.db")`.

    Subjects are paths, such as studio/album-7, and a debit counts for all that lead to it. `create` makes a
    missing file, which `created` tells. An older copy is refused unless it is `restored` and to be checked.
    Threads may share one; so may processes that fork. Raises `UsageError` for other URLs, and `LedgerError`
    if the file is missing, damaged or no ledger. Source: docs, "Ledger".
    """

    def __init__(self, url: str, *, create: bool = False, restored: bool = False) -> None:
        self._database = database_of(url, _first_rows if create else None)
        self.created, self._restored = self._database.created, restored
        try:
            with self._read() as tables:
                self.name, self._secret = tables.identity()
            # Read before the state that it is looked for in: another process may be paying just now.
            head = None if restored else read_head(self.name)
            with self._read() as tables:
                if head is not None and tables.head_at(head[0]) != head[1]:
                    place = show_path(self.files[0]) if self.files else "the ledger"
                    lacks = f"it lacks entry {head[0]}, the last one you wrote"
                    hint = (
                        "dpveil ledger check --restored accepts a backup; then lower limits by what it forgot"
                    )
                    raise LedgerError(f"{place} is an older copy, or was changed: {lacks}", hint=hint)
        except BaseException:
            self.close()
            raise

    def __repr__(self) -> str:
        """Return the random name of the ledger."""
        return f"Ledger({self.name})"

    def __enter__(self) -> Ledger:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._database.close()

    @property
    def files(self) -> tuple[Path, ...]:
        """The files that nothing else in this process may open, not even to read them."""
        return self._database.files

    @contextmanager
    def _write(self) -> Iterator[Tables]:
        """Run a transaction, and keep the head once that is durable: an entry may be lost that is not."""
        with self._database.write() as connection:
            tables = Tables(connection)
            yield tables
            number, head, _ = tables.last_entry()
        keep(self.name, number, head)

    @contextmanager
    def _read(self) -> Iterator[Tables]:
        with self._database.read() as connection:
            yield Tables(connection)

    def reserve(
        self,
        subject: str,
        guarantee: Guarantee,
        key: str | bytes,
        *,
        again: bool = False,
        covered: CoverageDigests | None = None,
        other_regions: bool = False,
        seconds: int = SECONDS,
    ) -> Reservation:
        """Set budget aside for a release with this guarantee, if every limit on the subject's path has room.

        `key` names the work unit, such as an application's own number for it or the content itself; the
        ledger keeps an HMAC of it. If the unit's release was stored, raises `AlreadyPaid`, unless `again`
        asks for another draw. A reservation of the same unit that is not committed gives way, and any expires
        after `seconds`. `covered` says which photo it is of and what of it is covered, as `Plan.coverage`: if
        earlier debits of that photo, of any subject, are of other pixels, raises `RegionsDiffer`, unless
        `other_regions` accepts that their sum holds for what all of them cover. Raises `BudgetRefused`
        without any limit or total, `BudgetExceeded` if too little is left, `InvalidParameter` and
        `LedgerError`.
        """
        wanted = self._requested_debit(subject, guarantee, key, covered, other_regions)
        check_count(seconds, "seconds", high=MOST_SECONDS)
        name, now = os.urandom(16).hex(), int(time.time())
        with self._write() as tables:
            held = tables.others(wanted.subject, wanted.unit, now, again=again)
            tables.check_part(wanted.part)
            tables.check_limits(wanted.subject, wanted.cost, held)
            tables.reserve(Reserved(name, wanted.subject, wanted.unit, wanted.cost, now + seconds), now)
        return Reservation(self, name, wanted)

    def debit(
        self,
        subject: str,
        guarantee: Guarantee,
        key: str | bytes,
        *,
        again: bool = False,
        covered: CoverageDigests | None = None,
        other_regions: bool = False,
    ) -> Reservation:
        """Reserve and commit in one step, which takes half of the time; on return it is committed.

        Takes and raises what `reserve` does.
        """
        wanted, now = self._requested_debit(subject, guarantee, key, covered, other_regions), int(time.time())
        with self._write() as tables:
            held = tables.others(wanted.subject, wanted.unit, now, again=again)
            draw = tables.debit(wanted, held, now)
        return Reservation(self, "", wanted, draw)

    def set_limit(self, subject: str, limit: Limit) -> None:
        """Set a limit of a subject, in the place of one with the same kind and relation."""
        self._change(LimitSet(check_subject(subject), limit))

    def remove_limit(self, subject: str, limit: Limit) -> None:
        """Remove the limit with this one's kind and relation; raises `UsageError` if there is none."""
        self._change(LimitSet(check_subject(subject), limit, removed=True))

    def knows(self, subject: str, sha256: str) -> bool:
        """Whether this subject paid for a file with this SHA-256."""
        return any(paid.subject == check_subject(subject) for paid in self.paid_for(sha256))

    def paid_for(self, sha256: str) -> list[Paid]:
        """Return who paid for a file with this SHA-256; nobody if it is not a release of this ledger."""
        found = []
        with self._read() as tables:
            for stored in tables.of_file(sha256):
                if (debit := tables.debit_of(stored)) is not None:
                    event = debit.event
                    found.append(Paid(event.subject, event.draw, event.cost, debit.number))
        return found

    def find(self, subject: str, key: str | bytes) -> tuple[str, ...]:
        """Return the SHA-256 of every file of the newest stored release of this key, if any."""
        return last_files(self._of_key(subject, key))[1]

    def paid(self, subject: str, key: str | bytes) -> Paid | None:
        """Return how much the newest stored release of this key was paid for; None if there is none."""
        found = self._of_key(subject, key)
        draw, _ = last_files(found)
        for each in found:
            if isinstance(each.event, Debit) and each.event.draw == draw:
                return Paid(each.event.subject, draw, each.event.cost, each.number)
        return None

    def unfinished(self, subject: str, key: str | bytes) -> Reservation | None:
        """Return the newest debit of a key, if any: a killed run goes on with it and draws the same again."""
        for each in self._of_key(subject, key):
            if isinstance(each.event, Debit):
                return Reservation(self, "", each.event, each.event.draw)
        return None

    def _of_key(self, subject: str, key: str | bytes) -> list[Entry]:
        unit = unit_of(self._secret, check_subject(subject), key)
        with self._read() as tables:
            return tables.of_unit(unit)

    def show(self, subject: str) -> Account:
        """Return what a subject spent and reserved, its limits, and those above it."""
        name = check_subject(subject)
        with self._read() as tables:
            held = tables.reservations(int(time.time()))
            *above, own = (_account(row, held) for row in tables.path(name))
        return replace(own, parents=tuple(each for each in above if each.limits))

    def accounts(self, most: int | None = None) -> list[Account]:
        """Return what `show` returns of every subject, sorted, or of the first `most` of them."""
        with self._read() as tables:
            held = tables.reservations(int(time.time()))
            found = {row.subject: _account(row, held) for row in tables.balances()[:most]}
        above = {name: each for name, each in found.items() if each.limits}
        return [
            replace(own, parents=tuple(above[each] for each in path_to(name)[:-1] if each in above))
            for name, own in found.items()
        ]

    def check_room(self, subject: str, guarantees: Iterable[Guarantee]) -> None:
        """Raise as `reserve` does unless releases with all of these would fit; sets nothing aside."""
        name, cost = check_subject(subject), sum(map(Total.of, guarantees), Total())
        with self._read() as tables:
            tables.check_limits(name, cost, tables.reservations(int(time.time())))

    def check_regions(self, covered: CoverageDigests) -> None:
        """Raise `RegionsDiffer` if earlier debits of this photo, of any subject, are of other pixels."""
        with self._read() as tables:
            tables.check_part(part_of(self._secret, covered, False))

    def subjects(self) -> list[str]:
        with self._read() as tables:
            return [row.subject for row in tables.balances()]

    def head(self) -> str:
        """Return number and hash of the last entry: kept elsewhere, it tells `check` what was lost since."""
        with self._read() as tables:
            number, head, _ = tables.last_entry()
        return f"{number}:{head}"

    def history(self, subject: str | None = None) -> Iterator[Entry]:
        """Yield all entries in order, or those of a subject and of those below it."""
        name, after = None if subject is None else check_subject(subject), 0
        while True:
            with self._read() as tables:
                found = [entry(row) for row in tables.page(after)]
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
            if damage := self._database.damage(connection):
                raise LedgerError(f"the database is damaged: {show_path(damage)}", hint=REMEDY)
            found = check(Tables(connection), anchor)
        kept = keep(self.name, *parse_head(found.head), back=self._restored)
        return replace(found, kept=kept)

    def _change(self, event: LimitSet) -> None:
        with self._write() as tables:
            *_, row = tables.path(event.subject)
            kept = [each for each in row.limits if each.slot != event.limit.slot]
            if event.removed and len(kept) == len(row.limits):
                hint = "see its limits and their relations"
                raise UsageError(f"{event.subject} has no such limit", hint=hint)
            row.limits = kept if event.removed else [*kept, event.limit]
            tables.append(event, int(time.time()))
            tables.keep(row)

    def _requested_debit(
        self,
        subject: str,
        guarantee: Guarantee,
        key: str | bytes,
        covered: CoverageDigests | None,
        other_regions: bool,
    ) -> Debit:
        name, cost = check_subject(subject), Total.of(guarantee)
        part = part_of(self._secret, covered, other_regions)
        return Debit(name, unit_of(self._secret, name, key), 1, cost, part)


class Reservation:
    """Budget that is set aside for one release. Leaving its context without a commit cancels it."""

    def __init__(self, ledger: Ledger, name: str, wanted: Debit, draw: int | None = None) -> None:
        self._ledger, self._name, self._wanted = ledger, name, wanted
        self._known: set[str] = set()
        self.subject, self.draw = wanted.subject, draw

    def __repr__(self) -> str:
        """Return the subject and the state; a representation ends up in logs."""
        state = "not committed" if self.draw is None else f"draw {self.draw}"
        return f"Reservation({self.subject!r}, {state})"

    def commit(self) -> None:
        """Debit it for good, before the first bit is drawn; on return the debit survives a loss of power.

        Raises `ReservationLost` if it expired, was cancelled or replaced, `BudgetRefused` if a limit was
        lowered meanwhile or the photo released with other regions, and `LedgerError`; then nothing may be
        drawn. Does nothing if it is committed.
        """
        if self.draw is not None:
            return
        now = int(time.time())
        with self._ledger._write() as tables:
            held = tables.reservations(now)
            others = [each for each in held if each.id != self._name]
            if len(others) == len(held):
                problem = f"the reservation for {self.subject} expired, or another one took its place"
                raise ReservationLost(problem, hint="reserve it again")
            draw = tables.debit(self._wanted, others, now)
            tables.free(self._name)
        self.draw = draw

    def cancel(self) -> None:
        """Free it, unless it is committed: a debit is never refunded."""
        if self.draw is None:
            with self._ledger._write() as tables:
                tables.free(self._name)

    def stored(self, sha256: str) -> None:
        """Note the SHA-256, in hexadecimal, of a file of the release, before that file gets its name.

        Raises `UsageError` unless it is committed, and `LedgerError`.
        """
        if self.draw is None:
            raise UsageError("the reservation is not committed", hint="commit it before anything is drawn")
        read(Hash, sha256, "sha256")
        if sha256 not in self._known:
            with self._ledger._write() as tables:
                file = StoredFile(self.subject, self._wanted.unit, self.draw, sha256)
                tables.append(file, int(time.time()))
            self._known.add(sha256)

    def __enter__(self) -> Reservation:
        return self

    def __exit__(self, *_: object) -> None:
        self.cancel()


def _account(row: Balance, held: Iterable[Reserved]) -> Account:
    below = (each.cost for each in held if is_under(each.subject, row.subject))
    return Account(row.subject, row.spent, sum(below, Total()), tuple(row.limits), known=not row.new)


def _first_rows(connection: Connection) -> None:
    Tables(connection).open(os.urandom(16).hex(), os.urandom(32).hex(), int(time.time()))
