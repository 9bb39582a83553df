"""Who is offered to pay: subjects of the caller that can."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final

from dpveil.ledger.account import Account
from dpveil.ledger.amounts import Cost, Total
from dpveil.service.keys import Caller
from dpveil.service.refusals import known_to, limits_of, refused

if TYPE_CHECKING:
    from dpveil.ledger import Ledger

MOST_LOOKED_AT: Final = 1000
"""Most subjects that are looked at."""
MOST_NAMED: Final = 200
"""Most subjects that are named to choose from."""
MOST_PRICES: Final = 8
"""Most different prices that decide on who is named."""
LEAST: Final = Total(Cost(epsilon=1, squares=1))
"""The least that a release costs which is not free."""
NOBODY: Final = "There is no budget to pay from: {}."
SETS: Final = "dpveil ledger limit sets one"
ASK: Final = "whoever runs the service sets limits"
SPENT: Final = "Nothing is left to spend in any budget. What costs nothing can still be released."
DEAR: Final = "No budget can pay for this: too little is left. Keep less of each face, or nothing."


def payers(ledger: Ledger, caller: Caller, asked: Sequence[Total]) -> tuple[list[str], str]:
    """Return the subjects that can pay for one of the `asked` releases, and if there is none, why.

    If no release is asked about, these are the subjects that have anything left. What cannot pay is a subject
    without a limit on its path, or one that a limit refuses which the caller may know.
    """
    prices = [*dict.fromkeys(asked)][:MOST_PRICES] or [LEAST]
    now, looked = int(time.time()), _accounts(ledger, caller)
    named = [each.subject for each in looked if _can_pay(each, caller, prices, now)][:MOST_NAMED]
    if named or len(looked) == MOST_LOOKED_AT:
        return named, ""
    if not any(each.limited for each in looked):
        return [], NOBODY.format(SETS if caller.subjects is None else ASK)
    return [], DEAR if asked else SPENT


def _accounts(ledger: Ledger, caller: Caller) -> list[Account]:
    if caller.subjects is None:
        return ledger.accounts(MOST_LOOKED_AT)
    return [ledger.show(name) for name in caller.subjects[:MOST_NAMED]]


def _can_pay(account: Account, caller: Caller, prices: Iterable[Total], now: int) -> bool:
    known = known_to(caller, limits_of(account))
    return account.limited and any(
        refused(known, caller, account.subject, price, price, now) is None for price in prices
    )
