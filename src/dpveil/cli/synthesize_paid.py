"""How `dpveil synthesize` is paid: once for the whole set, which the ledger knows before anybody sees it."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from dpveil.cli import say
from dpveil.cli.paying import check_payer
from dpveil.cli.stopping import Interrupted
from dpveil.errors import DPVeilError, UsageError

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
        from dpveil.cli.verify_set import is_set
        from dpveil.synthesis.saving import check_new

        if self._key is None or not is_set(out):
            check_new(out)

    def check(self, plan: Plan, out: Path) -> SetCertificate | None:
        """Raise any error of paying for a set, before photos are read; return the one of this key at `out`.

        Raises `DPVeilError` if that is not there, `BudgetRefused`, `LedgerError` and `OutputError`.
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
            if found:
                return _there(found, plan, out)
            check_new(out)
            self._opened.check_room(self._subject, [plan.guarantee])
        finally:
            self._opened.close()  # photos are read next, and no file of a ledger may be among them
        return None

    @contextmanager
    def paying(self, plan: Plan, out: Path) -> Iterator[Reservation | None]:
        """Debit the whole set before anything is drawn, if there is a ledger, and hold it open.

        What is paid is written to `out` before Ctrl-C ends the command.
        """
        if self._opened is None:
            yield None
            return
        from dpveil.batch.interrupts import uninterrupted

        try:
            with uninterrupted():
                key = secrets.token_bytes(16) if self._key is None else self._key
                paid = self._opened.debit(self._subject, plan.guarantee, key)
                say.note(self._opened.show(self._subject).in_words())
                yield paid
        except KeyboardInterrupt as error:
            if error.__context__ is not None:  # what failed is to be told
                raise error.__context__ from None
            raise Interrupted("interrupted", hint=f"the set was paid, and {out} is complete") from error
        finally:
            self._opened.close()


def _there(found: tuple[str, ...], plan: Plan, out: Path) -> SetCertificate:
    """Return the certificate of the set at `out` if it is the paid one, intact, and with these settings."""
    from dpveil.cli.ledger_check import digest_of
    from dpveil.cli.verify_set import is_set
    from dpveil.io.names import shown
    from dpveil.io.refused import Refused
    from dpveil.synthesis.saving import verify

    with suppress(Refused):
        if is_set(out) and digest_of(out) in found:
            made = verify(out)
            stated = made.certificate
            if made.consistent and stated is not None and stated.plan.parameters() == plan.parameters():
                return stated
    raise DPVeilError(
        f"a set was paid and written for this key already, with SHA-256 {found[-1]} of its certificate, and"
        f" {shown(out)} is not that set, or not intact, or of other settings",
        hint="use that set, which costs nothing, or choose another --key, for another set that is paid",
    )
