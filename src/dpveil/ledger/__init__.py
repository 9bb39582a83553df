"""Budgets of subjects: what was promised about whom, kept through crashes and races (docs, "Ledger").

Its road: `Ledger.debit` → `limits` (is there room) → `transaction` (its rows, in a `database`) → `entries`
(one more in the hash chain). `check` computes all of it anew.
"""

from typing import TYPE_CHECKING

from dpveil.core.lazy import lazy

if TYPE_CHECKING:
    from dpveil.ledger.check import Checked
    from dpveil.ledger.ledger import Ledger, Reservation
    from dpveil.ledger.limits import Account, Limit, Paid

__all__ = ["Account", "Checked", "Ledger", "Limit", "Paid", "Reservation"]

__getattr__, __dir__ = lazy(
    __name__, {"check": "Checked", "ledger": "Ledger Reservation", "limits": "Account Limit Paid"}
)
