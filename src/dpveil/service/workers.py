"""Workers: processes of their own, each for one request at a time, which are killed and replaced."""

from __future__ import annotations

import asyncio
import os
import secrets
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import Any, Final

from dpveil.errors import DPVeilError, OutputError
from dpveil.processes import Child
from dpveil.service import log
from dpveil.service.problems import Busy, WorkerEnded, refusal
from dpveil.service.settings import Limits

Message = tuple[dict[str, Any], bytes]
"""What is told, and the bytes that go with it: a photo, or a release."""
TARGET: Final = "dpveil.service.worker:serve"
"""What a worker runs."""
USUAL: Final = (os.cpu_count() or 1) + 1
"""Workers that keep all cores busy: one more than these, as a worker waits while a release is paid for."""
START_SECONDS: Final = 120
"""Seconds within which a worker is ready; it takes two."""
PAUSE_SECONDS: Final = 5
"""Seconds before another attempt where a worker cannot be started."""


class Worker:
    """One process, which is asked one request after another; one that was left in the middle is killed.

    Nothing that it sends is trusted: it decodes files from strangers.
    """

    def __init__(self, limits: Limits, target: str) -> None:
        self.child, self.limits = Child(target, memory=limits.worker_bytes, one_thread=True), limits
        self.talking = self._waits = False
        self.progress: tuple[int, int] | None = None
        """How much of a document or clip is done, of how much, as the worker says."""
        self._number: str | None = None
        self._thread = ThreadPoolExecutor(1, "worker")

    @classmethod
    async def start(cls, limits: Limits, target: str) -> Worker:
        """Return a new worker that is ready; raises `WorkerEnded` if it does not get there, and `OSError`."""
        worker = cls(limits, target)
        try:
            await worker._exchange(START_SECONDS)
        except BaseException:
            await worker.end()
            raise
        return worker

    async def ask(self, told: dict[str, Any], contents: bytes, seconds: float) -> Message:
        """Send a request and return the first answer; raises the error that the worker reports.

        A release that has to be `paid` waits for `draw` or `drop` once it is planned; any other is drawn at
        once. Raises `WorkerEnded` if the process ends or takes longer than `seconds`; then it is killed.
        Every answer repeats a random number of the request: what was said before it is no answer to it.
        """
        self.talking, self._waits, self._number = True, told.get("paid", True), secrets.token_hex(8)
        self.progress = None
        asked = {**told, "number": self._number}
        return await self._answer(seconds, 0, partial(self.child.channel.send, asked, contents))

    async def draw(self, room: int) -> Message:
        """Have a planned release drawn, unless that has begun, and return it; raises as `ask`.

        Its certificate and image have `room` bytes together at most.
        """
        said = partial(self.child.channel.send, {"do": "draw"}) if self._waits else None
        release = _split_answer(*await self._answer(self.limits.draw_seconds, room, said))
        await self.finish()
        return release

    async def drop(self, room: int) -> None:
        """Let go of a request that was planned: it is not drawn, or what is drawn is forgotten.

        Raises nothing: a worker that ends meanwhile is not usable.
        """
        with suppress(DPVeilError):
            if self._waits:
                await self.finish(partial(self.child.channel.send, {"do": "drop"}))
            else:
                await self._exchange(self.limits.draw_seconds, room)
                await self.finish()

    async def finish(self, said: Callable[[], None] | None = None) -> None:
        """Hear that the request is done, after which the next may be asked."""
        told, _ = await self._exchange(self.limits.plan_seconds, 0, said)
        self.talking = not told.get("done")

    async def _answer(self, seconds: float, most: int, said: Callable[[], None] | None) -> Message:
        answer, contents = await self._exchange(seconds, most, said)
        if "error" in answer:
            if not isinstance(error := answer["error"], dict):
                raise WorkerEnded
            await self.finish()
            raise refusal(error)
        return answer, contents

    async def _exchange(
        self, seconds: float, most: int = 0, said: Callable[[], None] | None = None
    ) -> Message:
        """Say something, and return the next answer to the request, with `most` bytes beside it."""

        def hear() -> Any:
            if said is not None:
                said()
            while (message := self.child.channel.receive(most)) is not None:
                if (progress := _progress(message[0], self._number)) is None:
                    break
                self.progress = progress
            return message

        try:
            async with asyncio.timeout(seconds):
                message = await asyncio.get_running_loop().run_in_executor(self._thread, hear)
        except TimeoutError as error:
            raise WorkerEnded(slow=seconds) from error
        except OSError as error:
            raise WorkerEnded(died=True) from error
        except ValueError as error:
            raise WorkerEnded from error
        if message is None:
            raise WorkerEnded(died=True)
        answer, arrays = message
        if not isinstance(answer, dict) or answer.pop("number", None) != self._number or len(arrays) > 1:
            raise WorkerEnded
        if "failed" in answer:
            kind = answer["failed"] if isinstance(answer["failed"], str) else ""
            raise WorkerEnded(kind=kind[:300], memory=kind == "MemoryError")
        return answer, arrays[0].tobytes() if arrays else b""

    @property
    def runs(self) -> bool:
        """Whether the process has not ended."""
        return self.child.process.poll() is None

    @property
    def usable(self) -> bool:
        """Whether the process runs, waits for a request, and says nothing unasked."""
        return self.runs and not self.talking and self.child.channel.silent

    async def end(self) -> None:
        """Kill the process, whatever it does."""
        self.child.kill()
        self._thread.shutdown(wait=False)
        await asyncio.to_thread(self.child.end)


def _progress(said: Any, number: str | None) -> tuple[int, int] | None:
    """Return the progress that a message tells of the request of this number; None for any other message."""
    told = said.get("progress") if isinstance(said, dict) and said.get("number") == number else None
    match told:
        case [int(done), int(of)] if 0 <= done <= of < 1 << 31:
            return done, of
    return None


def _split_answer(answer: dict[str, Any], contents: bytes) -> Message:
    """Return a release with the certificate that is before the image; raises `WorkerEnded` if none is."""
    size = answer.get("certificate")
    if type(size) is not int or not 0 <= size <= len(contents):
        raise WorkerEnded
    try:
        return {**answer, "certificate": contents[:size].decode()}, contents[size:]
    except UnicodeDecodeError as error:
        raise WorkerEnded from error


def _reason(error: WorkerEnded | OSError) -> str:
    """Return why a worker did not start."""
    if isinstance(error, OSError):
        return str(error)
    return error.kind or (f"it is not ready after {error.slow:g} s" if error.slow else "it ended at once")


class Pool:
    """`count` workers, which are started at once; requests wait in line for one, `limits.waiting` at most."""

    def __init__(self, count: int, limits: Limits) -> None:
        self.count, self.limits, self.target = count, limits, TARGET
        self.waiting = self.busy = self.replaced = 0
        self._idle: asyncio.LifoQueue[Worker] = asyncio.LifoQueue()
        self._all: set[Worker] = set()
        self._starting: set[asyncio.Task[None]] = set()

    async def start(self) -> None:
        """Start a worker, then begin to start the others; raises `OutputError` if the first cannot start."""
        try:
            self._add(await Worker.start(self.limits, self.target))
        except (WorkerEnded, OSError) as error:
            hint = "release a photo by dpveil obfuscate as the same user, which says more"
            raise OutputError(f"no worker can start: {_reason(error)}", hint=hint) from error
        for _ in range(self.count - 1):
            self._begin()

    @property
    def ready(self) -> bool:
        """Whether a worker runs."""
        return any(worker.runs for worker in self._all)

    @asynccontextmanager
    async def worker(self) -> AsyncIterator[Worker]:
        """Wait for a worker and have it alone; raises `Busy` if too many requests wait already."""
        if self.waiting >= self.limits.waiting:
            raise Busy("too many requests wait for a worker", after=5)
        worker = await self._next()
        self.busy += 1
        try:
            yield worker
        finally:
            self.busy -= 1
            if worker.usable:
                self._idle.put_nowait(worker)
                if self.waiting:
                    await asyncio.sleep(0)  # whoever waits for it asks it before this task goes on
            else:
                await asyncio.shield(self._replace(worker))

    async def _next(self) -> Worker:
        self.waiting += 1
        try:
            while True:
                worker = await self._idle.get()
                if worker.usable:
                    return worker
                await asyncio.shield(self._replace(worker))
        finally:
            self.waiting -= 1

    async def _replace(self, worker: Worker) -> None:
        self.replaced += 1
        self._all.discard(worker)
        await worker.end()
        self._begin()

    def _begin(self) -> None:
        task = asyncio.create_task(self._start_worker())
        self._starting.add(task)
        task.add_done_callback(self._starting.discard)

    async def _start_worker(self) -> None:
        while True:
            try:
                return self._add(await Worker.start(self.limits, self.target))
            except (WorkerEnded, OSError) as error:
                log.write("worker not started", reason=_reason(error))
            await asyncio.sleep(PAUSE_SECONDS)

    def _add(self, worker: Worker) -> None:
        self._all.add(worker)
        self._idle.put_nowait(worker)

    async def end(self) -> None:
        """Kill all workers."""
        starting = [*self._starting]
        for task in starting:
            task.cancel()
        await asyncio.gather(*starting, return_exceptions=True)
        await asyncio.gather(*(worker.end() for worker in self._all))
