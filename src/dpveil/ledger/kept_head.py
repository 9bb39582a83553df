"""The newest head of each ledger that this user wrote to: an older copy, or one that was cut off, lacks it.

It is a file of the state folder, named by the random name of the ledger, which copies share. It may be behind
the ledger, as after a crash between a commit and its head. Where no state folder can be used, none is kept.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from dpveil.errors import InvalidParameter
from dpveil.io.folders import state_home
from dpveil.io.locking import in_use
from dpveil.ledger.check import parse_head

WIDTH: Final = 90
"""Bytes of the file: heads are written over one another, and one short write is never seen in part."""


def kept(name: str) -> tuple[int, str] | None:
    """Return number and hash of the head that is kept of a ledger, if any."""
    try:
        with _opened(name, os.O_RDONLY) as handle:
            return _read(handle)
    except OSError:
        return None


def keep(name: str, number: int, head: str, *, back: bool = False) -> bool:
    """Keep the head of a ledger, unless a later one is kept and may not be put `back`.

    Return whether heads can be kept.
    """
    try:
        state_home().mkdir(mode=0o700, parents=True, exist_ok=True)
        with _opened(name, os.O_RDWR | os.O_CREAT) as handle:
            if back or (_read(handle) or (0, ""))[0] < number:
                os.lseek(handle, 0, os.SEEK_SET)
                os.write(handle, f"{number}:{head}".ljust(WIDTH).encode())
    except OSError:
        return False
    return True


@contextmanager
def _opened(name: str, how: int) -> Iterator[int]:
    handle = os.open(state_home() / f"{name}.head", how | os.O_CLOEXEC, 0o600)
    try:
        with in_use(handle):
            yield handle
    finally:
        os.close(handle)


def _read(handle: int) -> tuple[int, str] | None:
    try:
        return parse_head(os.read(handle, WIDTH).decode("ascii"))
    except (InvalidParameter, ValueError):  # empty, as after a crash when it was new
        return None
