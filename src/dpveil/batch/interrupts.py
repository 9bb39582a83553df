"""Ctrl-C and termination: delayed while files are saved, and heard by a run where nothing is lost by it."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from types import FrameType
from typing import Any, Final, Self

SIGNALS: Final = (signal.SIGTERM, signal.SIGINT)
SAME: Final = 1.0
"""Seconds in which terminations are one: `timeout` of GNU sends two, to its command and to the group."""


@contextmanager
def delay_interrupts() -> Iterator[None]:
    """Delay Ctrl-C and termination until the context ends, so that a pair of files is not torn apart.

    Raises `KeyboardInterrupt` at the end if there was one, unless the handler before does something else with
    it. Has no effect outside the main thread.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    held: list[int] = []

    def hold(number: int, frame: FrameType | None) -> None:
        held.append(number)

    before: dict[int, Any] = {}
    try:
        for each in SIGNALS:
            handler = signal.getsignal(each)
            if handler not in (signal.SIG_IGN, None):  # background jobs, embedded Python
                before[each] = handler
                signal.signal(each, hold)
        yield
    finally:
        _restore(before)
        for number in held:  # even if the block raised: an interrupt must not be lost
            if not callable(before[number]):
                raise KeyboardInterrupt
            before[number](number, None)


class Interrupts:
    """Counts the `presses` of Ctrl-C, and terminations, while it is entered, and raises nothing.

    What the handlers before would raise as `KeyboardInterrupt` is a press; whatever else they do, they do.
    Terminations within a second are one. Signals that are ignored, or end the process at once, are left
    alone, as are all outside the main thread.
    `notice` is called, within a signal's handler, at the first press that something has `heard`.
    """

    def __init__(self, notice: Callable[[], None] = lambda: None) -> None:
        self.presses, self._terminated = 0, -SAME
        self._notice, self._before = notice, dict[int, Any]()
        self._hear: Callable[[], None] | None = None
        self._raises = self._silent = False

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            try:
                for each in SIGNALS:
                    handler = signal.getsignal(each)
                    if callable(handler):
                        self._before[each] = handler
                        signal.signal(each, self._press)
            except BaseException:  # by a signal that is still handled as before
                _restore(self._before)
                raise
        return self

    def __exit__(self, *_: object) -> None:
        _restore(self._before)

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
    def heard(self, hear: Callable[[], None], *, silent: bool = False) -> Iterator[None]:
        """Call `hear` at every press in this context, within a signal's handler, and now if there was one.

        Where it is `silent`, as nothing is being drawn, there is no notice of it.
        """
        self._hear, self._silent = hear, silent
        try:
            if self.presses:
                hear()
            yield
        finally:
            self._hear = None

    def _press(self, number: int, frame: FrameType | None) -> None:
        raises = self._raises  # what another signal raises in the handler before is raised below
        try:
            self._before[number](number, frame)
        except KeyboardInterrupt:
            if number == signal.SIGTERM and self._is_same():
                return
            self.presses += 1
        else:
            return
        if raises:
            self._raises = False
            raise KeyboardInterrupt
        if self._hear is not None:
            self._hear()
            if self.presses == 1 and not self._silent:
                self._notice()

    def _is_same(self) -> bool:
        """Whether a termination belongs to the last one that was counted."""
        now = time.monotonic()
        if now - self._terminated < SAME:
            return True
        self._terminated = now
        return False


def _restore(before: Mapping[int, Any]) -> None:
    """Set handlers again, all of them also if one of a program raises as soon as it is set."""
    handlers = [*before.items()]
    try:
        for each in handlers:
            signal.signal(*each)
    finally:
        for each in handlers:
            signal.signal(*each)
