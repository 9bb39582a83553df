"""The guarantee for all pixels of a region that follows from the noise drawn for few of them."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

from dpveil.accounting.account import Account
from dpveil.accounting.group import whole_region
from dpveil.accounting.meaning import success_bound
from dpveil.core.guarantee import Guarantee
from dpveil.mechanisms.method import Method
from dpveil.mechanisms.placement import Size


def about_all(method: Method, promised: Guarantee, size: Size) -> Guarantee | None:
    """Return the same noise's guarantee for any two photos: the better of group privacy and its own account.

    `promised` is the guarantee of a region of this size. None if no rule is known.
    """
    grouped = whole_region(promised, size["height"] * size["width"])
    account = method.account_of([size], None)
    if grouped is None or grouped == promised or account is None:
        return grouped
    numbers = numbers_of(account, promised.kind, promised.delta)
    if numbers is None:
        return grouped
    own = replace(promised, relation=grouped.relation, **numbers)
    return min(grouped, own, key=lambda each: (success_bound(each, 2), each.epsilon or each.rho))


def numbers_of(account: Account, kind: str, delta: Fraction | None) -> dict[str, Any] | None:
    """Return an account's guarantee of one kind, as keywords of `Guarantee`, at this δ; None without one."""
    if kind == "pure" and account.pure is not None:
        return {"epsilon": account.pure}
    if kind == "zcdp" and account.rho is not None:
        return {"rho": account.rho}
    if kind == "approximate" and delta is not None:
        return {"epsilon": account.epsilon(delta), "delta": delta}
    return None
