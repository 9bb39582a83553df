"""Jobs: requests are planned, paid for, drawn by workers and checked, and what was made is kept.

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
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

from dpveil.core.certificate import parse_guarantee
from dpveil.core.rationals import Json
from dpveil.errors import BudgetRefused, DPVeilError, LedgerError
from dpveil.io.names import FORMATS
from dpveil.io.screening import format_name
from dpveil.service import log
from dpveil.service.budget import Budget
from dpveil.service.documents_and_clips import FORMATS as MEDIA
from dpveil.service.documents_and_clips import (
    certificate_of,
    contradictions_of,
    format_of_release,
    read_progress,
    stated_file,
    work_folder,
)
from dpveil.service.guard import FAILURE, ActiveRequests, RequestLoad
from dpveil.service.keys import Caller
from dpveil.service.limits import MOST_NOTES, Limits
from dpveil.service.metrics import Metrics
from dpveil.service.problems import (
    Lost,
    NotKept,
    ServiceError,
    WorkerEnded,
    busy,
    error_kind,
    lost_if,
    problem,
    status_of,
)
from dpveil.service.store import Result, Store
from dpveil.service.workers import Worker, Workers

if TYPE_CHECKING:
    from dpveil.release.keys import SigningKey

Made = TypeVar("Made")
STOPS: Final = "the service stops, and this was not paid for yet"
DELETED: Final = "the job was deleted before it was paid for"


@dataclass
class Order:
    """What is to be released: the photo until a worker has it, the settings, and who pays under which key.

    `share` is what the photo holds in memory, and `digest` is of photo and settings.
    """

    photo: bytes
    settings: dict[str, Any]
    subject: str | None
    caller: Caller
    key: str | None
    digest: bytes
    share: RequestLoad

    def free(self) -> None:
        self.photo = b""
        self.share.free()


@dataclass(eq=False)
class Job:
    """An order that is being made: `paid` once its payment has begun, after which it is finished."""

    id: str
    task: asyncio.Task[None]
    paid: bool = False
    deleted: bool = False
    made: bool = False
    folder: Path | None = None


class Jobs:
    """Everything between HTTP and workers. The results are used in a thread of their own."""

    def __init__(
        self,
        workers: Workers,
        store: Store,
        budget: Budget,
        limits: Limits,
        metrics: Metrics,
        sign: SigningKey | None = None,
    ) -> None:
        self.workers, self.store, self.budget, self.limits = workers, store, budget, limits
        self.metrics, self.sign, self.under_way = metrics, sign, ActiveRequests()
        self._keeping = asyncio.Semaphore(workers.count)  # a disk that is slower than workers stops them
        self.closing = False
        self._jobs: dict[str, Job] = {}
        self._results = ThreadPoolExecutor(1, thread_name_prefix="results")

    async def ask(
        self, do: str, settings: dict[str, Any], *photo: bytes, folder: Path | None = None
    ) -> dict[str, Any]:
        """Return a worker's answer to what draws nothing: methods, an explanation, a plan.

        A document or clip has a `folder`.
        """
        told = {"do": do, "settings": settings, "pixels": self.limits.pixels, "folder": str(folder)}
        seconds = self.limits.plan_seconds if folder is None else self.limits.media_seconds
        async with self.workers.worker() as worker:
            answer, _ = await worker.ask(told, *photo, seconds=seconds)
        return answer

    async def begin(self, order: Order) -> tuple[Result, bool]:
        """Return the result of an order, which may still be in the making, and whether it is a new one."""
        if self.closing:
            raise busy(STOPS, after=10)
        owner = order.caller.number
        result, new = await self.results(self.store.begin, owner, order.key, order.digest)
        if new:
            task = asyncio.create_task(self._make(result.id, order))
            self._jobs[result.id] = Job(result.id, task)
            task.add_done_callback(lambda _: self._jobs.pop(result.id))
        return result, new

    async def wait(self, id_: str, seconds: float) -> None:
        if seconds and (job := self._jobs.get(id_)) is not None:
            await asyncio.wait([job.task], timeout=seconds)

    def progress(self, id_: str) -> tuple[int, int] | None:
        """Return how much of a document or clip that is being made is done, and of how much, if known."""
        job = self._jobs.get(id_)
        return None if job is None or job.folder is None else read_progress(job.folder)

    async def cancel(self, id_: str) -> None:
        """Cancel what is not paid for, or forget what was made; refuses while it is drawn.

        What is planned is planned to its end, and counts as under way: no worker is killed for it.
        """
        job = self._jobs.get(id_)
        if job is not None and job.paid and not job.made:
            text = "what is paid for is finished first"
            raise ServiceError("Conflict", text, hint="ask again in a few seconds")
        if job is not None:
            job.deleted = True
            await self.results(self.store.fail, id_, "")
        await self.results(self.store.delete, id_)

    async def results(self, do: Callable[..., Made], *arguments: Any) -> Made:
        """Return what a method of the store returns, called in its thread, also if nobody waits for it."""
        try:
            return await asyncio.shield(asyncio.wrap_future(self._results.submit(do, *arguments)))
        except (sqlite3.Error, OSError) as error:
            log.error("results")
            raise NotKept from error

    async def payments(self, do: Callable[..., Made], *arguments: Any) -> Made:
        """Return what a method of the budget returns, which may wait for the ledger's disk."""
        return await asyncio.shield(asyncio.to_thread(do, *arguments))

    async def costs(self, do: Callable[..., dict[str, Json]], *arguments: Any) -> dict[str, Json]:
        """Return what the budget tells beside an answer; a ledger that cannot be read stops no answer."""
        with suppress(LedgerError):  # what was released is paid for, and a plan pays nothing
            return await self.payments(do, *arguments)
        return {}

    async def close(self) -> None:
        self.closing = True
        jobs = [*self._jobs.values()]
        for job in jobs:
            if not job.paid:
                job.task.cancel()
        if jobs:
            await asyncio.wait([job.task for job in jobs])

    def end(self) -> None:
        """End the workers, and close results and ledger, once nothing uses them."""
        self.workers.end()
        self._results.submit(self.store.close)
        self._results.shutdown()
        self.budget.close()

    async def sweep(self) -> None:
        """Forget what has expired, and note that failed what nobody makes any more."""
        await self.results(self.store.sweep)
        # results and their jobs begin in one order, so that a result that is looked for has its job already
        for id_ in await self.results(self.store.unfinished_ids):
            if id_ not in self._jobs:
                await self.results(self.store.fail, id_, json.dumps(problem(FAILURE)))

    async def _make(self, id_: str, order: Order) -> None:
        """Make a release and keep it, or why it was not made; raises nothing."""
        try:
            with self.under_way.count(order.caller, job=True):
                await self._release(self._jobs[id_], order)
            self.metrics.releases.inc()
        except asyncio.CancelledError:
            await self._note_failure(id_, busy(STOPS, after=10))
        except DPVeilError as error:
            self.metrics.refused.inc(isinstance(error, BudgetRefused))
            self.metrics.lost.inc(isinstance(error, Lost))
            await self._note_failure(id_, error)
        except Exception:  # noqa: BLE001  logged, and told as an error of the service
            log.error("release")
            await self._note_failure(id_, FAILURE)
        finally:
            order.free()

    async def _note_failure(self, id_: str, error: DPVeilError) -> None:
        """Note why a result was not made; what cannot be noted now, as on a full disk, is swept later."""
        log.write("failed", kind=error_kind(error), status=status_of(error))
        with suppress(NotKept):
            await self.results(self.store.fail, id_, json.dumps(problem(error)))

    async def _release(self, job: Job, order: Order) -> None:
        async with AsyncExitStack() as stack:
            if format_of_release(order.photo):
                job.folder = stack.enter_context(work_folder())
            async with self.workers.worker() as worker:
                planned = await self._plan(worker, job, order)
                room = min(max(int(planned["room"]), 0), self.limits.most_room)
                if job.deleted:
                    raise ServiceError("Conflict", DELETED)
                job.paid = True  # from here on it is not cancelled
                await self._keep_room(job.id, room)
                stack.callback(self.store.free, room)
                payer, key = (order.caller, order.subject), order.key or job.id
                payment = await self.payments(self.budget.pay, *payer, planned, key)
                with lost_if(payment):
                    seconds = self.limits.draw_seconds
                    answer, files = await worker.ask({"do": "draw"}, seconds=seconds, most=room)
                await stack.enter_async_context(self._keeping)
            with lost_if(payment):
                check = partial(check_release, answer, *files, total=planned["total"], sign=self.sign)
                release, image = await asyncio.to_thread(check), files[1]
                await self.results(self.store.keep, job.id, release, image)
                # the ledger knows the file before anybody sees it
                await self.payments(self.budget.stored, payment, release["sha256"])
                await self.results(self.store.show, job.id)
                job.made = True

    async def _plan(self, worker: Worker, job: Job, order: Order) -> dict[str, Any]:
        """Return what a release would be, as the worker says that now has the photo.

        A document or clip, which has a folder, is paid by no ledger and drawn before that is said.
        """
        paid = self.budget.ledger is not None
        told = {"do": "release", "settings": order.settings, "pixels": self.limits.pixels, "paid": paid}
        seconds = self.limits.plan_seconds
        if job.folder is not None:
            told["folder"], seconds = str(job.folder), self.limits.media_seconds
        planned, _ = await worker.ask(told, order.photo, seconds=seconds)
        order.free()
        return planned

    async def _keep_room(self, id_: str, size: int) -> None:
        """Keep room for a release, which the disk has, too; refuses if there is none.

        What nobody has seen is not forgotten for it.
        """
        while not self.store.has_room(size):  # what is made for one release may be taken by another
            if not await self.results(self.store.make_room, size):
                raise busy("the results that are kept leave no room for another", after=60)
        try:
            await self.results(self.store.check_disk, id_, size)
        except BaseException:
            self.store.free(size)
            raise


def check_release(
    answer: dict[str, Any],
    text: bytes = b"",
    image: bytes = b"",
    *others: bytes,
    total: dict[str, Any] | None,
    sign: SigningKey | None = None,
) -> dict[str, Any]:
    """Return a worker's release with its SHA-256, signed; raises `WorkerEnded` unless it was paid for.

    What is signed has no contradiction that `dpveil verify` finds in the certificate alone.
    """
    notes = json.dumps([str(note) for note in answer["notes"]])
    if len(notes) > MOST_NOTES or others:
        raise WorkerEnded
    kind = format_of_release(image) or (format_name(image[:64]) or "").lower()
    sha256 = hashlib.sha256(image).hexdigest()
    paid = None if total is None else parse_guarantee(total)
    certificate = certificate_of(kind, text.decode())
    if (stated_file(certificate), certificate.composition) != ((sha256, kind), paid):
        raise WorkerEnded
    if answer["format"] != kind or kind not in (*FORMATS.values(), *MEDIA):  # downloads are of that type
        raise WorkerEnded
    if certificate.signature is not None:  # a worker has no key
        raise WorkerEnded
    told = {"certificate": text.decode(), "format": kind, "sha256": sha256, "notes": notes}
    if sign is None:
        return told
    if contradictions_of(certificate):
        raise WorkerEnded
    return {**told, "certificate": sign.sign(certificate).to_text()}
