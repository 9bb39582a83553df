"""What releases cost and what is left, as JSON for programs: amounts that the caller may know.

Of a budget above its own a key learns that there is one, and no more (`refusals`).
"""

from __future__ import annotations

import time
from typing import Any, Final

from dpveil.core.numbers import Json
from dpveil.errors import BudgetRefused
from dpveil.ledger.account import Account, Paid, limit_json
from dpveil.ledger.amounts import Total
from dpveil.service.keys import Caller
from dpveil.service.refusals import UNLIMITED, known_to, limits_of, refused

AMOUNTS: Final[dict[str, Any]] = {
    "epsilon": {"type": ["number", "string"], "description": "Σε of pure and approximate promises."},
    "delta": {"type": ["number", "string"], "description": "Σδ of approximate promises."},
    "rho": {"type": ["number", "string"], "description": "Σρ of zero-concentrated promises."},
    "relation": {"type": ["string", "null"], "description": "The neighbours that it is about."},
}
COST: Final[dict[str, Any]] = {
    "type": ["object", "null"],
    "description": "What a release would be paid for; null for what no budget can hold.",
    "properties": AMOUNTS,
    "example": {"epsilon": 1, "delta": 0, "rho": 0, "relation": "any-image"},
}
PAID: Final[dict[str, Any]] = {
    "type": "object",
    "description": "Where the service has a ledger: who paid for this release, and how much. A retry with its"
    " key is told the same, and pays nothing.",
    "required": ["subject", *AMOUNTS],
    "properties": {"subject": {"type": "string"}, **AMOUNTS},
    "example": {"subject": "album-7", **COST["example"]},
}
LEFT: Final[dict[str, Any]] = {
    "type": "object",
    "description": "Where the service has a ledger: what is left at the moment of this answer, so a retry may"
    " be told less.",
    "required": ["limits", "complete"],
    "properties": {
        "limits": {
            "type": "array",
            "description": "Every limit on the subject's path that the key may know, from the top, as"
            " dpveil ledger show --json states it.",
            "items": {
                "type": "object",
                "required": ["subject", "kind", "left"],
                "properties": {
                    "subject": {"type": "string"},
                    "kind": {"enum": ["pure", "approximate", "zcdp"]},
                    "left": {
                        "type": ["number", "string"],
                        "description": "The largest ε that fits, or ρ for kind zcdp; a fraction such as 1/3"
                        " where no decimal is exact.",
                    },
                },
            },
        },
        "complete": {
            "type": "boolean",
            "description": "Whether these are all: else a budget that this key is not told of may refuse.",
        },
    },
    "example": {
        "limits": [
            {
                "subject": "album-7",
                "kind": "pure",
                "epsilon": 3,
                "relation": None,
                "not_before": None,
                "not_after": None,
                "left": 2,
                "exceeded": {},
            }
        ],
        "complete": True,
    },
}
FITS: Final[dict[str, Any]] = {
    "type": "boolean",
    "description": "Whether the limits in left have room for the cost now; paying decides, which also refuses"
    " other regions of a photo that was released before.",
    "example": True,
}
REASON: Final[dict[str, Any]] = {
    "type": "string",
    "description": "Why it does not fit, where fits is false.",
    "example": "album-7 has no limit, so nothing may be spent for it; did you mean album-77?",
}


def paid_json(paid: Paid) -> dict[str, Json]:
    """Return who paid for a release, and how much."""
    return {"subject": paid.subject, **paid.cost.to_json()}


def left_json(account: Account, caller: Caller) -> dict[str, Json]:
    """Return what is left of every limit on a subject's path that its caller may know."""
    limits = limits_of(account)
    known = known_to(caller, limits)
    told = [{"subject": each.subject, **limit_json(limit, each.used)} for each, limit in known]
    return {"limits": list(told), "complete": len(known) == len(limits)}


def misfit(account: Account, caller: Caller, price: Total | None) -> BudgetRefused | None:
    """Return why the limits that a caller may know have no room for a release; None if they have.

    There is none without any limit, nor for what no budget can pay (None).
    """
    limits = limits_of(account)
    if not limits:
        return BudgetRefused(UNLIMITED.format(account.subject))
    if price is None:
        return BudgetRefused("no budget can pay for this release")
    return refused(known_to(caller, limits), caller, account.subject, price, price, int(time.time()))
