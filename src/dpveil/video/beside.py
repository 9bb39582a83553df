"""Stages of a pass over a clip side by side: each in a thread of its own, with a few frames between them.

What a stage returns stays a function of its frames, as each takes them one by one and in order. Decoding,
networks and encoding leave Python's lock to others while they compute.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from types import TracebackType
from typing import Final, ParamSpec, TypeVar

from dpveil.video.facts import Facts

MOST: Final = 8
"""Most frames between two stages."""
BYTES: Final = 2**25
"""Most bytes of them, unless one frame has more."""

Item = TypeVar("Item")
Given = ParamSpec("Given")


def room_for(facts: Facts) -> int:
    """Return how many frames of a clip may wait between two stages.

    >>> from fractions import Fraction
    >>> one = dict(sha256="", format="mp4", codec="h264", audio=False, time_base=Fraction(1), start=0)
    >>> [room_for(Facts(**one, steps=(), width=w, height=w * 9 // 16)) for w in (640, 1920, 3840)]
    [8, 5, 1]
    """
    return max(1, min(MOST, BYTES // (3 * facts.width * facts.height)))


def ahead(items: Iterator[Item], most: int) -> Generator[Item]:
    """Yield items in order, of which a thread makes up to `most` in advance.

    What making one raises is raised in its turn. Close it, also after an error: the thread has ended then.
    """
    end = object()
    worker = ThreadPoolExecutor(1, thread_name_prefix="ahead")
    try:
        due = deque(worker.submit(next, items, end) for _ in range(most))
        while (item := due.popleft().result()) is not end:
            due.append(worker.submit(next, items, end))
            yield item  # type: ignore[misc]
    finally:
        worker.shutdown(cancel_futures=True)
        if isinstance(items, Generator):
            items.close()


class Beside:
    """Calls in one other thread, in order, of which at most `most` wait; use it as a context manager.

    What a call raises is raised by a later one, or on leaving the context, which waits for all of them; after
    an error, it drops those that have not begun.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._worker = ThreadPoolExecutor(1, thread_name_prefix="beside")
        self._due: deque[Future[object]] = deque()

    def __enter__(self) -> Beside:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            while kind is None and self._due:
                self._due.popleft().result()
        finally:
            self._worker.shutdown(cancel_futures=True)

    def call(self, function: Callable[Given, object], *args: Given.args, **more: Given.kwargs) -> None:
        """Call `function` after all others, as soon as there is room."""
        while len(self._due) >= self._most:
            self._due.popleft().result()
        self._due.append(self._worker.submit(function, *args, **more))
