"""Transactions of the results: one for a group of calls, and durable ones among others that need not be."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from dpveil.service.line import Call


@contextmanager
def durable(base: sqlite3.Connection) -> Iterator[None]:
    """Have what is committed within survive a loss of power; in a transaction that is already decided."""
    alone = not base.in_transaction
    if alone:
        base.execute("PRAGMA synchronous = FULL")
    try:
        yield
    finally:
        if alone:
            base.execute("PRAGMA synchronous = NORMAL")


@contextmanager
def whole(base: sqlite3.Connection) -> Iterator[None]:
    """Make all changes within or none, in the transaction that is under way or in one of their own."""
    alone = not base.in_transaction
    if alone:
        base.execute("BEGIN")
    try:
        yield
        if alone:
            base.execute("COMMIT")
    finally:
        if alone and base.in_transaction:
            base.execute("ROLLBACK")


def in_one(base: sqlite3.Connection, calls: Sequence[Call]) -> None:
    """Run calls in one transaction, all or nothing; raises `sqlite3.Error` where nothing was changed.

    A call may fail by itself, and the others go on. Some errors of SQLite end the transaction.
    """
    try:
        base.execute("BEGIN")
        for call in calls:
            call.run()
            if not base.in_transaction:
                raise sqlite3.OperationalError("the group failed") from call.error
        base.execute("COMMIT")
    finally:
        if base.in_transaction:
            base.execute("ROLLBACK")
