"""Budgets of subjects: what was promised about whom, kept through crashes and races (docs, "Ledger")."""

from typing import TYPE_CHECKING

from dpveil.core.lazy import lazy

if TYPE_CHECKING:
    from dpveil.ledger.account import Account, Paid
    from dpveil.ledger.book import Ledger
    from dpveil.ledger.check import Checked
    from dpveil.ledger.limits import Limit
    from dpveil.ledger.reservation import Reservation

__all__ = ["Account", "Checked", "Ledger", "Limit", "Paid", "Reservation"]

__getattr__, __dir__ = lazy(
    __name__,
    {},
    Account="account",
    Checked="check",
    Ledger="book",
    Limit="limits",
    Paid="account",
    Reservation="reservation",
)
