"""Paying for a clip: one debit for each draw, under a key that is new for each rendering, whoever goes on."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Protocol

from dpveil.core.guarantee import Guarantee
from dpveil.core.region import Covered
from dpveil.errors import InvalidParameter, RegionsDiffer
from dpveil.release.saving import Budget
from dpveil.release.saving import Payment as Debit
from dpveil.video.plan import Entry, VideoPlan


class Payer(Budget, Protocol):
    """What pays for clips, as `dpveil.ledger.Ledger`."""

    name: str

    def unfinished(self, subject: str, key: str | bytes) -> Debit | None:
        """Return the debit of this key, if there is one."""

    def find(self, subject: str, key: str | bytes) -> tuple[str, ...]:
        """Return the files of a key's newest debit that are noted."""

    def check_room(self, subject: str, guarantees: Iterable[Guarantee]) -> None:
        """Raise unless all of these would fit together."""

    def check_regions(self, covered: Covered) -> None:
        """Raise `RegionsDiffer` if earlier debits of this clip cover something else."""


@dataclass(frozen=True, kw_only=True)
class Payment:
    """Who pays for a clip, if anybody does."""

    ledger: Payer | None
    subject: str | None
    other_regions: bool

    def check(self, plan: VideoPlan) -> None:
        """Raise `RegionsDiffer` if the ledger would refuse a plan for earlier releases of its clip."""
        if self.ledger is None or self.other_regions:
            return
        with _of_clips():
            self.ledger.check_regions(plan.covered)

    @property
    def payer(self) -> list[str] | None:
        """The names of the ledger and of who pays; None if nobody does."""
        return None if self.ledger is None or self.subject is None else [self.ledger.name, self.subject]

    def due(self, plan: VideoPlan, nonce: str | None) -> list[Entry]:
        """Return what is not paid yet of a rendering with this nonce; everything if it is None."""
        return [one for one in plan.entries if nonce is None or self._debit(nonce, one.suffix) is None]

    def check_room(self, due: Sequence[Entry]) -> None:
        """Raise `BudgetRefused` unless all of this can be paid."""
        if self.ledger is not None and self.subject is not None:
            self.ledger.check_room(self.subject, [entry.guarantee for entry in due])

    def pay(self, plan: VideoPlan, nonce: str) -> None:
        """Debit every draw once, whatever process did so; raises `BudgetRefused` and `LedgerError`."""
        if self.ledger is None or self.subject is None:
            return
        due = self.due(plan, nonce)
        self.check_room(due)
        for entry in due:
            with _of_clips():
                self.ledger.debit(
                    self.subject,
                    entry.guarantee,
                    _unit(nonce, entry.suffix),
                    covered=entry.covered,
                    other_regions=self.other_regions,
                )

    def note(self, plan: VideoPlan, nonce: str, sha256: str) -> None:
        """Let the ledger know the file before it gets its name."""
        for entry in plan.entries if self.ledger is not None else ():
            debit = self._debit(nonce, entry.suffix)
            if debit is not None and sha256 not in self._files(nonce, entry.suffix):
                debit.stored(sha256)

    def has_paid(self, plan: VideoPlan, nonce: str) -> bool:
        """Whether any draw was debited."""
        return any(self._debit(nonce, entry.suffix) is not None for entry in plan.entries)

    def _debit(self, nonce: str, suffix: str) -> Debit | None:
        if self.ledger is None or self.subject is None:
            return None
        return self.ledger.unfinished(self.subject, _unit(nonce, suffix))

    def _files(self, nonce: str, suffix: str) -> tuple[str, ...]:
        if self.ledger is None or self.subject is None:
            return ()
        return self.ledger.find(self.subject, _unit(nonce, suffix))


def check_payer(ledger: Payer | None, subject: str | None, seed: int | None, *, other_regions: bool) -> None:
    """Raise `InvalidParameter` unless these arguments belong together."""
    if ledger is None:
        for name, given in {"subject": subject is not None, "other_regions": other_regions}.items():
            if given:
                raise InvalidParameter(name, None, "is given without a ledger", hint="give a ledger, too")
        return
    if subject is None:
        raise InvalidParameter("subject", None, "is missing", hint="name who pays, such as album-7")
    if seed is not None:
        problem = "is reproducible, and no budget pays for that"
        raise InvalidParameter("seed", seed, problem, hint="leave out the seed, or the ledger")


@contextmanager
def _of_clips() -> Iterator[None]:
    """Let errors of a ledger, which are about photos, be about clips."""
    try:
        yield
    except RegionsDiffer as error:
        error.rename("photo", "clip")
        raise


def _unit(nonce: str, suffix: str) -> str:
    """Return the key of a debit in a ledger."""
    return f"clip {nonce}/{suffix}"
