"""What only the process of a run does for its workers: paying, noting files, and signing."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING, Any, Final

from dpveil.batch.away import deliver, same
from dpveil.batch.report import RELEASED, Entry, Report
from dpveil.batch.task import Task
from dpveil.core.certificate import Certificate
from dpveil.core.covered import Covered
from dpveil.errors import DPVeilError
from dpveil.release.payment import Payment
from dpveil.release.saving import tidy

if TYPE_CHECKING:
    from dpveil.batch.run import Run

DIED: Final = "the process that released it ended: it was killed, out of memory, or crashed on the photo"


@dataclass
class _Paid:
    """A payment for a photo, and the SHA-256 of its file once the ledger knows it."""

    task: Task
    payment: Payment
    sha256: str = ""


class Owner:
    """The owner of a run's ledger and keys. Several threads may call it, each for another photo."""

    def __init__(self, run: Run) -> None:
        self.run = run
        self._numbers, self._payments = count(), dict[int, _Paid]()

    def debit(self, task: Task, *given: Any, **more: Any) -> int:
        """Debit the price of a photo, as `Budget.debit`; return the number of the payment.

        From here on the photo is paid for, also if its worker died while it waited.
        """
        ledger: Any = self.run.choices.ledger
        number, payment = next(self._numbers), ledger.debit(*given, **more)
        self.run.paid.add(task.output)
        self._payments[number] = _Paid(task, payment)
        return number

    def stored(self, task: Task, number: int, sha256: str) -> None:
        """Let the ledger know the file of a release."""
        paid = self._payments[number]
        paid.payment.stored(sha256)
        paid.sha256 = sha256

    def knows(self, task: Task, subject: str, sha256: str) -> bool:
        """Whether a subject paid for a file from the ledger."""
        ledger: Any = self.run.choices.ledger
        return bool(ledger.knows(subject, sha256))

    def check_regions(self, task: Task, covered: Covered) -> None:
        """Raise `RegionsDiffer` if the photo was released with other regions before."""
        ledger: Any = self.run.choices.ledger
        ledger.check_regions(covered)

    def sign(self, task: Task, data: bytes) -> bytes:
        """Return the signature of a certificate by the run's key."""
        key: Any = self.run.choices.sign
        return bytes(key.private.sign(data))

    def mark(self, task: Task, data: bytes) -> bytes:
        """Return the signature of a manifest."""
        marker: Any = self.run.choices.mark
        return bytes(marker.sign(data))

    def forget(self, task: Task) -> None:
        """Let go of the payments of a photo that is done."""
        for number in [number for number, paid in [*self._payments.items()] if paid.task is task]:
            del self._payments[number]

    def died(self, task: Task, *, drawn: bool) -> Entry | None:
        """Clean up after a worker that died of, or beside, a photo; return its entry if nothing is to be
        drawn for it any more: it was written, or paid for.
        """
        tidy(task.output.parent)
        sha256 = ""
        for paid in [paid for paid in [*self._payments.values()] if paid.task is task]:
            sha256 = paid.sha256 or sha256
        self.forget(task)
        entry = self._written(task, sha256) if drawn else None
        return self.lost(task) if entry is None and task.output in self.run.paid else entry

    def _written(self, task: Task, sha256: str) -> Entry | None:
        """Return the entry of a photo that was written before its worker died, if it was."""
        certificate: Certificate | None = None
        with suppress(DPVeilError):
            here = task.remote is not None or os.path.lexists(task.output)
            certificate = same(task, self.run.choices) if here else None
        if certificate is None or certificate.output is None:
            return None
        if self.run.choices.force and certificate.output.sha256 != sha256:
            return None  # it may be an earlier one
        with suppress(DPVeilError):  # else it waits for the next run
            deliver(task, self.run.choices)
        report = Report(self.run.report.options)
        report.done(RELEASED, task, task.output, certificate)
        return report.entries.pop()

    def lost(self, task: Task) -> Entry:
        """Return the entry of a photo of which workers died."""
        report, hint = Report(self.run.report.options), "try it alone, with {jobs}"
        if task.output in self.run.paid:
            hint = "it was paid for, and releasing it again costs again"
        report.fail(task, DPVeilError(DIED, hint=hint, arguments={"jobs": "jobs=1"}))
        return report.entries.pop()


CALLS: Final[Mapping[str, Callable[..., object]]] = {
    "debit": Owner.debit,
    "stored": Owner.stored,
    "knows": Owner.knows,
    "check_regions": Owner.check_regions,
    "sign": Owner.sign,
    "mark": Owner.mark,
}
"""What a worker can call its owner for, about the photo that it draws or writes."""
