"""A thread that runs calls in the order in which they come; those that wait for it are run at one go.

To wake a thread, and to be told by it, takes longer than most calls do: a group needs both once. It also lets
the owner of the calls do once for a group what each call alone would need, as a flush of the disk.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from typing import Any, Final, TypeVar

Made = TypeVar("Made")
MOST: Final = 64
"""Most calls in a group, so that the first does not wait for many."""


@dataclass(eq=False)
class Call:
    """A call of a function, what it returned or raised, and who waits for that, if anybody does."""

    do: Callable[..., Any]
    arguments: tuple[Any, ...]
    waits: asyncio.Future[Any] | None = None
    made: Any = None
    error: BaseException | None = None

    def run(self) -> None:
        """Call the function; raises nothing."""
        self.made = self.error = None
        try:
            self.made = self.do(*self.arguments)
        except BaseException as error:  # noqa: BLE001  raised where it is waited for
            self.error = error

    def tell(self) -> None:
        """Tell who waits for it, unless that was cancelled."""
        if self.waits is None or self.waits.done():
            return
        if self.error is None:
            self.waits.set_result(self.made)
        else:
            self.waits.set_exception(self.error)


Together = Callable[[Sequence[Call]], None]
"""Runs several calls, each of which afterwards has what it returned or raised."""


def one_by_one(calls: Sequence[Call]) -> None:
    """Run calls one after another."""
    for call in calls:
        call.run()


class Batches:
    """One thread of that name, which begins with the first call; used from one event loop.

    `together` runs a group of calls.
    """

    def __init__(self, name: str, together: Together = one_by_one) -> None:
        self._together = together
        self._calls: SimpleQueue[Call | None] = SimpleQueue()
        self._begun = self._ended = 0
        self._last: Call | None = None
        self._thread = threading.Thread(target=self._work, name=name, daemon=True)

    @property
    def idle(self) -> bool:
        """Whether no call is under way, so that what the thread uses may be used here."""
        return self._begun == self._ended

    async def run(self, do: Callable[..., Made], *arguments: Any) -> Made:
        """Return what a function returns that is called in the thread; raises what it raises."""
        call = Call(do, arguments, asyncio.get_running_loop().create_future())
        self._put(call)
        made: Made = await call.waits  # type: ignore[misc]
        return made

    def submit(self, do: Callable[..., object], *arguments: Any) -> None:
        """Have a function called in the thread, whatever it returns or raises."""
        self._put(Call(do, arguments))

    def end(self, last: Callable[[], object]) -> None:
        """Call `last` in the thread, after all calls, and wait until it has ended; raises what it raises."""
        if not self._begun:
            self._thread.start()
        call = Call(last, ())
        self._last = call
        self._calls.put(None)
        self._thread.join()
        if call.error is not None:
            raise call.error

    def _put(self, call: Call) -> None:
        if not self._begun:
            self._thread.start()
        self._begun += 1
        self._calls.put(call)

    def _work(self) -> None:
        ended = False
        while not ended:
            group: list[Call | None] = [self._calls.get()]
            with suppress(Empty):
                while len(group) < MOST:
                    group.append(self._calls.get_nowait())
            calls = [call for call in group if call is not None]
            ended = len(calls) < len(group)
            if calls:
                self._together(calls)
                self._ended += len(calls)
                _tell(calls)
        if self._last is not None:
            self._last.run()


def _tell(calls: Sequence[Call]) -> None:
    """Tell all who wait, in their event loop, at one go."""
    waiting = [call for call in calls if call.waits is not None]
    if waiting:
        with suppress(RuntimeError):  # the loop is closed: nobody waits any more
            waiting[0].waits.get_loop().call_soon_threadsafe(_told, waiting)  # type: ignore[union-attr]


def _told(calls: Sequence[Call]) -> None:
    for call in calls:
        call.tell()
