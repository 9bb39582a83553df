"""Several processes for one run: workers release photos, and this process pays, signs and reports.

A worker has one photo at a time, and asks this process for the next one, whether it may be drawn, and for
calls of the ledger and of private keys, which are here alone. So what is known here is all that was paid,
whenever a worker dies: its photo is tried again if it was not paid for, and else looked for and reported.
"""

from __future__ import annotations

import os
import pickle
import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from queue import SimpleQueue
from typing import Any, Final

import cv2

from dpveil.batch.interrupts import Interrupts
from dpveil.batch.photo_release import PhotoReleaser
from dpveil.batch.report import INTERRUPTED, RELEASED, SKIPPED, UNSTARTED, UNTRIED, Entry, Report, Untried
from dpveil.batch.tasks import Choices, Task
from dpveil.core.rationals import keep_freed
from dpveil.errors import DPVeilError, InvalidParameter, UsageError
from dpveil.processes import Channel, Child
from dpveil.release.keys import SigningKey
from dpveil.release.marking import Marker
from dpveil.release.saving import Payment, remove_leftovers

TARGET: Final = "dpveil.batch.workers:serve"
CHANNEL_ENDED: Final = (EOFError, OSError, ValueError, pickle.UnpicklingError)
"""What reading from, or writing to, an ended process raises."""


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


def receive(channel: Channel) -> Any:
    """Return the next message; raises `EOFError` at the end."""
    message = channel.receive()
    if message is None:
        raise EOFError
    [packed] = message[1]
    # The worker is our own code on files of the user, who is no adversary (decisions, D1). What strangers
    # send to a service goes through `processes`, which unpickles nothing.
    return pickle.loads(packed.data)  # noqa: S301


# In a worker


class _Run:
    """The run, whose methods `_call_…` a worker calls; threads take turns. If it is gone, the worker ends."""

    def __init__(self, channel: Channel) -> None:
        self._channel, self._alone = channel, threading.Lock()

    def __call__(self, name: str, *given: Any, **more: Any) -> Any:
        with self._alone:
            try:
                send(self._channel, (name, given, more))
                answer = receive(self._channel)
            except CHANNEL_ENDED:
                raise SystemExit from None  # nothing that was not written yet will be
        if isinstance(answer, Exception):
            raise answer
        return answer


class _Remote:
    """A ledger, a payment or a private key, whose methods are called where the run is."""

    files: tuple[Path, ...] = ()  # of a ledger: the worker opens none

    def __init__(self, run: _Run, owner: str) -> None:
        self._run, self._owner = run, owner

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name.startswith("_"):  # what pickle and copy look for
            raise AttributeError(name)
        return partial(self._run, "method", self._owner, name)

    def debit(self, *given: Any, **more: Any) -> _Remote:
        self._run("method", "ledger", "debit", *given, **more)
        return _Remote(self._run, "payment")


def serve(channel: Channel) -> None:
    keep_freed()
    cv2.setNumThreads(1)  # there is a worker for each core
    run, (choices, options, see, pays, public, mark) = _Run(channel), receive(channel)
    key: Any = _Remote(run, "key")
    choices = replace(
        choices,
        ledger=_Remote(run, "ledger") if pays else None,
        sign=None if public is None else SigningKey(public, key),
        mark=None if mark is None else Marker(mark[0], mark[1], _Remote(run, "mark").sign),
    )
    report, seen = Report(options), list[object]()
    releaser = PhotoReleaser(
        choices,
        report,
        lambda *release: seen.append(see(*release)),
        stop_reason=lambda _: str(run("stop_reason")),
    )
    done: tuple[Any, ...] = ()
    while (task := run("next", *done)) is not None:
        reason = releaser.finish(task, partial(releaser.prepare, task))
        done = report.entries.pop(), [*seen], reason
        seen.clear()


# In the run


MOST_JOBS: Final = 256  # more processes than this are a slip of the keyboard, not a machine
MOST_DEATHS: Final = 2  # how many workers may die of one photo, and how many in a row before they begin
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
    if isinstance(given, bool) or not isinstance(given, int) or not 1 <= given <= MOST_JOBS:
        raise InvalidParameter("jobs", str(jobs), f"is not in 1..{MOST_JOBS}", hint="give one for each core")


def usual_jobs(tasks: Sequence[Task]) -> int:
    """Return how many processes are worth their start: at most one for each core."""
    size = sum(task.stamp[0] for task in tasks if task.stamp is not None)
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min(cores, MOST_JOBS, max(len(tasks) // PHOTOS_EACH, size // BYTES_EACH)))


def pack_setup(choices: Choices, options: Mapping[str, str], see: Callable[..., object]) -> bytes:
    """Return what a worker is told first, without ledger and private keys.

    Raises `UsageError` if a method, finder or step cannot be sent.
    """
    sign, mark = choices.sign, choices.mark
    bare = replace(choices, ledger=None, sign=None, mark=None)
    public = None if sign is None else sign.public
    marks = None if mark is None else (mark.chain, mark.algorithm)
    try:
        return pickle.dumps((bare, options, see, choices.ledger is not None, public, marks))
    except Exception as error:
        raise UsageError(
            f"the method, or what finds its regions, cannot be sent to other processes: {error}",
            hint="set {jobs} to 1",
            arguments={"jobs": "jobs"},
        ) from error


@dataclass(eq=False)
class Worker:
    """A process, and the `place` of the photo that it has, -1 without any, which may be `drawn`."""

    child: Child
    place: int = -1
    drawn: bool = False
    payment: Payment | None = None
    ready: bool = False


class WorkerPool:
    """The photos of a run, given out to workers; a thread for each answers its calls."""

    def __init__(
        self,
        run: PhotoReleaser,
        tasks: Sequence[Task],
        see: Callable[..., Any],
        seen: Callable[[Any], None],
    ) -> None:
        self.run, self.tasks, self.seen = run, tasks, seen
        self.setup = pack_setup(run.choices, run.report.options, see)
        self.reason = ""  # why the run was stopped, if so
        self.waiting = deque(range(len(tasks)))
        self.deaths, self.unstarted = dict[int, int](), 0
        self.made, self.workers = dict[int, tuple[Entry, Sequence[Any]]](), set[Worker]()
        self.lock, self.inbox = threading.RLock(), SimpleQueue[str]()

    def release(self, count: int, step: Callable[[], None], interrupts: Interrupts) -> None:
        """Release all photos by `count` workers; the report is complete on return.

        On an interrupt, photos that are being drawn are finished; at a second one, all workers are killed.
        """
        with interrupts.handled_by(partial(self.inbox.put, PRESSED), silent=self.run.choices.dry):
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
        report = self.run.report
        while len(report.entries) < len(self.tasks):
            with self.lock:
                made = self.made.pop(len(report.entries), None)
            if made is not None:
                report.entries.append(made[0])
                for seen in made[1]:
                    self.seen(seen)
            elif all_of_them:
                task = self.tasks[len(report.entries)]
                report.fail(task, Untried(self.reason or UNSTARTED), tried=False)
            else:
                return
        report.stopped = self.reason or report.stopped

    def _stop(self, reason: str) -> None:
        """Let no other photo be drawn, and end the workers that draw none; the first reason stays."""
        with self.lock:
            self.reason = self.reason or reason
            self._kill()

    def _kill(self, *, all_of_them: bool = False) -> None:
        with self.lock:
            for worker in self.workers:
                if all_of_them or not worker.drawn:
                    worker.child.process.kill()

    def _work(self) -> None:
        """Start a worker and answer it, and another one where it died, until there is nothing left to do."""
        try:
            while self.waiting and not self.reason:
                worker = Worker(Child(TARGET, one_thread=True))
                with self.lock:
                    self.workers.add(worker)
                try:
                    self._answer(worker)
                finally:
                    worker.child.stop()
                    self._settle(worker)
        except Exception:  # noqa: BLE001  none can start, or nobody foresaw it: the rest is told as untried
            self._stop(UNSTARTED)
        finally:
            self.inbox.put(LEFT)

    def _answer(self, worker: Worker) -> None:
        channel = worker.child.channel
        with suppress(*CHANNEL_ENDED):
            channel.send(None, self.setup)
            while True:
                name, given, more = receive(channel)
                worker.ready = True
                try:
                    answer: object = getattr(self, f"_call_{name}")(worker, *given, **more)
                except Exception as error:  # noqa: BLE001  it is the photo's error, as without workers
                    answer = error
                send(channel, answer)
                with self.lock:
                    if self.reason and not worker.drawn:
                        worker.child.process.kill()
                        return

    def _settle(self, worker: Worker) -> None:
        """Give out the photo of a worker that has ended again, or report it as lost."""
        with self.lock:
            self.workers.discard(worker)
            self.unstarted = 0 if worker.ready else self.unstarted + 1
            if self.unstarted > MOST_DEATHS:
                self._stop(UNSTARTED)
            if worker.place < 0:
                return
            place, task = worker.place, self.tasks[worker.place]
            remove_leftovers(task.output.parent)
            tried = self.deaths[place] = self.deaths.get(place, 0) + 1
            if tried < MOST_DEATHS or (self.reason and task.output not in self.run.paid):
                self.waiting.append(place)  # one that was paid for may be written: it is looked for
            else:
                self._keep(place, self._lost(task))

    def _lost(self, task: Task) -> Entry:
        report, hint = Report(self.run.report.options), "try it alone, with {jobs}"
        if task.output in self.run.paid:
            hint = "it was paid for, and releasing it again costs again"
        report.fail(task, DPVeilError(DIED, hint=hint, arguments={"jobs": "jobs=1"}))
        return report.entries.pop()

    def _keep(self, place: int, entry: Entry, seen: Sequence[Any] = ()) -> None:
        self.made[place] = entry, seen
        self.inbox.put(MADE)

    # What workers call for

    def _call_next(
        self, worker: Worker, entry: Entry | None = None, seen: Sequence[Any] = (), reason: str = ""
    ) -> Task | None:
        """Take what became of a worker's photo, and give out another, if there is one.

        Of one that was not to be drawn any more, nothing becomes, unless it was paid for and lost before.
        """
        with self.lock:
            place, worker.place, worker.drawn = worker.place, -1, False
            if entry is not None and entry.status != UNTRIED:
                if entry.status == SKIPPED and place in self.deaths:  # its worker had written it
                    entry = replace(entry, status=RELEASED)
                self._keep(place, entry, seen)
                if reason:
                    self._stop(reason)
            elif entry is not None and self.tasks[place].output in self.run.paid:
                self._keep(place, self._lost(self.tasks[place]))
            if self.reason or not self.waiting:
                return None
            worker.place, worker.payment = self.waiting.popleft(), None
            return self.tasks[worker.place]

    def _call_stop_reason(self, worker: Worker) -> str:
        """Let a photo be drawn, unless the run has been stopped, or it was paid for and drawn before."""
        with self.lock:
            lost = DIED if self.tasks[worker.place].output in self.run.paid else ""
            worker.drawn = not (reason := self.reason or lost)
            return reason

    def _call_method(self, worker: Worker, owner: str, name: str, *given: Any, **more: Any) -> Any:
        """Call a method of what this process alone has.

        A photo is paid for from its debit on, also if its worker died meanwhile.
        """
        choices = self.run.choices
        owners: dict[str, Any] = {
            "ledger": choices.ledger,
            "payment": worker.payment,
            "key": choices.sign and choices.sign.private,
            "mark": choices.mark,
        }
        answer = getattr(owners[owner], name)(*given, **more)
        if name != "debit":
            return answer
        worker.payment = answer
        self.run.paid.add(self.tasks[worker.place].output)
        return None
