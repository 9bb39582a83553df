"""Jobs: requests are planned, paid for, drawn by workers and checked, and what was made is kept.

The server pays, never a worker: workers decode files from strangers, and hold neither ledger nor keys. What
was committed is finished, or lost if its worker ends; it is never drawn a second time for one payment.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import math
import sqlite3
import time
from collections import deque
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack, ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

from dpveil.core.certificate import parse_certificate, parse_guarantee
from dpveil.core.numbers import Json
from dpveil.errors import BudgetRefused, DPVeilError, LedgerError
from dpveil.io import FORMATS
from dpveil.io.screening import format_name
from dpveil.service import log
from dpveil.service.budget import Budget
from dpveil.service.guard import Share, Turns
from dpveil.service.keys import Caller
from dpveil.service.log import Metrics
from dpveil.service.media import FORMATS as MEDIA
from dpveil.service.media import (
    certificate_of,
    contradictions_of,
    format_of_release,
    stated_file,
    work_folder,
)
from dpveil.service.problems import (
    Busy,
    Conflict,
    Lost,
    NotKept,
    WorkerEnded,
    kind_of,
    lost_if,
    problem,
    status_of,
)
from dpveil.service.settings import MOST_NOTES, Limits
from dpveil.service.store import FAILED, WORKING, Result, Store
from dpveil.service.workers import Pool, Worker

if TYPE_CHECKING:
    from dpveil.ledger.ledger import Reservation
    from dpveil.release.keys import SigningKey

Made = TypeVar("Made")
SMALL: Final = 1 << 20
"""Bytes of an image below which it is checked at once: another thread would take longer."""
SHORT: Final = 1 << 14
"""Bytes of a certificate below which it is: reading it takes 0.2 s for each MiB, with nobody else served."""
MOST_DEATHS: Final = 1000
"""Most requests that are known for having ended a worker."""
STOPS: Final = "the service stops, and this was not paid for yet"
LEFT: Final = DPVeilError("the service failed", hint="send it again")
DELETED: Final = "the job was deleted while it was planned"


@dataclass
class Order:
    """What is to be released: the photo until a worker has it, the settings, and who pays under which key.

    `arrived` is when its request had arrived as a whole, as `Moments.now` tells the time.
    """

    photo: bytes
    settings: dict[str, Any]
    subject: str | None
    caller: Caller
    key: str | None
    digest: bytes
    arrived: float


@dataclass(eq=False)
class Job:
    """An order that is being made: `begun` once a worker has it, and `paid` once its payment has begun, after
    which it is finished.

    It is `shared` once a second request with its key was told of it. `made` is its release once
    that is shown, and `worker` makes it.
    """

    id: str
    task: asyncio.Task[None]
    begun: bool = False
    paid: bool = False
    cancelled: bool = False
    stopped: bool = False
    shared: bool = False
    made: Result | None = None
    worker: Worker | None = None

    def cancel(self) -> None:
        """Cancel it: at once where it waits in line, else once it is planned.

        Until then it counts as under way, and no worker is killed for it.
        """
        self.cancelled = True
        if not self.begun:
            self.stop()

    def stop(self) -> None:
        """Stop it at once, and only once: a second time would stop that it is noted."""
        if not self.stopped:
            self.stopped = True
            self.task.cancel()


@dataclass(frozen=True)
class Left:
    """How many releases were under way when the service was told to stop: `finished` as they were paid for,
    or `cancelled`.
    """

    finished: int
    cancelled: int


class Moments:
    """Multiples of `every` seconds after a request had arrived as a whole; any time if `every` is 0.

    `now` tells the time in seconds, and `sleep` waits for some.
    """

    def __init__(
        self,
        every: float,
        now: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
    ) -> None:
        self.every, self.now, self._sleep = every, now, sleep

    async def wait(self, arrived: float) -> None:
        """Wait for the next multiple after a request `arrived`, or none if this is one."""
        if self.every:
            passed = self.now() - arrived
            multiple = max(1, math.ceil(passed / self.every))
            await self._sleep(max(0.0, multiple * self.every - passed))


async def _in_thread(thread: ThreadPoolExecutor, do: Callable[..., Made], *arguments: Any) -> Made:
    """Return what a call returns that runs in a thread to its end, also if nobody waits for it any more."""
    return await asyncio.shield(asyncio.wrap_future(thread.submit(do, *arguments)))


class Jobs:
    """Everything between HTTP and workers. Results and ledger are used in a thread of their own each."""

    def __init__(
        self,
        pool: Pool,
        store: Store,
        budget: Budget,
        limits: Limits,
        metrics: Metrics,
        sign: SigningKey | None = None,
    ) -> None:
        self.pool, self.store, self.budget, self.limits, self.metrics = pool, store, budget, limits, metrics
        self.sign, self.turns, self.moments = sign, Turns(), Moments(limits.answer_after)
        self._keeping = asyncio.Semaphore(pool.count)  # a disk that is slower than workers stops them
        self.closing = False
        self.left: Left | None = None
        self._jobs: dict[str, Job] = {}
        self._unnoted: dict[str, str] = {}
        self._deaths: deque[int] = deque(maxlen=MOST_DEATHS)
        self._results = ThreadPoolExecutor(1, thread_name_prefix="results")
        self._payments = ThreadPoolExecutor(1, thread_name_prefix="payments")

    async def ask(
        self, do: str, settings: dict[str, Any], photo: bytes = b"", digest: bytes = b""
    ) -> dict[str, Any]:
        """Return a worker's answer to what draws nothing: methods, an explanation, a plan.

        `digest` is that of photo and settings.
        """
        told = {"do": do, "settings": settings, "pixels": self.limits.pixels}
        with self._first_death(digest or f"{do} {settings}".encode()):
            async with self.pool.worker() as worker:
                answer, _ = await worker.ask(told, photo, self.limits.plan_seconds)
                await worker.finish()
        return answer

    @contextmanager
    def _first_death(self, digest: bytes) -> Iterator[None]:
        """Raise `Busy` where a worker dies of a request for the first time: somebody may have killed it."""
        request = hash(digest)  # by a key of this process: nothing of the photo is kept
        try:
            yield
        except WorkerEnded as error:
            if not error.died or request in self._deaths:
                raise
            self._deaths.append(request)
            raise Busy("the worker of this request ended", after=1) from error
        if request in self._deaths:
            self._deaths.remove(request)

    async def begin(self, order: Order, share: Share) -> tuple[Result, bool]:
        """Return the result of an order, which may still be in the making, and whether it is a new one."""
        if self.closing:
            raise Busy(STOPS, after=10)
        owner = order.caller.number
        result, new = await self.results(self.store.begin, owner, order.key, order.digest)
        if new:
            task = asyncio.create_task(self._make(result.id, order, share))
            self._jobs[result.id] = Job(result.id, task)
            self.turns.begin(order.caller)
            task.add_done_callback(partial(self._forget, result.id, order.caller))
        elif (job := self._jobs.get(result.id)) is not None:
            job.shared = True
        return result, new

    def _forget(self, id_: str, caller: Caller, task: asyncio.Task[None]) -> None:
        """Forget a job that has ended, in whatever way."""
        self._jobs.pop(id_, None)
        self.turns.end(caller)

    async def find(self, caller: Caller, id_: str) -> Result | None:
        """Return a caller's result; until its job is over, nothing is told of it."""
        found = await self.results(self.store.find, caller.number, id_)
        if found is not None and id_ in self._jobs:
            return replace(found, state=WORKING, problem=None)
        if found is not None and id_ in self._unnoted:
            return replace(found, state=FAILED, problem=self._unnoted[id_])
        return found

    async def wait(self, id_: str, seconds: float) -> tuple[bool, Result | None]:
        """Wait until a result is made, or the time is over.

        Returns whether it is of one request alone, and the result if it is a release.
        """
        job = self._jobs.get(id_)
        if job is None:
            return False, None
        await asyncio.wait([job.task], timeout=seconds)
        return not job.shared, job.made if job.task.done() else None

    def progress(self, id_: str) -> tuple[int, int] | None:
        """Return how much of a document or clip that is being made is done, and of how much, if known."""
        job = self._jobs.get(id_)
        return None if job is None or job.worker is None else job.worker.progress

    async def cancel(self, caller: Caller, id_: str) -> None:
        """Cancel what is not paid for, or forget what was made; raises `Conflict` while it is drawn."""
        job = self._jobs.get(id_)
        if job is not None and job.paid:
            raise Conflict("what is paid for is finished first", hint="ask again in a few seconds")
        if job is not None:
            job.cancel()
            await self.results(self.store.fail, id_, "")
        await self.results(self.store.delete, id_)

    async def results(self, do: Callable[..., Made], *arguments: Any) -> Made:
        """Return what a method of the store returns, called in its thread.

        Raises `NotKept` if the database fails, as on a full disk.
        """
        try:
            return await _in_thread(self._results, do, *arguments)
        except (sqlite3.Error, OSError) as error:
            log.error("results")
            raise NotKept from error

    def note(self, do: Callable[..., object], *arguments: Any) -> None:
        """Call a method of the store as `results` does, whatever comes of it: nobody waits for that."""
        with suppress(RuntimeError):  # the service has ended
            self._results.submit(do, *arguments)

    async def payments(self, do: Callable[..., Made], *arguments: Any) -> Made:
        """Return what a method of the budget returns, called in its thread, if there is a ledger."""
        if self.budget.ledger is None:
            return do(*arguments)
        return await _in_thread(self._payments, do, *arguments)

    async def costs(self, do: Callable[..., dict[str, Json]], *arguments: Any) -> dict[str, Json]:
        """Return what the budget tells beside an answer; a ledger that cannot be read stops no answer."""
        with suppress(LedgerError):  # what was released is paid for, and a plan pays nothing
            return await self.payments(do, *arguments)
        return {}

    async def close(self) -> None:
        """Cancel what is not paid for, and finish the rest; `left` tells how many of each."""
        self.closing = True
        jobs = [*self._jobs.values()]
        paid = [job for job in jobs if job.paid]
        self.left = self.left or Left(len(paid), len(jobs) - len(paid))
        for job in jobs:
            if not job.paid:
                job.stop()
        if jobs:
            await asyncio.wait([job.task for job in jobs])

    def end(self) -> None:
        """Close results and ledger, once nothing uses them."""
        with ExitStack() as stack:
            for thread, close in ((self._results, self.store.close), (self._payments, self.budget.close)):
                stack.callback(thread.shutdown)
                stack.callback(lambda run, last: run.submit(last).result(), thread, close)

    async def _make(self, id_: str, order: Order, share: Share) -> None:
        """Make a release and keep it, or why it was not made, until that may be told."""
        await self._try(id_, order, share)
        order.photo = b""
        if not self._jobs[id_].stopped:
            await self.moments.wait(order.arrived)

    async def _try(self, id_: str, order: Order, share: Share) -> None:
        """Make a release and keep it, or why it was not made; raises nothing."""
        try:
            async with self.turns.turn(order.caller):
                with self._first_death(order.digest):
                    await self._release(self._jobs[id_], order, share)
            self.metrics.releases.inc()
        except asyncio.CancelledError:
            await self._note_failure(id_, Busy(STOPS, after=10))
        except DPVeilError as error:
            self.metrics.refused.inc(isinstance(error, BudgetRefused))
            self.metrics.lost.inc(isinstance(error, Lost))
            await self._note_failure(id_, error)
        except Exception:  # noqa: BLE001  logged, and told as an error of the service
            log.error("release")
            await self._note_failure(id_, DPVeilError("the service failed", hint="its log says where"))
        finally:
            share.free()

    async def sweep(self) -> None:
        """Forget what has expired, and note what failed where that could not be noted before.

        A result that is looked for has its job already: results and their jobs begin in one order.
        """
        await self.results(self.store.sweep)
        for id_ in await self.results(self.store.unfinished_ids):
            if id_ not in self._jobs:
                told = self._unnoted.get(id_) or json.dumps(problem(LEFT))
                await self.results(self.store.fail, id_, told)
                self._unnoted.pop(id_, None)

    async def _note_failure(self, id_: str, error: DPVeilError) -> None:
        """Note why a result was not made; what cannot be noted now, as on a full disk, is swept later."""
        told = json.dumps(problem(error))
        try:
            await asyncio.shield(self.results(self.store.fail, id_, told))
        except NotKept:
            self._unnoted[id_] = told
        log.write("failed", kind=kind_of(error), status=status_of(error))

    async def _release(self, job: Job, order: Order, share: Share) -> None:
        """Plan, pay, draw (at once, if nothing is paid) and keep; the worker is free once it has drawn."""
        async with AsyncExitStack() as stack:
            folder = stack.enter_context(work_folder()) if format_of_release(order.photo) else None
            async with self.pool.worker() as worker:
                job.begun, job.worker = True, worker
                planned = await self._plan(worker, order, share, folder)
                room = min(max(int(planned["room"]), 0), self.limits.most_room)
                payment = await self._pay(worker, job, order, planned, room)
                stack.callback(self.store.free, room)
                with lost_if(payment):
                    answer, image = await worker.draw(room)
                await stack.enter_async_context(self._keeping)
            with lost_if(payment):
                release = await self._check(answer, image, planned["total"], room)
                job.made = await self._keep(job, payment, release, image)

    async def _plan(self, worker: Worker, order: Order, share: Share, folder: Path | None) -> dict[str, Any]:
        """Return what a release would be, as the worker says that now has the photo.

        A document or clip, which has a `folder`, is paid by no ledger and drawn before that is said.
        """
        paid = self.budget.ledger is not None
        told = {"do": "release", "settings": order.settings, "pixels": self.limits.pixels, "paid": paid}
        seconds = self.limits.plan_seconds if folder is None else self.limits.media_seconds
        more = {} if folder is None else {"folder": str(folder)}
        planned, _ = await worker.ask({**told, **more}, order.photo, seconds)
        order.photo = b""
        share.free()
        return planned

    async def _room(self, id_: str, size: int) -> None:
        """Keep room for a release that the disk has, too; raises `Busy` if there is none.

        What nobody has seen is not forgotten for it.
        """
        while not self.store.has_room(size):  # what is made for one release may be taken by another
            if not await self.results(self.store.make_room, size):
                raise Busy("the results that are kept leave no room for another", after=60)
        try:
            await self.results(self.store.check_disk, id_, size)
        except BaseException:
            self.store.free(size)
            raise

    async def _pay(
        self, worker: Worker, job: Job, order: Order, planned: dict[str, Any], room: int
    ) -> Reservation | None:
        """Take room for a release and pay for it, after which it is finished; or have the worker drop it."""
        try:
            if job.cancelled:
                raise Conflict(DELETED)
            job.paid = True  # from here on it is not cancelled
            await self._room(job.id, room)
            try:
                caller, key = order.caller, order.key or job.id
                return await self.payments(self.budget.pay, caller, order.subject, planned, key)
            except BaseException:
                self.store.free(room)
                raise
        except DPVeilError:
            await worker.drop(room)
            raise

    async def _check(
        self, answer: dict[str, Any], image: bytes, total: dict[str, Any] | None, room: int
    ) -> dict[str, Any]:
        """Return what the worker drew, if it is what was paid for; raises `WorkerEnded` if it is not."""
        if self.sign is None and len(image) < SMALL and len(str(answer["certificate"])) < SHORT:
            return check_release(answer, image, total, room)
        return await asyncio.to_thread(check_release, answer, image, total, room, self.sign)

    async def _keep(
        self, job: Job, payment: Reservation | None, release: dict[str, Any], image: bytes
    ) -> Result:
        """Keep a release, and show it: the ledger knows the file before anybody sees it."""
        await self.results(self.store.keep, job.id, release, image)
        await self.payments(self.budget.stored, payment, release["sha256"])
        return await self.results(self.store.show, job.id)


def check_release(
    answer: dict[str, Any],
    image: bytes,
    total: dict[str, Any] | None,
    room: int,
    sign: SigningKey | None = None,
) -> dict[str, Any]:
    """Return a worker's release with its SHA-256, signed; raises `WorkerEnded` unless it was paid for.

    It has `room` bytes at most with its notes, as the worker said before.
    What is signed has no contradiction that `dpveil verify` finds in the certificate alone.
    """
    notes = json.dumps([str(note) for note in answer["notes"]])
    if len(notes) > MOST_NOTES or len(image) + len(answer["certificate"].encode()) + len(notes) > room:
        raise WorkerEnded
    kind = format_of_release(image) or (format_name(image[:64]) or "").lower()
    sha256 = hashlib.sha256(image).hexdigest()
    paid = None if total is None else parse_guarantee(total)
    certificate: Any
    if kind in MEDIA:
        certificate = certificate_of(kind, answer["certificate"])
        stated: tuple[str, str] | None = stated_file(certificate)
    else:
        certificate = parse_certificate(answer["certificate"])
        output = certificate.output
        stated = None if output is None else (output.sha256, output.format)
    if (stated, certificate.composition) != ((sha256, kind), paid):
        raise WorkerEnded
    if answer["format"] != kind or kind not in (*FORMATS.values(), *MEDIA):  # downloads are of that type
        raise WorkerEnded
    if certificate.signature is not None:  # a worker has no key
        raise WorkerEnded
    told = {"certificate": answer["certificate"], "format": kind, "sha256": sha256, "notes": notes}
    if sign is None:
        return told
    from dpveil.release.verification import contradictions

    if contradictions_of(certificate) if kind in MEDIA else contradictions(certificate):
        raise WorkerEnded
    return {**told, "certificate": sign.signed(certificate).to_text()}
