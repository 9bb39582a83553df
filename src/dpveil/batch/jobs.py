"""Several processes for one run: workers release photos, and this process pays, signs and reports.

A worker has one photo at a time. Ledger and private keys are used here alone, so what is known here is all
that was paid, whenever a worker dies: its photo is tried again if it was not paid for, and else reported.
"""

from __future__ import annotations

import os
import pickle
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice
from pathlib import Path
from queue import SimpleQueue
from typing import Any, Final, TypeVar

import cv2

from dpveil.batch.interrupts import Interrupts
from dpveil.batch.remote_output import deliver, matching_certificate
from dpveil.batch.report import INTERRUPTED, RELEASED, UNSTARTED, Entry, Report, Untried
from dpveil.batch.run import Given, Run, Seen, Shared
from dpveil.batch.task import Choices, Task
from dpveil.core.certificate import Certificate
from dpveil.core.guarantee import Guarantee
from dpveil.core.numbers import keep_freed
from dpveil.core.region import Covered
from dpveil.errors import DPVeilError, InvalidParameter, UsageError
from dpveil.processes import Channel, Child
from dpveil.release.keys import PublicKey, SigningKey
from dpveil.release.marking import Marker
from dpveil.release.saving import Payment, tidy

Item = TypeVar("Item")
Made = TypeVar("Made")
Done = TypeVar("Done")


@contextmanager
def prefetch(
    make: Callable[[Item], Made], items: Sequence[Item], *, at_once: int
) -> Iterator[Iterable[tuple[Item, Callable[[], Made]]]]:
    """Yield the items in order, each with a function that waits for the result of `make(item)`.

    `make` runs in `at_once` other threads. During a turn, the results of at most `at_once` + 2 items exist.
    On leaving the context, running calls are waited for and all others are cancelled.

    >>> with prefetch(abs, [-1, 2], at_once=2) as made:
    ...     [(item, result()) for item, result in made]
    [(-1, 1), (2, 2)]
    """
    at_once = min(at_once, len(items))
    with _limit_opencv(at_once - 1):
        workers = ThreadPoolExecutor(max(1, at_once), thread_name_prefix="prefetch")
        try:
            yield _in_turn(workers, make, items, at_once)
        finally:
            workers.shutdown(cancel_futures=True)


def _in_turn(
    workers: ThreadPoolExecutor, make: Callable[[Item], Made], items: Sequence[Item], at_once: int
) -> Iterator[tuple[Item, Callable[[], Made]]]:
    later = iter(items)
    begun = deque((item, workers.submit(make, item)) for item in islice(later, at_once + 1))
    while begun:
        item, now = begun.popleft()
        begun.extend((following, workers.submit(make, following)) for following in islice(later, 1))
        yield item, now.result


@contextmanager
def _limit_opencv(cores: int) -> Iterator[None]:
    """Limit OpenCV to fewer cores during the context, as it runs one caller at a time on its threads."""
    before = cv2.getNumThreads()
    cv2.setNumThreads(max(1, before - cores))
    try:
        yield
    finally:
        cv2.setNumThreads(before)


TARGET: Final = "dpveil.batch.jobs:serve"
ENDED: Final = (EOFError, OSError, ValueError, pickle.UnpicklingError)
"""What reading from, or writing to, an ended process raises."""


@dataclass(frozen=True)
class Setup:
    """What a worker is told first."""

    choices: Choices
    options: Mapping[str, str]
    see: Callable[..., object]
    pays: bool
    public: PublicKey | None
    mark: tuple[str, str] | None

    @classmethod
    def pack(cls, choices: Choices, options: Mapping[str, str], see: Callable[..., object]) -> bytes:
        """Return the message; raises `UsageError` if a method, finder or step cannot be sent."""
        sign, mark = choices.sign, choices.mark
        setup = cls(
            choices=replace(choices, ledger=None, sign=None, mark=None),
            options=options,
            see=see,
            pays=choices.ledger is not None,
            public=None if sign is None else sign.public,
            mark=None if mark is None else (mark.chain, mark.algorithm),
        )
        try:
            return pickle.dumps(setup)
        except Exception as error:
            raise UsageError(
                f"the method, or what finds its regions, cannot be sent to other processes: {error}",
                hint="set {jobs} to 1",
                arguments={"jobs": "jobs"},
            ) from error

    def choices_by(self, calls: Calls) -> Choices:
        """Return the settings for a worker, with a ledger and keys that call for their owner."""
        sign = None if self.public is None else SigningKey(self.public, _Signer(calls))  # type: ignore[arg-type]
        mark = None if self.mark is None else Marker(*self.mark, partial(calls, "mark"))
        return replace(self.choices, ledger=_Ledger(calls) if self.pays else None, sign=sign, mark=mark)


def send(channel: Channel, message: object) -> None:
    """Send anything; an error that cannot be sent goes by its words."""
    if isinstance(message, Exception):
        try:
            pickle.loads(packed := pickle.dumps(message))  # noqa: S301  it was just made
        except Exception:  # noqa: BLE001  any object may be in it
            text = f"unexpected {type(message).__name__}: {message}"
            packed = pickle.dumps(DPVeilError(text, hint="please report this"))
    else:
        packed = pickle.dumps(message)
    channel.send(None, packed)


def heard(channel: Channel) -> Any:
    """Return the next message; raises `EOFError` at the end."""
    message = channel.receive()
    if message is None:
        raise EOFError
    [packed] = message[1]
    return pickle.loads(packed.data)  # noqa: S301  see above


# In a worker


class Calls:
    """Calls to the run; threads take turns. If it is gone, the worker ends. It is a worker's `Around`."""

    def __init__(self, channel: Channel) -> None:
        self._channel, self._alone, self._shared = channel, threading.Lock(), Shared()

    def __call__(self, name: str, *given: Any, **more: Any) -> Any:
        """Return what the call returns, or raise what it raises."""
        with self._alone:
            try:
                send(self._channel, (name, given, more))
                answer = heard(self._channel)
            except ENDED:
                raise SystemExit from None  # nothing that was not written yet will be
        if isinstance(answer, Exception):
            raise answer
        return answer

    def stop_reason(self, task: Task) -> str:
        """Ask whether a photo may be drawn."""
        return str(self("stop_reason"))

    def stop(self, reason: str) -> None:
        """Let no other photo be drawn."""
        self("stop", reason)

    def open(self, folder: Path) -> None:
        """Have the run make a folder, or compare it with what it was at the run's first use of it."""
        if folder in self._shared.made:
            self._shared.open(folder)
        else:
            self._shared.made[folder] = self("open", folder)


class _Payment:
    def __init__(self, calls: Calls) -> None:
        self._calls = calls

    def stored(self, sha256: str) -> None:
        self._calls("stored", sha256)


class _Ledger:
    files: tuple[Path, ...] = ()  # the worker opens none

    def __init__(self, calls: Calls) -> None:
        self._calls = calls

    def debit(self, subject: str, guarantee: Guarantee, key: str | bytes, **more: Any) -> _Payment:
        self._calls("debit", subject, guarantee, key, **more)
        return _Payment(self._calls)

    def knows(self, subject: str, sha256: str) -> bool:
        return bool(self._calls("knows", subject, sha256))

    def check_regions(self, covered: Covered) -> None:
        self._calls("check_regions", covered)


class _Signer:
    def __init__(self, calls: Calls) -> None:
        self._calls = calls

    def sign(self, data: bytes) -> bytes:
        return bytes(self._calls("sign", data))


def serve(channel: Channel) -> None:
    """Release the photos that the run gives out, one after another."""
    import cv2

    keep_freed()
    cv2.setNumThreads(1)  # there is a worker for each core
    calls, setup = Calls(channel), heard(channel)
    choices, report, seen = setup.choices_by(calls), Report(setup.options), list[object]()
    run = Run(choices, report, lambda *release: seen.append(setup.see(*release)), around=calls)
    done: tuple[Any, ...] = ()
    while (given := calls("next", *done)) is not None:
        task, known = given
        run.found.add(task.output, known)
        reason = run.turn(task, partial(run.prepare, task))
        found = run.found.take(task.output) if choices.dry else None
        done = _with_public_error(report.entries.pop()), [*seen], reason, found
        seen.clear()


def _with_public_error(entry: Entry) -> Entry:
    """Return an entry whose error is named by its nearest class that every process has."""
    failure = entry.failure
    if failure is None:
        return entry
    own = (DPVeilError.__module__, BaseException.__module__)
    kind = next(kind for kind in failure.kind.__mro__ if kind.__module__ in own)
    return replace(entry, failure=replace(failure, kind=kind))


MOST: Final = 256
"""Most processes of one run."""
TRIES: Final = 2
"""How many workers may die of a photo."""
MADE, PRESSED, LEFT = "made", "pressed", "left"
"""What the reporting thread is told: a photo is done, Ctrl-C was pressed, a thread has no more workers."""
DIED: Final = "the process that released it ended: it was killed, out of memory, or crashed on the photo"
PHOTOS_EACH: Final = 64
BYTES_EACH: Final = 1 << 24
"""Photos, and bytes of them, for which another process is worth its start, which takes two seconds."""


def ignore_release(*release: object) -> None:
    """See nothing of a release."""


def check_jobs(jobs: int) -> None:
    """Raise `InvalidParameter` unless `jobs` is a number of processes."""
    given: object = jobs
    if isinstance(given, bool) or not isinstance(given, int) or not 1 <= given <= MOST:
        raise InvalidParameter("jobs", str(jobs), f"is not in 1..{MOST}", hint="give one for each core")


def usual_jobs(tasks: Sequence[Task]) -> int:
    """Return how many processes are worth their start: at most one for each core."""
    size = 0
    for task in tasks:
        stamp = task.stamp
        size += 0 if stamp is None else stamp[0]
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min(cores, MOST, max(len(tasks) // PHOTOS_EACH, size // BYTES_EACH)))


@dataclass(eq=False)
class _Worker:
    """A process, and the `place` of the photo that it has, which may be `drawn`, or was `refused` to be.

    `payment` is that for the photo, and `sha256` that of its file once the ledger knows it.
    """

    child: Child
    place: int | None = None
    drawn: bool = False
    refused: bool = False
    payment: Payment | None = None
    sha256: str = ""
    ready: bool = False


@dataclass
class _Made:
    """What became of a photo: its entry, and what was seen of its release."""

    entry: Entry
    seen: list[Any] = field(default_factory=list)


class Jobs:
    """The photos of a run, given out to workers; a thread for each answers its calls."""

    def __init__(
        self, run: Run, tasks: Sequence[Task], see: Callable[..., Any], seen: Callable[[Any], None]
    ) -> None:
        self.run, self.tasks, self.seen = run, tasks, seen
        self.setup = Setup.pack(run.choices, run.report.options, see)
        self.shared, self.ledger = Shared(), run.choices.ledger
        self.waiting = deque(range(len(tasks)))
        self.deaths, self.unstarted = dict[int, int](), 0
        self.made, self.workers = dict[int, _Made](), set[_Worker]()
        self.lock, self.inbox = threading.RLock(), SimpleQueue[str]()

    def release(self, count: int, step: Callable[[], None], interrupts: Interrupts) -> None:
        """Release all photos by `count` workers; the report is complete on return.

        On an interrupt, photos that are being drawn are finished; at a second one, all workers are killed.
        """
        with interrupts.heard(partial(self.inbox.put, PRESSED), silent=self.run.choices.dry):
            for _ in range(count):
                threading.Thread(target=self._work, daemon=True).start()
            while count:
                what = self.inbox.get()
                if what == MADE:
                    self._report()
                    step()
                elif what == PRESSED:
                    self._stop(INTERRUPTED)
                    self._kill(all_of_them=interrupts.presses > 1)
                else:
                    count -= 1
        self._report(all_of_them=True)

    def _report(self, *, all_of_them: bool = False) -> None:
        """Add what is made to the report, in order; with `all_of_them`, all others as untried."""
        entries, notes = self.run.report.entries, Report(self.run.report.options)
        while len(entries) < len(self.tasks):
            with self.lock:
                made = self.made.pop(len(entries), None)
            if made is None and not all_of_them:
                return
            if made is None:
                notes.fail(self.tasks[len(entries)], Untried(self.shared.reason or UNSTARTED), tried=False)
                made = _Made(notes.entries.pop())
            entries.append(made.entry)
            for seen in made.seen:
                self.seen(seen)
        self.run.report.stopped = self.shared.reason or self.run.report.stopped

    def _stop(self, reason: str) -> None:
        """Let no other photo be drawn, and end the workers that draw none."""
        with self.lock:
            self.shared.stop(reason)
            self._kill()

    def _kill(self, *, all_of_them: bool = False) -> None:
        with self.lock:
            for worker in self.workers:
                if all_of_them or not worker.drawn:
                    worker.child.process.kill()

    def _work(self) -> None:
        """Run workers, one after another if they die, until there is nothing left for one."""
        try:
            while self._has_tasks():
                worker = self._start_worker()
                if worker is None:
                    continue
                try:
                    self._serve(worker)
                finally:
                    worker.child.stop()
                    with self.lock:
                        self.workers.discard(worker)
                    self._settle_ended_worker(worker)
        except Exception:  # noqa: BLE001  nobody foresaw it: what is not done yet is reported as untried
            self._stop(UNSTARTED)
        finally:
            self.inbox.put(LEFT)

    def _has_tasks(self) -> bool:
        with self.lock:
            return bool(self.waiting) and not self.shared.reason

    def _start_worker(self) -> _Worker | None:
        try:
            worker = _Worker(Child(TARGET, one_thread=True))
        except OSError:
            self._stop(UNSTARTED)
            return None
        with self.lock:
            self.workers.add(worker)
            if self.shared.reason:
                worker.child.process.kill()
        return worker

    def _serve(self, worker: _Worker) -> None:
        """Answer the calls of a worker until it ends."""
        channel = worker.child.channel
        with suppress(*ENDED):
            channel.send(None, self.setup)
            while True:
                call = heard(channel)
                worker.ready = True
                send(channel, self._answer(worker, *call))
                with self.lock:
                    if self.shared.reason and not worker.drawn:
                        worker.child.process.kill()
                        return

    def _answer(self, worker: _Worker, name: str, given: tuple[Any, ...], more: dict[str, Any]) -> object:
        try:
            return getattr(self, f"_call_{name}")(worker, *given, **more)
        except Exception as error:  # noqa: BLE001  it is the photo's error, as without workers
            return error

    # What workers call for

    def _call_next(self, worker: _Worker, *done: Any) -> Given | None:
        """Give out a photo, if there is another; with the last one written, a worker is `done`."""
        if done:
            self._finish(worker, *done)
        with self.lock:
            if self.shared.reason or not self.waiting:
                return None
            worker.place = self.waiting.popleft()
            worker.drawn, worker.refused, worker.payment, worker.sha256 = False, False, None, ""
        task = self.tasks[worker.place]
        return task, self.run.found.seen.get(task.output)

    def _call_stop_reason(self, worker: _Worker) -> str:
        """Let a photo be drawn, unless the run has been stopped."""
        with self.lock:
            worker.drawn, worker.refused = not self.shared.reason, bool(self.shared.reason)
            return self.shared.reason

    def _call_stop(self, worker: _Worker, reason: str) -> None:
        self._stop(reason)

    def _call_open(self, worker: _Worker, folder: Path) -> object:
        with self.lock:
            self.shared.open(folder)
            return self.shared.made[folder]

    def _finish(
        self, worker: _Worker, entry: Entry, seen: list[Any], reason: str, found: Seen | None
    ) -> None:
        """Take what became of a photo; of one that was not to be drawn any more, nothing."""
        with self.lock:
            place, worker.place = int(worker.place or 0), None
            worker.drawn = False
            self.run.found.add(self.tasks[place].output, found)
            if not worker.refused:
                self._keep(place, _Made(entry, seen))
            if reason:
                self._stop(reason)

    def _keep(self, place: int, made: _Made) -> None:
        self.made[place] = made
        self.inbox.put(MADE)

    def _settle_ended_worker(self, worker: _Worker) -> None:
        """Decide what becomes of the photo that a worker had when it ended."""
        with self.lock:
            self.unstarted = 0 if worker.ready else self.unstarted + 1
            if self.unstarted > TRIES:
                self._stop(UNSTARTED)
        if worker.place is None:
            return
        entry = self._clean_up_after(worker, self.tasks[worker.place])
        with self.lock:
            tried = self.deaths[worker.place] = self.deaths.get(worker.place, 0) + 1
            if entry is None and (tried < TRIES or self.shared.reason):
                self.waiting.append(worker.place)
            else:
                self._keep(worker.place, _Made(entry or self._lost_entry(self.tasks[worker.place])))

    def _call_debit(self, worker: _Worker, *given: Any, **more: Any) -> None:
        """Debit the price of a photo, as `Budget.debit`.

        From here on the photo is paid for, also if its worker died while it waited.
        """
        worker.payment = self.ledger.debit(*given, **more)  # type: ignore[union-attr]
        self.run.paid.add(self.tasks[int(worker.place or 0)].output)

    def _call_stored(self, worker: _Worker, sha256: str) -> None:
        """Let the ledger know the file of a release."""
        worker.payment.stored(sha256)  # type: ignore[union-attr]
        worker.sha256 = sha256

    def _call_knows(self, worker: _Worker, subject: str, sha256: str) -> bool:
        """Whether a subject paid for a file from the ledger."""
        return bool(self.ledger.knows(subject, sha256))  # type: ignore[union-attr]

    def _call_check_regions(self, worker: _Worker, covered: Covered) -> None:
        """Raise `RegionsDiffer` if the photo was released with other regions before."""
        self.ledger.check_regions(covered)  # type: ignore[union-attr]

    def _call_sign(self, worker: _Worker, data: bytes) -> bytes:
        """Return the signature of a certificate by the run's key."""
        return bytes(self.run.choices.sign.private.sign(data))  # type: ignore[union-attr]

    def _call_mark(self, worker: _Worker, data: bytes) -> bytes:
        """Return the signature of a manifest."""
        return bytes(self.run.choices.mark.sign(data))  # type: ignore[union-attr]

    # What becomes of photos of which workers died

    def _clean_up_after(self, worker: _Worker, task: Task) -> Entry | None:
        """Clean up after a worker that died of a photo; return its entry if nothing is to be drawn for it any
        more: it was written, or paid for.
        """
        tidy(task.output.parent)
        entry = self._find_written(task, worker.sha256) if worker.drawn else None
        return self._lost_entry(task) if entry is None and task.output in self.run.paid else entry

    def _find_written(self, task: Task, sha256: str) -> Entry | None:
        """Return the entry of a photo that was written before its worker died, if it was."""
        certificate: Certificate | None = None
        with suppress(DPVeilError):
            here = task.remote is not None or os.path.lexists(task.output)
            certificate = matching_certificate(task, self.run.choices) if here else None
        if certificate is None or certificate.output is None:
            return None
        if self.run.choices.force and certificate.output.sha256 != sha256:
            return None  # it may be an earlier one
        with suppress(DPVeilError):  # else it waits for the next run
            deliver(task, self.run.choices)
        report = Report(self.run.report.options)
        report.record_release(RELEASED, task, task.output, certificate)
        return report.entries.pop()

    def _lost_entry(self, task: Task) -> Entry:
        """Return the entry of a photo of which workers died."""
        report, hint = Report(self.run.report.options), "try it alone, with {jobs}"
        if task.output in self.run.paid:
            hint = "it was paid for, and releasing it again costs again"
        report.fail(task, DPVeilError(DIED, hint=hint, arguments={"jobs": "jobs=1"}))
        return report.entries.pop()
