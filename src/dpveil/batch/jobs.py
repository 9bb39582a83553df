"""Several processes for one run: workers release photos, and this process pays, signs and reports.

A worker has two photos at a time: it plans and draws one while the other is written. Ledger and private keys
are used here alone, so what is known here is all that was paid, whenever a worker dies: its photos that
were not paid for are tried again, each without another beside it, and those that were are reported.
"""

from __future__ import annotations

import os
import pickle
import stat
import threading
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, Final

from dpveil.batch.calls import ENDED, Call, Raised, Setup, send
from dpveil.batch.found import Given, Seen
from dpveil.batch.interrupts import Interrupts
from dpveil.batch.owner import CALLS as OWNERS
from dpveil.batch.owner import Owner
from dpveil.batch.process import Worker
from dpveil.batch.report import INTERRUPTED, UNSTARTED, Entry, Report, Untried
from dpveil.batch.shared import Shared
from dpveil.batch.task import Task
from dpveil.errors import InvalidParameter
from dpveil.io.received import without_blocking

if TYPE_CHECKING:
    from dpveil.batch.run import Run

MOST: Final = 256
"""Most processes of one run."""
TRIES: Final = 2
"""How many workers may die of a photo."""
MADE, PRESSED, LEFT = "made", "pressed", "left"
"""What the reporting thread is told: a photo is done, Ctrl-C was pressed, a thread has no more workers."""
PHOTOS_EACH: Final = 64
BYTES_EACH: Final = 1 << 24
"""Photos, and bytes of them, for which another process is worth its start, which takes two seconds."""


def nothing(*release: object) -> None:
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
        self.setup = Setup.packed(run.choices, run.report.options, see)
        self.shared, self.owner = Shared(), Owner(run)
        self.places = {task.output: place for place, task in enumerate(tasks)}
        self.fresh, self.again = deque(range(len(tasks))), deque[int]()
        self.deaths, self.unstarted = dict[int, int](), 0
        self.made, self.workers = dict[int, _Made](), set[Worker]()
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
                    worker.process.kill()

    def _work(self) -> None:
        """Run workers, one after another if they die, until there is nothing left for one."""
        try:
            while self._left():
                worker = self._started()
                if worker is None:
                    continue
                try:
                    self._serve(worker)
                finally:
                    worker.end()
                    with self.lock:
                        self.workers.discard(worker)
                    self._bury(worker)
        except Exception:  # noqa: BLE001  nobody foresaw it: what is not done yet is reported as untried
            self._stop(UNSTARTED)
        finally:
            self.inbox.put(LEFT)

    def _left(self) -> bool:
        with self.lock:
            return bool(self.fresh or self.again) and not self.shared.reason

    def _started(self) -> Worker | None:
        try:
            worker = Worker.start()
        except OSError:
            self._stop(UNSTARTED)
            return None
        with self.lock:
            self.workers.add(worker)
            if self.shared.reason:
                worker.process.kill()
        return worker

    def _serve(self, worker: Worker) -> None:
        """Answer the calls of a worker until it ends."""
        calls, answers = worker.process.stdout, worker.process.stdin
        with suppress(*ENDED):
            if calls is None or answers is None:
                return
            send(answers, self.setup)
            while True:
                call = pickle.load(calls)  # noqa: S301  see the module `calls`
                worker.ready = True
                send(answers, pickle.dumps(self._answered(worker, call)))
                with self.lock:
                    if self.shared.reason and not worker.drawn:
                        worker.process.kill()
                        return

    def _answered(self, worker: Worker, call: Call) -> object:
        try:
            if call.name in OWNERS:
                return OWNERS[call.name](self.owner, self.tasks[worker.last], *call.given, **call.more)
            return CALLS[call.name](self, worker, *call.given, **call.more)
        except Exception as error:  # noqa: BLE001  it is the photo's error, as without workers
            return Raised.of(error)

    def _next(self, worker: Worker, *done: Any) -> Given | None:
        """Give out a photo, if there is another just now; with the last one written, a worker is `done`."""
        if done:
            self._done(worker, *done)
        with self.lock:
            if self.shared.reason or not (self.fresh or self.again):
                return None
            if worker.lone in worker.holds or (worker.holds and not self.fresh):
                return None, None, None
            if not self.fresh:
                worker.lone = self.again[0]
            place = (self.fresh or self.again).popleft()
            worker.holds.add(place)
            later = self.fresh[len(self.workers)] if len(self.fresh) > len(self.workers) else None
        if later is not None:
            _advise(self.tasks[later].source)
        task = self.tasks[place]
        return task, self.run.copies.get(task.source), self.run.found.seen.get(task.output)

    def _stopped(self, worker: Worker, output: Path) -> str:
        """Let a photo be drawn, unless the run has been stopped."""
        with self.lock:
            worker.last = self.places[output]
            (worker.refused if self.shared.reason else worker.drawn).add(worker.last)
            return self.shared.reason

    def _open(self, worker: Worker, folder: Path) -> object:
        with self.lock:
            self.shared.open(folder)
            return self.shared.made[folder]

    def _done(
        self, worker: Worker, output: Path, entry: Entry, seen: list[Any], reason: str, found: Seen | None
    ) -> None:
        """Take what became of a photo; of one that was not to be drawn any more, nothing."""
        place = self.places[output]
        self.run.found.add(output, found)
        self.owner.forget(self.tasks[place])
        with self.lock:
            worker.holds.discard(place)
            worker.drawn.discard(place)
            if place not in worker.refused:
                self._keep(place, _Made(entry, seen))
            if reason:
                self._stop(reason)

    def _keep(self, place: int, made: _Made) -> None:
        self.made[place] = made
        self.inbox.put(MADE)

    def _bury(self, worker: Worker) -> None:
        """Decide what becomes of the photos that a worker held when it ended."""
        with self.lock:
            self.unstarted = 0 if worker.ready else self.unstarted + 1
            if self.unstarted > TRIES:
                self._stop(UNSTARTED)
        for place in sorted(worker.holds):
            task = self.tasks[place]
            entry = self.owner.died(task, drawn=place in worker.drawn)
            with self.lock:
                tried = self.deaths[place] = self.deaths.get(place, 0) + 1
                if entry is not None or (tried >= TRIES and not self.shared.reason):
                    self._keep(place, _Made(entry or self.owner.lost(task)))
                else:
                    self.again.append(place)


CALLS: Final[dict[str, Callable[..., object]]] = {
    "next": Jobs._next,
    "stopped": Jobs._stopped,
    "stop": lambda jobs, worker, reason: jobs._stop(reason),
    "open": Jobs._open,
    "done": Jobs._done,
}
"""What a worker can call for, besides what the owner does."""


def _advise(path: Path) -> None:
    """Let the system read a file ahead, where it can."""
    if not hasattr(os, "posix_fadvise"):
        return
    with suppress(OSError, ValueError):
        handle = without_blocking(os.fspath(path), os.O_RDONLY) if path.is_file() else -1
        if handle >= 0:
            try:
                if stat.S_ISREG(os.fstat(handle).st_mode):
                    os.posix_fadvise(handle, 0, 0, os.POSIX_FADV_WILLNEED)
            finally:
                os.close(handle)
