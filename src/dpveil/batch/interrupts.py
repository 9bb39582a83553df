"""Delays Ctrl-C and termination while a pair of files is saved."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Delay Ctrl-C and termination until the context ends, so that a pair of files is not torn apart.

    Raises `KeyboardInterrupt` at the end if there was one. Has no effect outside the main thread.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    held: list[int] = []

    def hold(number: int, frame: FrameType | None) -> None:
        held.append(number)

    before: dict[int, Any] = {}
    try:
        for each in (signal.SIGINT, signal.SIGTERM):
            if signal.getsignal(each) not in (signal.SIG_IGN, None):  # background jobs, embedded Python
                before[each] = signal.signal(each, hold)
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        if held:  # even if the block raised: an interrupt must not be lost
            raise KeyboardInterrupt
