"""Connections of one process to a server: each is used by one thread at a time, and none survives a fork.

Only plain locks are used. The locks of a semaphore or of a condition may be held by another thread at the
moment of a fork, and would stay locked in the child.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final

from dpveil.ledger.postgres_wire import Wire

MOST: Final = 8
"""Most connections of one ledger: so many callers wait for the same flush of the server's log."""


@dataclass
class Slot:
    """A place for one connection, which whoever holds the lock may use."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    wire: Wire | None = None

    def shut(self) -> None:
        """Close the connection, if there is one; the server undoes what was not committed."""
        wire, self.wire = self.wire, None
        if wire is not None:
            wire.connection.close()


class Slots:
    """The places for `MOST` connections, of which the first free one is taken."""

    def __init__(self) -> None:
        self._all = tuple(Slot() for _ in range(MOST))
        self._next = itertools.count()

    @contextmanager
    def one(self) -> Iterator[Slot]:
        """Hold one of them, once one is free."""
        slot = next((each for each in self._all if each.lock.acquire(blocking=False)), None)
        if slot is None:
            slot = self._all[next(self._next) % MOST]
            slot.lock.acquire()
        try:
            yield slot
        finally:
            slot.lock.release()

    def hold(self) -> None:
        """Wait until nobody uses a connection, close them all, and hold them."""
        for slot in self._all:
            slot.lock.acquire()
            slot.shut()

    def free(self) -> None:
        """Let go of what `hold` holds."""
        for slot in self._all:
            slot.lock.release()
