"""Accounts and entries of a ledger in words, one line each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from dpveil.ledger import Account, Limit
    from dpveil.ledger.amounts import Total

Url = Annotated[str, typer.Option("--ledger", metavar="URL", help="The ledger, such as sqlite:///budget.db.")]


def in_words(account: Account) -> str:
    """Return what a subject spent and has reserved, and its limits, in one line."""
    scope = " for what all its releases cover" if _is_some(account.spent) else ""
    parts = [f"spent {_amounts(account.spent)}{scope}"]
    if _is_some(account.reserved):
        parts.append(f"reserved {_amounts(account.reserved)}")
    everything = account.spent + account.reserved
    parts += [_left(limit, everything) for limit in account.limits] or ["no limit of its own"]
    return f"{account.subject}: {'; '.join(parts)}"


def _is_some(total: Total) -> bool:
    return bool(total.cost.epsilon or total.cost.rho or total.cost.delta)


def _left(limit: Limit, total: Total) -> str:
    from dpveil.core.numbers import show

    return f"limit {limit.in_words()}, left {show(limit.left(total.cost))}"


def _amounts(total: Total) -> str:
    numbers = total.cost.to_json()
    told = [f"{name} {value}" for name, value in numbers.items() if value or name == "epsilon"]
    relation = total.relation_text()
    return " and ".join(told) + (
        f" ({'no common neighbours' if total.mixed else relation})" if relation else ""
    )


def event_in_words(event: Any) -> str:
    """Return what an entry says."""
    from dpveil.ledger.entries import Debit, LimitSet, Open, Stored

    if isinstance(event, Open):
        return f"opened {event.name}"
    if isinstance(event, LimitSet):
        return f"{event.subject}  {'removed' if event.removed else 'set'} limit {event.limit.in_words()}"
    if isinstance(event, Debit):
        return f"{event.subject}  debit {_amounts(event.cost)}  unit {event.unit[:12]} draw {event.draw}"
    return f"{event.subject}  stored {event.sha256}" if isinstance(event, Stored) else ""
