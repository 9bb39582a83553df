"""Paying for releases, and what callers are told of budgets: amounts of subjects that they may spend alone.

Of a budget above its own a key learns that it refuses, and no more. Whoever needs no key learns everything.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from dpveil.core.certificate import parse_guarantee
from dpveil.core.guarantee import Guarantee
from dpveil.core.rationals import Json
from dpveil.core.region import CoverageDigests
from dpveil.errors import AlreadyPaid, BudgetRefused, InvalidParameter, RegionsDiffer, UsageError, nearest
from dpveil.ledger.amounts import Total
from dpveil.ledger.limits import check_subject
from dpveil.service.keys import Caller
from dpveil.service.problems import ServiceError, WorkerEnded

if TYPE_CHECKING:
    from dpveil.ledger import Ledger
    from dpveil.ledger.ledger import Reservation

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
        name the attempt: one that was paid before and whose release is not kept any more is "Gone".
        """
        if self.ledger is None:
            return None
        if subject is None:
            raise UsageError("the settings name no subject to pay", hint='add "subject", such as "album-7"')
        if planned["total"] is None:
            raise UsageError("a copy without protection cannot be paid for", hint="leave copy out of if_none")
        guarantee = parse_guarantee(planned["total"])
        try:
            covered = CoverageDigests.from_json(planned.get("covered"))
        except InvalidParameter as error:
            raise WorkerEnded from error  # the worker may have been taken over
        try:
            return self.ledger.debit(subject, guarantee, _unit(caller, key), covered=covered)
        except RegionsDiffer as error:
            raise RegionsDiffer(error.message, hint=SAME) from error
        except BudgetRefused as error:
            standing = Standing(self.ledger, caller, check_subject(subject))
            raise standing.refusal_of(error, Total.of(guarantee)) from error
        except AlreadyPaid as error:
            problem = "the release with this Idempotency-Key was made and paid for, and is not kept any more"
            hint = "send another key for another release, which costs again"
            raise ServiceError("Gone", problem, hint=hint) from error

    def account(self, caller: Caller, subject: str | None, key: str) -> dict[str, Json]:
        """Return what was `paid` for the release of an attempt, and what is `left` for its subject now.

        Empty without a ledger.
        """
        if self.ledger is None or subject is None:
            return {}
        paid = self.ledger.paid(subject, _unit(caller, key))
        told = {} if paid is None else {"paid": {"subject": paid.subject, **paid.cost.to_json()}}
        return {**told, "left": Standing(self.ledger, caller, subject).left_json()}

    def forecast(self, caller: Caller, subject: str | None, total: Any) -> dict[str, Json]:
        """Return the `cost` of a plan with this total, what is `left` for a subject, and whether that `fits`,
        or the `reason` why not, with the subject that a mistyped one is like.

        The cost alone without a subject, and nothing without a ledger.
        """
        if self.ledger is None:
            return {}
        price = price_of(None if total is None else parse_guarantee(total))
        told: dict[str, Json] = {"cost": None if price is None else price.to_json()}
        if subject is None:
            return told
        standing = Standing(self.ledger, caller, subject)
        if not standing.limits:
            reason = standing.near("; did you mean {}?", UNLIMITED.format(subject))
        elif price is None:
            reason = "no budget can pay for this release"
        else:
            error = standing.refusal(price)
            reason = "" if error is None else error.message
        told |= {"left": standing.left_json(), "fits": not reason}
        return {**told, "reason": reason} if reason else told

    def stored(self, payment: Reservation | None, sha256: str) -> None:
        """Tell the ledger which file was paid for, before anybody sees it."""
        if payment is not None:
            payment.stored(sha256)

    def is_paid(self, sha256: str) -> bool:
        """Whether the ledger knows who paid for a file; without a ledger nothing has to be paid."""
        return self.ledger is None or bool(self.ledger.paid_for(sha256))

    def close(self) -> None:
        if self.ledger is not None:
            self.ledger.close()


def _unit(caller: Caller, key: str) -> str:
    return f"{caller.number}\0{key}"


def price_of(total: Guarantee | None) -> Total | None:
    """Return what a release with this total costs; None for what no budget can pay, as a copy."""
    try:
        return None if total is None else Total.of(total)
    except BudgetRefused:
        return None


class Standing:
    """The limits that a release for a subject has to keep, from the top, each with its account.

    The amounts of those that its caller may spend are `seen`; of others nothing is told but that they refuse.
    """

    def __init__(self, ledger: Ledger, caller: Caller, subject: str) -> None:
        self.ledger, self.caller, own = ledger, caller, ledger.show(subject)
        self.subject = own.subject
        self.limits = [(each, limit) for each in (*own.parents, own) for limit in each.limits]
        self.seen = [each for each in self.limits if caller.may_spend(each[0].subject)]

    def near(self, words: str, text: str) -> str:
        """Return a text, and in `words` the subject that is most similar to a mistyped one, if any."""
        own = (name for name in self.ledger.subjects() if self.caller.may_spend(name))
        near = nearest(self.subject, (name for name in own if name != self.subject))
        return text if near is None else text + words.format(near)

    def refusal(self, price: Total) -> BudgetRefused | None:
        """Return why the limits that are seen refuse to pay a release; None if they do not."""
        for account, limit in self.seen:
            try:
                limit.check(account.subject, account.spent + account.reserved + price, price.cost)
            except BudgetRefused as error:
                return error
        return None

    def refusal_of(self, error: BudgetRefused, price: Total) -> BudgetRefused:
        """Return the ledger's refusal of a release as the caller is told of it."""
        if not self.limits:
            hint = self.near("did you mean {}? ", "") + (SETS if self.caller.subjects is None else ASK)
            return BudgetRefused(UNLIMITED.format(self.subject), hint=hint)
        if self.caller.subjects is None:
            return error
        return self.refusal(price) or BudgetRefused(ABOVE.format(self.subject), hint=LESS)

    def left_json(self) -> dict[str, Json]:
        """Return what is left of every limit that the caller may know."""
        told = [{"subject": each.subject, **limit.to_json(each.used)} for each, limit in self.seen]
        return {"limits": list(told), "complete": len(self.seen) == len(self.limits)}
