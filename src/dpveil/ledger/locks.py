"""A lock of the log beside SQLite's own, which a process loses when it closes one of the files elsewhere.

Locks of `flock` belong to the open descriptor, so that no other use of the file in this process drops them.
Systems without them do without.
"""

from __future__ import annotations

import os
import time
from errno import EACCES, EAGAIN, EBUSY, EWOULDBLOCK
from typing import Final

try:
    import fcntl

    LOCKS = True
except ImportError:
    LOCKS = False

PAUSE: Final = 0.001
"""Seconds between two tries."""


def hold(handle: int, patience: float) -> None:
    """Lock an open file for this descriptor alone; raises `OSError` after `patience` seconds."""
    until = time.monotonic() + patience
    while LOCKS:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            if error.errno not in (EWOULDBLOCK, EAGAIN, EACCES):
                raise
            if time.monotonic() > until:
                raise OSError(EBUSY, "its log is locked") from error
            time.sleep(PAUSE)
        else:
            return


def free(handle: int) -> None:
    """Unlock it, also for a child that inherited the descriptor and has not started its program yet."""
    if LOCKS:
        fcntl.flock(handle, fcntl.LOCK_UN)


def opened(path: str) -> int:
    """Open a log to lock and flush it; -1 if there is none. Raises `OSError`."""
    try:
        return os.open(path, os.O_RDONLY | os.O_CLOEXEC | getattr(os, "O_NOFOLLOW", 0))
    except FileNotFoundError:
        return -1
