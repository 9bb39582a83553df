"""Why a budget refuses a release, in what its caller may know: amounts of subjects that it may spend alone.

Of a budget above them a key learns that it refuses, and no more. Whoever needs no key learns everything.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from dpveil.core.guarantee import Guarantee
from dpveil.errors import BudgetRefused, nearest
from dpveil.ledger.account import Account
from dpveil.ledger.amounts import Cost, Total
from dpveil.ledger.limits import Limit
from dpveil.service.keys import Caller

if TYPE_CHECKING:
    from dpveil.ledger import Ledger

Limits = Sequence[tuple[Account, Limit]]
"""The limits on the path of a subject, from the top, each with its account."""
UNLIMITED: Final = "{} has no limit, so nothing may be spent for it"
SETS: Final = "dpveil ledger limit sets one"
ASK: Final = "whoever runs the service sets limits"
ABOVE: Final = "a budget above {} refuses this release"
LESS: Final = "ask for less, or ask whoever runs the service, as this key is not told what is left there"


def limits_of(account: Account) -> Limits:
    """Return every limit that a release for a subject has to keep."""
    return [(each, limit) for each in (*account.parents, account) for limit in each.limits]


def known_to(caller: Caller, limits: Limits) -> Limits:
    """Return the limits whose amounts a caller may know."""
    return [each for each in limits if caller.may_spend(each[0].subject)]


def like(ledger: Ledger, caller: Caller, name: str) -> str | None:
    """Return the subject that is most similar to a mistyped one, of those that the caller may spend."""
    return nearest(name, (each for each in ledger.subjects() if each != name and caller.may_spend(each)))


def refused(
    limits: Limits, caller: Caller, name: str, more: Total, price: Total, now: int
) -> BudgetRefused | None:
    """Return why a subject cannot pay `more`, of which the last release is for `price`; None if it can.

    Limits that the caller may not spend come last, and tell nothing but that they refuse. `now` is in Unix
    seconds.
    """
    for account, limit in sorted(limits, key=lambda each: not caller.may_spend(each[0].subject)):
        try:
            limit.check(account.subject, account.spent + account.reserved + more, price.cost, now)
        except BudgetRefused as error:
            return error if caller.may_spend(account.subject) else _above(name)
    return None


def told(
    error: BudgetRefused, ledger: Ledger, caller: Caller, name: str, guarantee: Guarantee
) -> BudgetRefused:
    """Return a refusal of the ledger as the caller is told of it."""
    limits = limits_of(ledger.show(name))
    if not limits:
        near = like(ledger, caller, name)
        meant = "" if near is None else f"did you mean {near}? "
        return BudgetRefused(UNLIMITED.format(name), hint=meant + (SETS if caller.subjects is None else ASK))
    if caller.subjects is None:
        return error
    price = Total(Cost.of(guarantee), guarantee.relation)
    return refused(limits, caller, name, price, price, int(time.time())) or _above(name)


def _above(name: str) -> BudgetRefused:
    return BudgetRefused(ABOVE.format(name), hint=LESS)
