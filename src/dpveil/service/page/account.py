"""The account of whoever pays, for people: what is left, and whether releases that were planned fit."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Final

from dpveil.core.guarantee import Guarantee
from dpveil.core.numbers import Json, show
from dpveil.errors import BudgetExceeded, BudgetRefused
from dpveil.ledger.amounts import DELTA_UNIT, UNIT, Cost, Total
from dpveil.ledger.limits import Account, Limit, check_subject, show_left
from dpveil.service.budget import ASK, SETS, Standing
from dpveil.service.keys import Caller
from dpveil.service.problems import BadRequest

if TYPE_CHECKING:
    from dpveil.ledger import Ledger

SIGNS: Final = {"epsilon": "ε", "rho": "ρ", "delta": "δ"}
MOST_PRICES: Final = 500
"""Most releases whose prices are looked at in one request."""
MOST_LOOKED_AT: Final = 1000
"""Most subjects that are looked at."""
MOST_NAMED: Final = 200
"""Most subjects that are named to choose from."""
MOST_DECIDING: Final = 8
"""Most different prices that decide on who is named."""
LEAST: Final = Total(Cost(epsilon=1, squares=1))
"""The least that a release costs which is not free."""
NOBODY: Final = "There is no budget to pay from: {}."
SPENT: Final = "Nothing is left to spend in any budget. What costs nothing can still be released."
DEAR: Final = "No budget can pay for this: too little is left. Keep less of each face, or nothing."
UNNAMED: Final = "Say who pays first."
UNLIMITED: Final = "Nothing can be paid for {}, which has no limit."
HIDDEN: Final = "{} is paid from a budget that is not shown to this key and may refuse"
BESIDE: Final = "; a budget above it may refuse, and is not shown to this key"


def price_of(total: Guarantee | None) -> str:
    """Return what a release costs as a word that `prices` reads; empty for what no budget can pay.

    >>> from dpveil.core.guarantee import Relation, Scope
    >>> price_of(Guarantee(kind="pure", epsilon=2, relation=Relation("any-image"), scope=Scope("a photo")))
    '2000000 4000000000000 0 0/any-image'
    """
    if total is None:
        return ""
    try:
        cost = Total(Cost.of(total), total.relation)
    except BudgetRefused:
        return ""
    return f"{cost.cost.to_text()}/{cost.relation_text()}"


def prices(words: Sequence[str]) -> list[Total]:
    """Return the prices that `price_of` wrote; raises `BadRequest` for other words, and for too many."""
    if len(words) > MOST_PRICES:
        raise BadRequest(f"{len(words)} prices are too many", hint=f"at most {MOST_PRICES}")
    try:
        return [Total.parse(*word.split("/", 1)) for word in words]
    except (ValueError, TypeError) as error:
        raise BadRequest("a price is not what /page/plan states", hint="send it as it is") from error


def account_json(
    ledger: Ledger, caller: Caller, subject: str | None, asked: Sequence[Total], paid: Sequence[Total] = ()
) -> dict[str, Json]:
    """Return what is left for a subject, and of each of the `asked` releases whether that pays for it.

    `subjects` are those to choose from, `none` says why there are none, and `own` is one that plans may name,
    if they have to. `left` has a clause for every limit that the caller may see, and `paid` says what was
    `paid` before. `each` has for every release alone a `problem`, empty if it can be paid, and what is left
    `after` it; `in_turn` says whether it can be paid after those before it, too. Limits that the caller may
    not spend are not looked at: prices are the client's, and many of them would measure what is left there.
    Raises `Forbidden`, `InvalidParameter` and `LedgerError`.
    """
    named, none = payers(ledger, caller, asked)
    own = caller.subjects[0] if caller.subjects else ""
    choice: dict[str, Json] = {"subjects": [*named], "none": none, "own": own, "paid": _price_text(paid)}

    def refused(problem: str) -> list[Json]:
        return [{"problem": problem, "after": "", "in_turn": False} for _ in asked]

    if subject is None and (caller.subjects is None or len(caller.subjects) != 1):
        nobody: dict[str, Json] = {"subject": "", "left": "", "share": 0.0}
        return {**nobody, **choice, "each": refused(none or UNNAMED)}
    standing = Standing(ledger, caller, check_subject(caller.subject(subject)))
    if not standing.limits:
        why = standing.near(" Did you mean {}?", UNLIMITED.format(standing.subject))
        nothing: dict[str, Json] = {"subject": standing.subject, "left": why, "share": 0.0}
        return {**nothing, **choice, "each": refused(why)}
    shares = [limit.left(used(account).cost) / limit_of(limit)[1] for account, limit in standing.seen]
    turn = Total()
    each: list[Json] = []
    for price in asked:
        error = standing.refusal(price, price)
        in_turn = error is None and standing.refusal(turn + price, price) is None
        turn = turn + price if in_turn else turn
        after = "" if error else _remaining_text(standing, price)
        each.append({"problem": _problem(error), "after": after, "in_turn": in_turn})
    return {
        "subject": standing.subject,
        **choice,
        "left": _remaining_text(standing, Total()),
        "share": float(min(shares, default=0)),
        "each": each,
    }


def used(account: Account) -> Total:
    """Return what was spent for a subject, or is about to be."""
    return account.spent + account.reserved


def limit_of(limit: Limit) -> tuple[str, Fraction]:
    """Return the first amount of a limit, by which what is left of it is counted, and its name."""
    return next(iter(limit.amounts.items()))


def _price_text(prices: Sequence[Total]) -> str:
    """Return what releases cost together; empty if there is none.

    >>> _price_text([Total(Cost.parse("2500000 0 0 0")), Total(Cost.parse("1 0 0 0"))])
    'for ε 2.500001'
    >>> _price_text([Total()])
    'at no cost'
    """
    if not prices:
        return ""
    amounts = sum(prices, Total()).cost
    units = (("epsilon", UNIT), ("rho", UNIT), ("delta", DELTA_UNIT))
    told = [(SIGNS[name], Fraction(getattr(amounts, name), unit)) for name, unit in units]
    some = " and ".join(f"{sign} {show(amount)}" for sign, amount in told if amount)
    return f"for {some}" if some else "at no cost"


def _problem(error: BudgetRefused | None) -> str:
    """Return why a release cannot be paid, for people; empty if it can."""
    if isinstance(error, BudgetExceeded):
        sign = SIGNS.get(error.unit, error.unit)
        return f"This release costs {sign} {error.asked}, and {error.subject} has {error.left} left."
    if error is None:
        return ""
    return f"{error.message}: {error.hint}." if error.hint else f"{error.message}."


def _remaining_text(standing: Standing, more: Total) -> str:
    """Return what is left of every limit that is seen once `more` was paid, in one sentence."""
    if not standing.seen:
        return HIDDEN.format(standing.subject)
    told = []
    for account, limit in standing.seen:
        name, whole = limit_of(limit)
        beside = "".join(f" with {SIGNS[n]} {show(v)}" for n, v in limit.amounts.items() if n != name)
        left = show_left(limit.left((used(account) + more).cost))
        told.append(f"{account.subject} has {SIGNS[name]} {left} of {show(whole)}{beside} left")
    return "; ".join(told) + BESIDE * (len(standing.seen) < len(standing.limits))


def payers(ledger: Ledger, caller: Caller, asked: Sequence[Total]) -> tuple[list[str], str]:
    """Return the subjects that can pay for one of the `asked` releases, and if there is none, why.

    If no release is asked about, these are the subjects that have anything left. What cannot pay is a subject
    without a limit on its path, or one that a limit refuses which the caller may know.
    """
    prices = [*dict.fromkeys(asked)][:MOST_DECIDING] or [LEAST]
    if caller.subjects is None:
        looked = ledger.accounts(MOST_LOOKED_AT)
    else:
        looked = [ledger.show(name) for name in caller.subjects[:MOST_NAMED]]
    named = []
    for account in (each for each in looked if each.limited):
        standing = Standing(ledger, caller, account)
        if any(standing.refusal(price, price) is None for price in prices):
            named.append(account.subject)
    if named or len(looked) == MOST_LOOKED_AT:
        return named[:MOST_NAMED], ""
    if not any(each.limited for each in looked):
        return [], NOBODY.format(SETS if caller.subjects is None else ASK)
    return [], DEAR if asked else SPENT
