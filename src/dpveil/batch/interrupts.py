"""Ctrl-C and termination, heard by a run where nothing is lost by it."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Final, Self

SIGNALS: Final = (signal.SIGTERM, signal.SIGINT)
SAME_SECONDS: Final = 1.0
"""Seconds in which terminations are one: `timeout` of GNU sends two, to its command and to the group."""


class Interrupts:
    """Counts the `presses` of Ctrl-C, and terminations, while it is entered.

    Signals that would not raise `KeyboardInterrupt` are left alone, as are all outside the main thread.
    `notice` is called, within a signal's handler, at the first press that something handles.
    """

    def __init__(self, notice: Callable[[], None] = lambda: None) -> None:
        self.presses, self._terminated = 0, -SAME_SECONDS
        self._notice, self._held = notice, list[signal.Signals]()
        self._hear: Callable[[], None] | None = None
        self._raises = False

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            self._held = [each for each in SIGNALS if signal.getsignal(each) is signal.default_int_handler]
            for each in self._held:
                signal.signal(each, self._press)
        return self

    def __exit__(self, *_: object) -> None:
        for each in self._held:
            signal.signal(each, signal.default_int_handler)

    @contextmanager
    def raising(self) -> Iterator[None]:
        """Raise `KeyboardInterrupt` at the first press, as nothing is lost by that in this context.

        Only one is ever raised: none comes while another is handled.
        """
        try:
            self._raises = True
            if self.presses:
                self._raises = False
                raise KeyboardInterrupt
            yield
        finally:
            self._raises = False

    @contextmanager
    def handled_by(self, hear: Callable[[], None]) -> Iterator[None]:
        """Call `hear` at every press in this context, within a signal's handler, and now if there was one."""
        self._hear = hear
        try:
            if self.presses:
                hear()
            yield
        finally:
            self._hear = None

    def _press(self, number: int, frame: FrameType | None) -> None:
        if number == signal.SIGTERM:
            now = time.monotonic()
            if now - self._terminated < SAME_SECONDS:
                return
            self._terminated = now
        self.presses += 1
        if self._raises:
            self._raises = False
            raise KeyboardInterrupt
        if self._hear is not None:
            self._hear()
            if self.presses == 1:
                self._notice()
