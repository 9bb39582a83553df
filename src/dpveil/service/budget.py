"""Paying for releases: the one place where the service meets the ledger."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from dpveil.core.certificate_text import parse_guarantee
from dpveil.core.covered import Covered
from dpveil.errors import AlreadyPaid, DPVeilError, RegionsDiffer, UsageError
from dpveil.service.problems import Gone, WorkerEnded

if TYPE_CHECKING:
    from dpveil.ledger import Ledger
    from dpveil.ledger.reservation import Reservation

SAME: Final = "replace the same regions as before; whoever keeps the ledger can allow others"


class Budget:
    """Pays from a ledger, or without one from nothing: then every release is made. Called in one thread."""

    def __init__(self, ledger: Ledger | None) -> None:
        self.ledger = ledger

    def pay(self, subject: str | None, planned: dict[str, Any], owner: str, key: str) -> Reservation | None:
        """Commit the cost of one release, durably, before anything is drawn; None without a ledger.

        `planned` has the plan's `total` as JSON, None for a copy, and what is `covered`. `owner` and `key`
        name the attempt: one that was paid before and whose release is not kept any more is `Gone`. What
        cannot be committed is not held either. Raises `BudgetExceeded`, other errors of the ledger,
        `RegionsDiffer`, to which there is no exception here, `WorkerEnded` for digests that are none, and
        `UsageError` where no subject is named, or nothing is protected.
        """
        if self.ledger is None:
            return None
        if subject is None:
            raise UsageError("the settings name no subject to pay", hint='add "subject", such as "album-7"')
        if planned["total"] is None:
            raise UsageError("a copy without protection cannot be paid for", hint="leave if_none out")
        guarantee, covered = parse_guarantee(planned["total"]), _covered(planned.get("covered"))
        try:
            return self._committed(
                self.ledger.reserve(subject, guarantee, f"{owner}\0{key}", covered=covered)
            )
        except RegionsDiffer as error:
            raise RegionsDiffer(error.message, hint=SAME) from error
        except AlreadyPaid as error:
            raise Gone(
                "the release with this Idempotency-Key was made and paid for, and is not kept any more",
                hint="send another key for another release, which costs again",
            ) from error

    def _committed(self, reservation: Reservation) -> Reservation:
        """Return a reservation once it is committed; one that cannot be is not held."""
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

    def show(self, subject: str | None) -> dict[str, Any] | None:
        """Return the account of a subject as `dpveil ledger show`, and its limits in `words`.

        None without a ledger or a subject. Raises errors of the ledger.
        """
        if self.ledger is None or subject is None:
            return None
        account = replace(self.ledger.show(subject), parents=())  # they may be of others
        return {**account.to_json(), "words": account.limits_in_words()}

    def close(self) -> None:
        """Close the ledger."""
        if self.ledger is not None:
            self.ledger.close()


def _covered(told: Any) -> Covered:
    """Return what a worker says is covered; raises `WorkerEnded`, for it may have been taken over."""
    try:
        return Covered.parse(told)
    except ValueError as error:
        raise WorkerEnded from error
