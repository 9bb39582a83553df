"""Ctrl-C and termination: delayed while files are saved, and heard by a run where nothing is lost by it."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType, TracebackType
from typing import Any, Final, Self

SIGNALS: Final = (signal.SIGTERM, signal.SIGINT)


@contextmanager
def uninterrupted() -> Iterator[None]:
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
        for number, handler in before.items():
            signal.signal(number, handler)
        for number in held:  # even if the block raised: an interrupt must not be lost
            if not callable(before[number]):
                raise KeyboardInterrupt
            before[number](number, None)


class Interrupts:
    """Counts the `presses` of Ctrl-C, and terminations, while it is entered, and raises nothing.

    What the handlers before would raise as `KeyboardInterrupt` is a press; whatever else they do, they do.
    Signals that are ignored, or end the process at once, are left alone, as are all outside the main thread.
    `notice` is called, within a signal's handler, at the first press that something has `heard`.
    """

    def __init__(self, notice: Callable[[], None] = lambda: None) -> None:
        self.presses = 0
        self._notice, self._before = notice, dict[int, Any]()
        self._hear: Callable[[], None] | None = None
        self._raises = self._silent = False

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            for each in SIGNALS:
                handler = signal.getsignal(each)
                if callable(handler):
                    self._before[each] = handler
                    signal.signal(each, self._press)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        while self._before:
            signal.signal(*self._before.popitem())

    @contextmanager
    def raising(self) -> Iterator[None]:
        """Raise `KeyboardInterrupt` at the first press, as nothing is lost by that in this context.

        Only one is ever raised: none comes while another is handled.
        """
        if self.presses:
            raise KeyboardInterrupt
        try:
            self._raises = True
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
        try:
            self._before[number](number, frame)
        except KeyboardInterrupt:
            self.presses += 1
        else:
            return
        if self._raises:
            self._raises = False
            raise KeyboardInterrupt
        if self._hear is not None:
            self._hear()
            if self.presses == 1 and not self._silent:
                self._notice()
