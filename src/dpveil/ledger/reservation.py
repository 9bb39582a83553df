"""A reservation: budget that is set aside, and then committed or cancelled."""

from __future__ import annotations

from types import TracebackType
from typing import TYPE_CHECKING

from dpveil.errors import InvalidParameter, UsageError
from dpveil.ledger.entries import HASH, Part, Stored

if TYPE_CHECKING:
    from dpveil.ledger.book import Ledger


class Reservation:
    """Budget that is set aside for one release. Leaving its context without a commit cancels it."""

    def __init__(self, ledger: Ledger, name: str, subject: str, unit: str, part: Part | None) -> None:
        self._ledger, self._name, self._unit, self._part = ledger, name, unit, part
        self._known: set[str] = set()
        self.subject = subject
        self.draw: int | None = None

    def __repr__(self) -> str:
        """Return the subject and the state; a representation ends up in logs."""
        return (
            f"Reservation({self.subject!r}, {'not committed' if self.draw is None else f'draw {self.draw}'})"
        )

    def commit(self) -> None:
        """Debit it for good, before the first bit is drawn; on return the debit survives a loss of power.

        Raises `ReservationLost` if it expired, was cancelled or replaced, `BudgetRefused` if a limit was
        lowered meanwhile or the photo released with other regions, and `LedgerError`; then nothing may be
        drawn. Does nothing if it is committed.
        """
        if self.draw is None:
            self.draw = self._ledger._commit(self._name, self.subject, self._unit, self._part)

    def cancel(self) -> None:
        """Free it, unless it is committed: a debit is never refunded."""
        if self.draw is None:
            self._ledger._cancel(self._name)

    def stored(self, sha256: str) -> None:
        """Note the SHA-256, in hexadecimal, of a file of the release, before that file gets its name.

        Raises `UsageError` unless it is committed, and `LedgerError`.
        """
        if self.draw is None:
            raise UsageError("the reservation is not committed", hint="commit it before anything is drawn")
        given: object = sha256
        if not isinstance(given, str) or not HASH.fullmatch(given):
            raise InvalidParameter(
                "sha256", None, "is no SHA-256", hint="give 64 lower-case hexadecimal digits"
            )
        if sha256 not in self._known:
            self._ledger._append(Stored(self.subject, self._unit, self.draw, sha256))
            self._known.add(sha256)

    def __enter__(self) -> Reservation:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.cancel()
