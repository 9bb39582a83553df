"""The account of whoever pays, for people: what is left, and whether releases that were planned fit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from dpveil.core.guarantee import Guarantee
from dpveil.core.rationals import Json, show
from dpveil.errors import BudgetExceeded, BudgetRefused
from dpveil.ledger.amounts import Total
from dpveil.ledger.limits import FIELDS, check_subject, show_left
from dpveil.service.budget import ASK, SETS, Standing, price_of
from dpveil.service.keys import Caller
from dpveil.service.problems import ServiceError

if TYPE_CHECKING:
    from dpveil.ledger import Ledger

SIGNS: Final = {"epsilon": "ε", "rho": "ρ", "delta": "δ"}
MOST_PRICES: Final = 500  # most releases whose prices are looked at in one request
MOST_NAMED: Final = 200  # most subjects that are named to choose from
NOBODY: Final = "There is no budget to pay from: {}."
UNNAMED: Final = "Say who pays first."
UNLIMITED: Final = "Nothing can be paid for {}, which has no limit."
HIDDEN: Final = "{} is paid from a budget that is not shown to this key and may refuse"
BESIDE: Final = "; a budget above it may refuse, and is not shown to this key"


def price_text(total: Guarantee | None) -> str:
    """Return what a release costs as a word that `prices` reads; empty for what no budget can pay."""
    price = price_of(total)
    return "" if price is None else f"{price.cost.to_text()}/{price.relation_text()}"


def prices(words: Sequence[str]) -> list[Total]:
    """Return the prices that `price_text` wrote; raises for other words, and for too many."""
    if len(words) > MOST_PRICES:
        hint = f"at most {MOST_PRICES}"
        raise ServiceError("BadRequest", f"{len(words)} prices are too many", hint=hint)
    try:
        return [Total.parse(*word.split("/", 1)) for word in words]
    except (ValueError, TypeError) as error:
        hint = "send it as it is"
        raise ServiceError("BadRequest", "a price is not what /page/plan states", hint=hint) from error


def account_json(
    ledger: Ledger, caller: Caller, subject: str | None, asked: Sequence[Total]
) -> dict[str, Json]:
    """Return what is `left` for a subject, and for each of the `asked` releases why it cannot be paid, if so.

    `subjects` are those to choose from, `none` says why there are none, and `own` is one that plans may name,
    if they have to. Limits that the caller may not spend are not looked at: prices are the client's, and many
    of them would measure what is left there.
    """
    if caller.subjects is None:
        known = ledger.accounts(MOST_NAMED)
    else:
        known = [ledger.show(name) for name in caller.subjects[:MOST_NAMED]]
    named = [each.subject for each in known if each.limited]
    none = "" if named else NOBODY.format(SETS if caller.subjects is None else ASK)
    own = caller.subjects[0] if caller.subjects else ""
    told: dict[str, Json] = {"subject": "", "left": "", "subjects": [*named], "none": none, "own": own}
    if subject is None and (caller.subjects is None or len(caller.subjects) != 1):
        return {**told, "problems": [none or UNNAMED for _ in asked]}
    standing = Standing(ledger, caller, check_subject(caller.subject(subject)))
    told["subject"] = standing.subject
    if not standing.limits:
        why = standing.near(" Did you mean {}?", UNLIMITED.format(standing.subject))
        return {**told, "left": why, "problems": [why for _ in asked]}
    problems: list[Json] = [_problem(standing.refusal(price)) for price in asked]
    return {**told, "left": _left_text(standing), "problems": problems}


def _problem(error: BudgetRefused | None) -> str:
    if isinstance(error, BudgetExceeded):
        sign = SIGNS.get(error.unit, error.unit)
        return f"This release costs {sign} {error.asked}, and {error.subject} has {error.left} left."
    if error is None:
        return ""
    return f"{error.message}: {error.hint}." if error.hint else f"{error.message}."


def _left_text(standing: Standing) -> str:
    if not standing.seen:
        return HIDDEN.format(standing.subject)
    told = []
    for account, limit in standing.seen:
        name = FIELDS[limit.kind][0]
        beside = "".join(f" with {SIGNS[n]} {show(v)}" for n, v in limit.amounts.items() if n != name)
        left, whole = show_left(limit.left(account.used)[name]), show(limit.amounts[name])
        told.append(f"{account.subject} has {SIGNS[name]} {left} of {whole}{beside} left")
    return "; ".join(told) + BESIDE * (len(standing.seen) < len(standing.limits))
