"""Subjects and entries of a ledger as the command line names them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dpveil.cli import say
from dpveil.errors import BudgetRefused, UnknownName, meant

if TYPE_CHECKING:
    from dpveil.ledger import Account, Ledger
    from dpveil.ledger.entries import Entry

Url = Annotated[str, typer.Option("--ledger", metavar="URL", help="The ledger, such as sqlite:///budget.db.")]


def place_of(url: str) -> str:
    """Return the URL of a ledger without a password, as it may be shown."""
    from dpveil.ledger.database import is_server, target_of

    return target_of(url)[1] if is_server(url) else say.still(url)


def account_of(ledger: Ledger, subject: str) -> Account:
    """Return the account of a subject; raises `UnknownName`, with a name that is like it, if there is none
    and no limit is on its path.
    """
    account = ledger.show(subject)
    if not account.known and not account.limited:
        hint = f"{_near(ledger, account.subject)}dpveil ledger subjects lists those of the ledger"
        raise UnknownName("subject", account.subject, (), hint=hint)
    return account


def check_limited(ledger: Ledger, subject: str) -> None:
    """Raise `BudgetRefused` if no limit is on the path of a subject, with a name that is like it."""
    if not ledger.show(subject).limited:
        hint = f"{_near(ledger, subject)}dpveil ledger limit sets one"
        raise BudgetRefused(f"{subject} has no limit, so nothing may be spent for it", hint=hint)


def _near(ledger: Ledger, subject: str) -> str:
    return meant(subject, ledger.subjects())


class Joined:
    """Which files the debits among these entries paid for, and which debit each file is of."""

    def __init__(self, entries: Iterable[Entry]) -> None:
        self._files: dict[tuple[str, int], list[str]] = {}
        self._debits: dict[tuple[str, int], int] = {}
        for entry in entries:
            if entry.kind == "debit":
                self._debits[entry.event.unit, entry.event.draw] = entry.number
            elif entry.kind == "stored":
                self._files.setdefault((entry.event.unit, entry.event.draw), []).append(entry.event.sha256)

    def of(self, entry: Entry) -> dict[str, Any]:
        """Return the SHA-256 of each known file of a debit as `files`, or the number of a file's `debit`."""
        if entry.kind == "debit":
            return {"files": self._files.get((entry.event.unit, entry.event.draw), [])}
        if entry.kind != "stored":
            return {}
        debit = self._debits.get((entry.event.unit, entry.event.draw))
        return {} if debit is None else {"debit": debit}

    def in_words(self, entry: Entry) -> str:
        """Return the same in words, after those of the entry itself."""
        told = self.of(entry)
        if "debit" in told:
            return f"  paid by entry {told['debit']}"
        return "".join(f"  {say.hash_in_short(sha256)}" for sha256 in told.get("files", ()))


def event_in_words(event: Any) -> str:
    """Return what an entry says."""
    from dpveil.ledger.account import amounts_in_words
    from dpveil.ledger.entries import Debit, LimitSet, Open, Stored

    if isinstance(event, Open):
        return f"opened {event.name}"
    if isinstance(event, LimitSet):
        return f"{event.subject}  {'removed' if event.removed else 'set'} limit {event.limit.in_words()}"
    if isinstance(event, Debit):
        others = "  other regions" * (event.part is not None and event.part.other_regions)
        amounts = amounts_in_words(event.cost)
        return f"{event.subject}  debit {amounts}  unit {event.unit[:12]} draw {event.draw}{others}"
    return f"{event.subject}  stored {event.sha256}" if isinstance(event, Stored) else ""
