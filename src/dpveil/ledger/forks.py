"""Databases and forks: a connection is closed before a fork, and opened again where it is used."""

from __future__ import annotations

import os
import weakref
from typing import Protocol


class Forked(Protocol):
    """A database whose connection does not survive a fork."""

    def before_fork(self) -> None:
        """Close the connection, and hold the locks."""

    def after_fork(self) -> None:
        """Let go of the locks, in parent and child."""


_alive: weakref.WeakSet[Forked] = weakref.WeakSet()
_held: list[Forked] = []


def register(database: Forked) -> None:
    """Close the connection of `database` before every fork, while it is in use."""
    _alive.add(database)


def _before() -> None:
    _held[:] = list(_alive)
    for database in _held:
        database.before_fork()


def _after() -> None:
    while _held:
        _held.pop().after_fork()


os.register_at_fork(before=_before, after_in_parent=_after, after_in_child=_after)
