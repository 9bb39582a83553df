"""Paying for releases, and what callers are told of budgets: amounts of subjects that they may spend alone.

Of a budget above its own a key learns that it refuses, and no more. Whoever needs no key learns everything.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from dpveil.core.certificate import parse_guarantee
from dpveil.core.guarantee import Guarantee
from dpveil.core.numbers import Json
from dpveil.core.region import Covered
from dpveil.errors import AlreadyPaid, BudgetRefused, RegionsDiffer, UsageError, nearest
from dpveil.ledger.amounts import Cost, Total
from dpveil.ledger.limits import Account, Limit, check_subject, limit_json
from dpveil.service.keys import Caller
from dpveil.service.problems import Gone, WorkerEnded

if TYPE_CHECKING:
    from dpveil.ledger import Ledger
    from dpveil.ledger.ledger import Reservation

Limits = Sequence[tuple[Account, Limit]]
"""The limits on the path of a subject, from the top, each with its account."""
UNLIMITED: Final = "{} has no limit, so nothing may be spent for it"
SETS: Final = "dpveil ledger limit sets one"
ASK: Final = "whoever runs the service sets limits"
ABOVE: Final = "a budget above {} refuses this release"
LESS: Final = "ask for less, or ask whoever runs the service, as this key is not told what is left there"
SAME: Final = "replace the same regions as before; whoever keeps the ledger can allow others"


class Budget:
    """Pays from a ledger, or without one from nothing: then every release is made. Called in one thread."""

    def __init__(self, ledger: Ledger | None) -> None:
        self.ledger = ledger

    def pay(
        self, caller: Caller, subject: str | None, planned: dict[str, Any], key: str
    ) -> Reservation | None:
        """Commit the cost of one release, durably, before anything is drawn; None without a ledger.

        `planned` has the plan's `total` as JSON, None for a copy, and what is `covered`. The caller and `key`
        name the attempt: one that was paid before and whose release is not kept any more is `Gone`. Raises
        `BudgetRefused` in what the caller may know, `RegionsDiffer`, to which there is no exception here,
        other errors of the ledger, `WorkerEnded` for digests that are none, and `UsageError` where no subject
        is named, or nothing is protected.
        """
        if self.ledger is None:
            return None
        if subject is None:
            raise UsageError("the settings name no subject to pay", hint='add "subject", such as "album-7"')
        if planned["total"] is None:
            raise UsageError("a copy without protection cannot be paid for", hint="leave copy out of if_none")
        guarantee, covered = parse_guarantee(planned["total"]), _parse_covered(planned.get("covered"))
        try:
            return self.ledger.debit(subject, guarantee, _unit(caller, key), covered=covered)
        except RegionsDiffer as error:
            raise RegionsDiffer(error.message, hint=SAME) from error
        except BudgetRefused as error:
            raise _refusal_for_caller(
                error, self.ledger, caller, check_subject(subject), guarantee
            ) from error
        except AlreadyPaid as error:
            raise Gone(
                "the release with this Idempotency-Key was made and paid for, and is not kept any more",
                hint="send another key for another release, which costs again",
            ) from error

    def account(self, caller: Caller, subject: str | None, key: str) -> dict[str, Json]:
        """Return what was `paid` for the release of an attempt, and what is `left` for its subject now.

        Empty without a ledger. Raises `LedgerError`.
        """
        if self.ledger is None or subject is None:
            return {}
        paid, account = self.ledger.paid(subject, _unit(caller, key)), self.ledger.show(subject)
        told = {} if paid is None else {"paid": {"subject": paid.subject, **paid.cost.to_json()}}
        return {**told, "left": left_json(account, caller)}

    def forecast(self, caller: Caller, subject: str | None, total: Any) -> dict[str, Json]:
        """Return the `cost` of a plan with this total, what is `left` for a subject, and whether that `fits`,
        or the `reason` why not, with the subject that a mistyped one is like.

        The cost alone without a subject, and nothing without a ledger. Raises `LedgerError`, and
        `InvalidParameter` for what is no subject.
        """
        if self.ledger is None:
            return {}
        price = _price(total)
        told: dict[str, Json] = {"cost": None if price is None else price.to_json()}
        if subject is None:
            return told
        account = self.ledger.show(subject)
        error = limit_refusal(account, caller, price)
        told |= {"left": left_json(account, caller), "fits": error is None}
        if error is None:
            return told
        near = None if limits_of(account) else similar_subject(self.ledger, caller, account.subject)
        return {**told, "reason": error.message + ("" if near is None else f"; did you mean {near}?")}

    def stored(self, payment: Reservation | None, sha256: str) -> None:
        """Tell the ledger which file was paid for, before anybody sees it."""
        if payment is not None:
            payment.stored(sha256)

    def is_paid(self, sha256: str) -> bool:
        """Whether the ledger knows who paid for a file; without a ledger nothing has to be paid."""
        return self.ledger is None or bool(self.ledger.paid_for(sha256))

    def close(self) -> None:
        """Close the ledger."""
        if self.ledger is not None:
            self.ledger.close()


def _unit(caller: Caller, key: str) -> str:
    return f"{caller.number}\0{key}"


def _price(total: Any) -> Total | None:
    """Return what a plan with this total as JSON costs; None for what no budget can pay, as a copy."""
    if total is None:
        return None
    guarantee = parse_guarantee(total)
    try:
        return Total(Cost.of(guarantee), guarantee.relation)
    except BudgetRefused:
        return None


def _parse_covered(told: Any) -> Covered:
    """Return what a worker says is covered; raises `WorkerEnded`, for it may have been taken over."""
    try:
        return Covered.parse(told)
    except ValueError as error:
        raise WorkerEnded from error


def limits_of(account: Account) -> Limits:
    """Return every limit that a release for a subject has to keep."""
    return [(each, limit) for each in (*account.parents, account) for limit in each.limits]


def known_to(caller: Caller, limits: Limits) -> Limits:
    """Return the limits whose amounts a caller may know."""
    return [each for each in limits if caller.may_spend(each[0].subject)]


def similar_subject(ledger: Ledger, caller: Caller, name: str) -> str | None:
    """Return the subject that is most similar to a mistyped one, of those that the caller may spend."""
    return nearest(name, (each for each in ledger.subjects() if each != name and caller.may_spend(each)))


def first_refusal(
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
            return error if caller.may_spend(account.subject) else _above_limit_refusal(name)
    return None


def _refusal_for_caller(
    error: BudgetRefused, ledger: Ledger, caller: Caller, name: str, guarantee: Guarantee
) -> BudgetRefused:
    """Return a refusal of the ledger as the caller is told of it."""
    limits = limits_of(ledger.show(name))
    if not limits:
        near = similar_subject(ledger, caller, name)
        meant = "" if near is None else f"did you mean {near}? "
        return BudgetRefused(UNLIMITED.format(name), hint=meant + (SETS if caller.subjects is None else ASK))
    if caller.subjects is None:
        return error
    price = Total(Cost.of(guarantee), guarantee.relation)
    return first_refusal(limits, caller, name, price, price, int(time.time())) or _above_limit_refusal(name)


def _above_limit_refusal(name: str) -> BudgetRefused:
    return BudgetRefused(ABOVE.format(name), hint=LESS)


def left_json(account: Account, caller: Caller) -> dict[str, Json]:
    """Return what is left of every limit on a subject's path that its caller may know."""
    limits = limits_of(account)
    known = known_to(caller, limits)
    told = [{"subject": each.subject, **limit_json(limit, each.used)} for each, limit in known]
    return {"limits": list(told), "complete": len(known) == len(limits)}


def limit_refusal(account: Account, caller: Caller, price: Total | None) -> BudgetRefused | None:
    """Return why the limits that a caller may know have no room for a release; None if they have.

    There is none without any limit, nor for what no budget can pay (None).
    """
    limits = limits_of(account)
    if not limits:
        return BudgetRefused(UNLIMITED.format(account.subject))
    if price is None:
        return BudgetRefused("no budget can pay for this release")
    return first_refusal(known_to(caller, limits), caller, account.subject, price, price, int(time.time()))
