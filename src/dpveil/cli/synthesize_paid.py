"""How `dpveil synthesize` is paid: once for the whole set, which the ledger knows before anybody sees it."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from dpveil.cli import say
from dpveil.cli.paying import check_payer, tell_cost
from dpveil.cli.stopping import Interrupted
from dpveil.core.guarantee import counted
from dpveil.errors import BudgetExceeded, BudgetRefused, DPVeilError, UsageError

if TYPE_CHECKING:
    from dpveil.ledger import Ledger, Reservation
    from dpveil.synthesis import Plan
    from dpveil.synthesis.certificate import SetCertificate


class Payer:
    """Who pays for a set from which ledger, if one is named; with a `key`, a retry finds the set.

    Raises `UsageError` for options that do not belong together.
    """

    def __init__(self, ledger: str | None, subject: str | None, key: str | None, seed: int | None) -> None:
        check_payer(ledger, subject, seed)
        if key is not None and (ledger is None or not key):
            raise UsageError("--key needs --ledger and a name", hint="give all of them, or leave out --key")
        self._url, self._subject, self._key = ledger, subject or "", key
        self._opened: Ledger | None = None

    def check_new(self, out: Path) -> None:
        """Raise `OutputError` unless `out` is free for a new set, or may be the set of an earlier run."""
        from dpveil.synthesis.saving import check_new, is_set

        if self._key is None or not is_set(out):
            check_new(out)

    def check(self, plan: Plan, out: Path, *, dry: bool = False) -> SetCertificate | None:
        """Raise any error of paying for a set, before photos are read; return the one of this key at `out`.

        Says what the set will cost, if it has to be paid; in a `dry` run also if that is more than is left.
        Raises `DPVeilError` if the set of this key is not there, `BudgetRefused`, `LedgerError` and
        `OutputError`.
        """
        if self._url is None:
            return None
        from dpveil.cli.ledger_words import check_limited
        from dpveil.ledger import Ledger
        from dpveil.synthesis.saving import check_new

        self._opened = Ledger(self._url)
        try:
            check_limited(self._opened, self._subject)
            found = () if self._key is None else self._opened.find(self._subject, self._key)
            if not found:
                check_new(out)
                self._check_price(self._opened, plan, dry=dry)
        finally:
            self._opened.close()  # photos are read next, and no file of a ledger may be among them
        return _there(found, plan, out) if found else None

    def _check_price(self, ledger: Ledger, plan: Plan, *, dry: bool) -> None:
        """Say what a set will cost; raise `BudgetRefused` if that is more than is left, and then say it only
        in a `dry` run.
        """
        price = f"a set of {counted(plan.pictures, 'picture')}", [plan.guarantee], ledger, self._subject
        if dry:
            tell_cost(*price)
        try:
            ledger.check_room(self._subject, [plan.guarantee])
        except BudgetExceeded as error:
            raise _too_dear(error) from error
        if not dry:
            tell_cost(*price)

    @contextmanager
    def paying(self, plan: Plan, out: Path) -> Iterator[Reservation | None]:
        """Debit the whole set before anything is drawn, if there is a ledger, and hold it open.

        What is paid is written to `out` before Ctrl-C ends the command.
        """
        if self._opened is None:
            yield None
            return
        from dpveil.batch.interrupts import uninterrupted

        paid = None
        try:
            with uninterrupted():
                key = secrets.token_bytes(16) if self._key is None else self._key
                paid = self._opened.debit(self._subject, plan.guarantee, key)
                say.note(self._opened.show(self._subject).in_words())
                yield paid
        except KeyboardInterrupt as error:
            if error.__context__ is not None:  # what failed is to be told
                raise error.__context__ from None
            if paid is None:  # it came before signals were held
                raise
            raise Interrupted("interrupted", hint=f"the set was paid, and {out} is complete") from error
        finally:
            self._opened.close()


def _too_dear(error: BudgetExceeded) -> BudgetRefused:
    """Return the error for a set, with advice in terms of its options."""
    more = "raise its limit: nothing comes back with time"
    less = "" if str(error.left) == "0" else f"choose --{error.unit} {error.left} or less, or "
    problem = f"{error.subject} has {error.unit} {error.left} left, and this set costs {error.asked}"
    return BudgetRefused(problem, hint=f"{less}{more}")


def _there(found: tuple[str, ...], plan: Plan, out: Path) -> SetCertificate:
    """Return the certificate of the set at `out` if it is the paid one, intact, and with these settings.

    Raises `DPVeilError` for any other, which says where the paid set is, or how to know it.
    """
    from dpveil.io.names import quoted, shown
    from dpveil.synthesis.saving import read_set

    if not _is_paid(out, found):
        raise _elsewhere(found, out)
    (made, problems), own = read_set(out), plan.parameters()
    problem = f"{shown(out)} is the set that was paid for this key, but"
    if made is None or problems:
        hint = (
            "get an intact copy of it, which costs nothing, or choose another --key, for a set that is paid"
        )
        raise DPVeilError(f"{problem} {quoted(problems[0])}", hint=hint)
    stated = made.plan.parameters()
    if other := [_setting(name, stated[name]) for name in own if stated[name] != own[name]]:
        hint = "ask for these settings, or choose another --key and another --out, for a set that is paid"
        raise DPVeilError(f"{problem} it was made with other settings: {', '.join(other)}", hint=hint)
    return made


def _setting(name: str, value: object) -> str:
    return f"{name} {'by default' if value is None else value}"


def _elsewhere(found: tuple[str, ...], out: Path) -> DPVeilError:
    """Return the error for a retry with another folder than that of the paid set."""
    from dpveil.io.names import quoted, shown

    problem = "the set of this --key was paid and written already"
    if there := next((quoted(shown(place)) for place in _beside(out) if _is_paid(place, found)), ""):
        hint = f"use that one, which costs nothing (--out {there}); another --key is another set, and is paid"
        return DPVeilError(f"{problem}: it is {there}, and not {shown(out)}", hint=hint)
    known = f"dpveil verify says {say.hash_in_short(found[-1])} of its folder"
    hint = (
        f"{known}: use that one, which costs nothing; if it is lost, another --key makes and pays another set"
    )
    return DPVeilError(f"{problem}, and {shown(out)} is not that set", hint=hint)


def _beside(out: Path) -> list[Path]:
    """Return what lies beside a folder, sorted; nothing if that cannot be read."""
    with suppress(OSError):
        return sorted(place for place in out.parent.iterdir() if place != out)
    return []


def _is_paid(place: Path, found: tuple[str, ...]) -> bool:
    """Whether a set with one of these hashes is at a place."""
    from dpveil.cli.ledger_check import digest_of
    from dpveil.io.refused import Refused
    from dpveil.synthesis.saving import is_set

    with suppress(Refused):
        return is_set(place) and digest_of(place) in found
    return False
