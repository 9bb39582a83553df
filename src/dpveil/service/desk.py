"""The desk: takes requests, has them planned, pays, has them drawn, and keeps what was made.

The server pays, never a worker: workers decode files from strangers, and hold neither ledger nor keys. What
was committed is finished, or lost if its worker ends; it is never drawn a second time for one payment.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import sqlite3
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from dpveil.core.certificate_text import parse_certificate, parse_guarantee
from dpveil.errors import BudgetRefused, DPVeilError, LedgerError
from dpveil.io import FORMATS
from dpveil.io.containers import format_name
from dpveil.service import log
from dpveil.service.budget import Budget
from dpveil.service.keys import Caller
from dpveil.service.limits import Limits
from dpveil.service.metrics import Metrics
from dpveil.service.pool import Pool, Worker
from dpveil.service.problems import (
    Busy,
    Conflict,
    Lost,
    NotKept,
    Refusal,
    WorkerEnded,
    kind_of,
    problem,
    status_of,
)
from dpveil.service.store import FAILED, Result, Store
from dpveil.service.upload import Share

Made = TypeVar("Made")
SMALL: Final = 1 << 20
"""Bytes below which a release is checked at once: another thread would take longer."""
STOPS: Final = "the service stops, and this was not paid for yet"


@dataclass
class Order:
    """What is to be released: the photo until a worker has it, the settings, and who pays under which key."""

    photo: bytes
    settings: dict[str, Any]
    subject: str | None
    caller: Caller
    key: str | None
    digest: bytes


@dataclass(eq=False)
class Job:
    """An order that is being made; `paid` once its payment has begun, after which it is finished.

    It is `shared` once a second request with its key was told of it.
    """

    id: str
    task: asyncio.Task[None]
    paid: bool = False
    cancelled: bool = False
    shared: bool = False

    def cancel(self) -> None:
        """Cancel it once: a second time would cancel that it is noted."""
        if not self.cancelled:
            self.cancelled = True
            self.task.cancel()


class Desk:
    """Everything between HTTP and workers. Results and ledger are used in a thread of their own each."""

    def __init__(self, pool: Pool, store: Store, budget: Budget, limits: Limits, metrics: Metrics) -> None:
        self.pool, self.store, self.budget, self.limits, self.metrics = pool, store, budget, limits, metrics
        self.closing = False
        self._jobs: dict[str, Job] = {}
        self._results = ThreadPoolExecutor(1, "results")
        self._payments = ThreadPoolExecutor(1, "payments")

    async def ask(self, do: str, settings: dict[str, Any], photo: bytes = b"") -> dict[str, Any]:
        """Return a worker's answer to what draws nothing: methods, an explanation, a plan."""
        told = {"do": do, "settings": settings, "pixels": self.limits.pixels}
        async with self.pool.worker() as worker:
            answer, _ = await worker.ask(told, photo, self.limits.plan_seconds)
            await worker.finish()
            return answer

    async def begin(self, order: Order, share: Share) -> tuple[Result, bool]:
        """Return the result of an order, which may still be in the making, and whether it is a new one."""
        if self.closing:
            raise Busy(STOPS, after=10)
        owner = order.caller.number
        result, new = await self.results(self.store.begin, owner, order.key, order.digest)
        if new:
            task = asyncio.create_task(self._make(result.id, order, share))
            self._jobs[result.id] = Job(result.id, task)
        elif (job := self._jobs.get(result.id)) is not None:
            job.shared = True
        return result, new

    async def wait(self, id_: str, seconds: float) -> bool:
        """Wait until a result is made, or the time is over; return whether it is of one request alone."""
        job = self._jobs.get(id_)
        if job is None:
            return False
        await asyncio.wait([job.task], timeout=seconds)
        return not job.shared

    async def cancel(self, caller: Caller, id_: str) -> None:
        """Cancel what is not paid for, or forget what was made; raises `Conflict` while it is drawn."""
        job = self._jobs.get(id_)
        if job is not None and job.paid:
            raise Conflict("what is paid for is finished first", hint="ask again in a few seconds")
        if job is not None:
            job.cancel()
            await asyncio.wait([job.task])
        await self.results(self.store.delete, id_)

    async def results(self, do: Callable[..., Made], *arguments: Any) -> Made:
        """Return what a method of the store returns, called in its thread.

        Raises `NotKept` if the database fails, as on a full disk.
        """
        try:
            return await asyncio.get_running_loop().run_in_executor(self._results, do, *arguments)
        except (sqlite3.Error, OSError) as error:
            log.error("results")
            raise NotKept from error

    async def payments(self, do: Callable[..., Made], *arguments: Any) -> Made:
        """Return what a method of the budget returns, called in its thread, if there is a ledger."""
        if self.budget.ledger is None:
            return do(*arguments)
        return await asyncio.get_running_loop().run_in_executor(self._payments, do, *arguments)

    async def close(self) -> None:
        """Cancel what is not paid for, and finish the rest."""
        self.closing = True
        for job in [*self._jobs.values()]:
            if not job.paid:
                job.cancel()
        if self._jobs:
            await asyncio.wait([job.task for job in self._jobs.values()])

    def end(self) -> None:
        """Close results and ledger, once nothing uses them."""
        for thread, owner in ((self._results, self.store), (self._payments, self.budget)):
            thread.submit(owner.close).result()
            thread.shutdown()

    async def _make(self, id_: str, order: Order, share: Share) -> None:
        """Make a release and keep it, or why it was not made; raises nothing."""
        try:
            await self._release(self._jobs[id_], order, share)
            self.metrics.releases.inc()
        except asyncio.CancelledError:
            await self._failed(id_, Busy(STOPS, after=10))
        except DPVeilError as error:
            self.metrics.refused.inc(isinstance(error, BudgetRefused))
            self.metrics.lost.inc(isinstance(error, Lost))
            await self._failed(id_, error)
        except Exception:  # noqa: BLE001  logged, and told as an error of the service
            log.error("release")
            await self._failed(id_, DPVeilError("the service failed", hint="its log says where"))
        finally:
            share.free()
            self._jobs.pop(id_, None)

    async def sweep(self) -> None:
        """Forget what has expired, and note what failed where that could not be noted before.

        A result that is looked for has its job already: results and their jobs begin in one order.
        """
        await self.results(self.store.sweep)
        for id_ in await self.results(self.store.unfinished):
            if id_ not in self._jobs:
                await self._failed(id_, DPVeilError("the service failed", hint="send it again"))

    async def _failed(self, id_: str, error: DPVeilError) -> None:
        """Note why a result was not made; what cannot be noted now, as on a full disk, is swept later."""
        with suppress(NotKept):
            await asyncio.shield(self.results(self.store.fail, id_, json.dumps(problem(error))))
        log.write("failed", kind=kind_of(error), status=status_of(error))

    async def _release(self, job: Job, order: Order, share: Share) -> None:
        paid = self.budget.ledger is not None
        told = {"do": "release", "settings": order.settings, "pixels": self.limits.pixels, "paid": paid}
        async with self.pool.worker() as worker:
            planned, _ = await worker.ask(told, order.photo, self.limits.plan_seconds)
            order.photo = b""
            share.free()
            room = min(max(int(planned["room"]), 0), self.limits.results_bytes)
            job.paid = True  # from here on it is not cancelled
            try:
                await self._room(job.id, room)
            except DPVeilError:
                await worker.drop()
                raise
            try:
                await self._paid(job, order, worker, planned)
            finally:
                self.store.free(room)

    async def _room(self, id_: str, size: int) -> None:
        """Keep room for a release, and hold it on the disk; raises `Busy` if there is none.

        What nobody has seen is not forgotten for it.
        """
        if not self.store.has_room(size):
            await self.results(self.store.make_room, size)
            if not self.store.has_room(size):
                raise Busy("the results that are kept leave no room for another", after=60)
        try:
            await self.results(self.store.hold, id_, size)
        except BaseException:
            self.store.free(size)
            raise

    async def _paid(self, job: Job, order: Order, worker: Worker, planned: dict[str, Any]) -> None:
        """Pay, have it drawn, and keep it: the ledger knows the file before anybody sees it."""
        owner, key, total = order.caller.number, order.key or job.id, planned["total"]
        try:
            payment = await self.payments(self.budget.pay, order.subject, planned, owner, key)
        except DPVeilError:
            await worker.drop()
            raise
        try:
            release, image = await self._drawn(worker, total)
            await self.results(self.store.keep, job.id, release, image)
            await self.payments(self.budget.stored, payment, release["sha256"])
            await self.results(self.store.show, job.id)
        except Exception as error:
            if payment is None:
                raise
            log.error("lost")
            raise Lost(_cause(error)) from error

    async def _drawn(self, worker: Worker, total: dict[str, Any] | None) -> tuple[dict[str, Any], bytes]:
        """Return what the worker drew, if it is what was paid for; raises `WorkerEnded` if it is not."""
        answer, image = await worker.tell({"do": "draw"}, self.limits.draw_seconds)
        await worker.finish()
        if len(image) + len(str(answer["certificate"])) < SMALL:
            return _checked(answer, image, total), image
        return await asyncio.to_thread(_checked, answer, image, total), image


def _cause(error: Exception) -> str:
    """Return why a release that was paid for is lost, as a clause."""
    if isinstance(error, WorkerEnded):
        return f"drawing it took longer than {error.slow:g} s" if error.slow else "its worker ended"
    if isinstance(error, NotKept):
        return "it could not be written to the results"
    if isinstance(error, LedgerError):
        return "the ledger could not note its file"
    return f"its draw was refused: {error.message}" if isinstance(error, Refusal) else "the service failed"


def _checked(answer: dict[str, Any], image: bytes, total: dict[str, Any] | None) -> dict[str, Any]:
    """Return a worker's release with its SHA-256; raises `WorkerEnded` unless it is what was paid for."""
    sha256, kind = hashlib.sha256(image).hexdigest(), (format_name(image[:64]) or "").lower()
    certificate = parse_certificate(str(answer["certificate"]))
    paid = None if total is None else parse_guarantee(total)
    output = certificate.output
    stated = None if output is None else (output.sha256, output.format)
    if (stated, certificate.composition) != ((sha256, kind), paid):
        raise WorkerEnded
    if answer["format"] != kind or kind not in FORMATS.values():  # downloads are of that type
        raise WorkerEnded
    notes = json.dumps([str(note) for note in answer["notes"]])
    return {**answer, "sha256": sha256, "notes": notes}


def failed(result: Result) -> dict[str, Any] | None:
    """Return the problem of a result that was not made; None for all others."""
    return json.loads(result.problem) if result.state == FAILED and result.problem else None
