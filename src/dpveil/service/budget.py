"""Paying for releases: the one place where the service meets the ledger."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from dpveil.core.certificate_text import parse_guarantee
from dpveil.core.numbers import show as shown
from dpveil.errors import AlreadyPaid, DPVeilError, UsageError
from dpveil.service.line import Call, one_by_one
from dpveil.service.problems import Gone

if TYPE_CHECKING:
    from dpveil.ledger import Ledger
    from dpveil.ledger.reservation import Reservation


class Budget:
    """Pays from a ledger, or without one from nothing: then every release is made. Called in one thread."""

    def __init__(self, ledger: Ledger | None) -> None:
        self.ledger = ledger

    def pay(
        self, subject: str | None, total: dict[str, Any] | None, owner: str, key: str
    ) -> Reservation | None:
        """Commit the cost of one release, durably, before anything is drawn; None without a ledger.

        `total` is the plan's guarantee as JSON, None for a copy. `owner` and `key` name the attempt: one that
        was paid before and whose release is not kept any more is `Gone`. What cannot be committed is not held
        either. Raises `BudgetExceeded`, other errors of the ledger, and `UsageError` where no subject is
        named, or nothing is protected.
        """
        if self.ledger is None:
            return None
        if subject is None:
            raise UsageError("the settings name no subject to pay", hint='add "subject", such as "album-7"')
        if total is None:
            raise UsageError("a copy without protection cannot be paid for", hint="leave if_none out")
        guarantee = parse_guarantee(total)
        try:
            reservation = self.ledger.reserve(subject, guarantee, f"{owner}\0{key}")
        except AlreadyPaid as error:
            raise Gone(
                "the release with this Idempotency-Key was made and paid for, and is not kept any more",
                hint="send another key for another release, which costs again",
            ) from error
        try:
            reservation.commit()
        except BaseException:
            with suppress(DPVeilError):  # then it expires
                reservation.cancel()
            raise
        return reservation

    def stored(self, payment: Reservation | None, sha256: str) -> None:
        """Tell the ledger which file was paid for, before anybody sees it."""
        if payment is not None:
            payment.stored(sha256)

    def paid(self, sha256: str) -> bool:
        """Whether the ledger knows who paid for a file; without a ledger nothing has to be paid."""
        return self.ledger is None or bool(self.ledger.paid_for(sha256))

    def together(self, calls: Sequence[Call]) -> None:
        """Run calls of these methods with one flush of the disk for all; if that fails, none was durable."""
        if self.ledger is None:
            one_by_one(calls)
            return
        try:
            with self.ledger.together():
                one_by_one(calls)
        except DPVeilError as error:
            for call in calls:
                call.error = call.error or error

    def show(self, subject: str | None) -> dict[str, Any] | None:
        """Return the account of a subject as `dpveil ledger show`, and its limits in `words`.

        None without a ledger or a subject. Raises errors of the ledger.
        """
        if self.ledger is None or subject is None:
            return None
        account = self.ledger.show(subject)
        used = (account.spent + account.reserved).cost
        limits = [f"limit {limit.in_words()}, left {shown(limit.left(used))}" for limit in account.limits]
        return {**account.to_json(), "words": "; ".join(limits) or "no limit of its own"}

    def close(self) -> None:
        """Close the ledger."""
        if self.ledger is not None:
            self.ledger.close()
