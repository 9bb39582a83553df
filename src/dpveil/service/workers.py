"""Workers: processes of their own, each for one request at a time, which are killed and replaced.

Nothing that they send is trusted: they decode files from strangers.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import Any, Final

from dpveil.errors import OutputError
from dpveil.processes import Child, Ended, Pool
from dpveil.service.limits import Limits
from dpveil.service.problems import ServiceError, WorkerEnded, busy, refusal

TARGET: Final = "dpveil.service.worker:serve"  # what a worker runs
USUAL: Final = (os.cpu_count() or 1) + 1
"""Workers that keep all cores busy: one more than these, as a worker waits while a release is paid for."""
START_SECONDS: Final = 120  # seconds within which a worker is ready; it takes two


class Worker:
    """A worker that one request has alone."""

    def __init__(self, child: Child, threads: ThreadPoolExecutor) -> None:
        self._child, self._threads = child, threads

    async def ask(
        self, told: dict[str, Any], *photo: bytes, seconds: float, most: int = 0
    ) -> tuple[dict[str, Any], list[bytes]]:
        """Return the answer to a question, with at most `most` bytes beside it."""
        ask = partial(self._child.ask, told, *photo, seconds=seconds, most=most)
        call = asyncio.get_running_loop().run_in_executor(self._threads, ask)
        try:
            answer, arrays = await asyncio.shield(call)
        except asyncio.CancelledError:
            self._child.kill()
            with suppress(Ended):
                await call
            raise
        except Ended as error:
            slow = seconds if error.why == "time" else None
            raise WorkerEnded(slow=slow, memory=error.why == "memory") from error
        if not isinstance(answer, dict):
            raise WorkerEnded
        if isinstance(reported := answer.get("error"), dict):
            raise refusal(reported)
        return answer, [array.tobytes() for array in arrays]


class Workers:
    """`count` workers, which start when they are needed; `limits.waiting` requests at most wait for one."""

    def __init__(self, count: int, limits: Limits) -> None:
        self.count, self.limits = count, limits
        self.waiting = self.busy = 0
        self.ready = False
        memory, seconds = limits.worker_bytes, max(limits.media_seconds, limits.draw_seconds)
        self._pool = Pool(TARGET, memory=memory, seconds=seconds, idle=count, one_thread=True)
        self._free = asyncio.Semaphore(count)
        self._threads = ThreadPoolExecutor(count, "worker")

    @property
    def replaced(self) -> int:
        return self._pool.deaths

    async def start(self) -> None:
        """Start a worker; raises `OutputError` if it cannot start."""
        try:
            async with self.worker():
                self.ready = True
        except ServiceError as error:
            hint = "release a photo by dpveil obfuscate as the same user, which says more"
            raise OutputError(f"no worker can start: {error.__cause__}", hint=hint) from error

    @asynccontextmanager
    async def worker(self) -> AsyncIterator[Worker]:
        """Wait for a worker and have it alone; refuses if too many requests wait already."""
        if self.waiting >= self.limits.waiting:
            raise busy("too many requests wait for a worker", after=5)
        self.waiting += 1
        try:
            await self._free.acquire()
        finally:
            self.waiting -= 1
        self.busy += 1
        try:
            with self._pool.child() as child:
                worker = Worker(child, self._threads)
                if not child.asked:  # a new one loads what it needs, which is no request's time
                    await worker.ask({"do": "start"}, seconds=START_SECONDS)
                yield worker
        except Ended as error:
            raise busy("no worker can start", after=5) from error
        finally:
            self.busy -= 1
            self._free.release()

    def end(self) -> None:
        self._threads.shutdown()
        self._pool.end()
