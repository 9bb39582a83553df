"""Several processes for one run: workers release photos, and this process pays, signs and reports.

A worker has one photo at a time. It calls the ledger and private keys here, where alone they are: so this
process knows all that was paid, whenever a worker dies.
"""

from __future__ import annotations

import pickle
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Final

from dpveil.batch.interrupts import Interrupts
from dpveil.batch.photo_release import PhotoReleaser
from dpveil.batch.report import INTERRUPTED, RELEASED, UNSTARTED, Entry, Report, Untried
from dpveil.batch.tasks import RunSettings, Task
from dpveil.errors import DPVeilError, InvalidParameter, UsageError
from dpveil.mechanisms.method import Method
from dpveil.opencv import cv2
from dpveil.processes import Child, cores, keep_freed_memory
from dpveil.release.saving import remove_leftovers

TARGET: Final = "dpveil.batch.workers:serve"
CHANNEL_ENDED: Final = (EOFError, OSError, ValueError, pickle.UnpicklingError)
"""What reading from, or writing to, an ended process raises."""


def send(channel: Any, *message: object) -> None:
    channel.send(None, pickle.dumps(message))


def receive(channel: Any) -> Any:
    """Return the parts of the next message; raises `EOFError` at the end."""
    message = channel.receive()
    if message is None:
        raise EOFError
    [packed] = message[1]
    # The worker is our own code on files of the user, who is no adversary (decisions, One trust boundary).
    # What strangers send to a service goes through `processes`, which unpickles nothing.
    return pickle.loads(packed.data)  # noqa: S301


# In a worker


class _Remote:
    """A ledger, a payment, a private key or a folder's state: its methods are called where the run is."""

    files: tuple[Path, ...] = ()  # of a ledger: the worker opens none

    def __init__(self, channel: Any, owner: str) -> None:
        self._channel, self._owner = channel, owner

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name.startswith("_"):  # what pickle and copy look for
            raise AttributeError(name)
        return partial(self._call, name)

    def debit(self, *given: Any, **more: Any) -> _Remote:
        self._call("debit", *given, **more)
        return _Remote(self._channel, "payment")

    def _call(self, name: str, *given: Any, **more: Any) -> Any:
        try:
            send(self._channel, "call", self._owner, name, given, more)
            [answer] = receive(self._channel)
        except CHANNEL_ENDED:
            raise SystemExit from None  # the run is gone: nothing that was not written yet will be
        if isinstance(answer, Exception):
            raise answer
        return answer


def serve(channel: Any) -> None:
    from dpveil.release.c2pa_manifests import Marker
    from dpveil.release.keys import SigningKey

    keep_freed_memory()
    cv2.setNumThreads(1)  # there is a worker for each core
    choices, options, summarise, pays, public, marks = receive(channel)
    choices = replace(
        choices,
        ledger=_Remote(channel, "ledger") if pays else None,
        sign=None if public is None else SigningKey(public, _Remote(channel, "key")),  # type: ignore[arg-type]
        mark=None if marks is None else Marker(marks[0], marks[1], _Remote(channel, "mark").sign),
    )
    report, summaries = Report(options), list[object]()
    # The run keeps the states: another machine of a cluster has other ones.
    states = defaultdict[Path, Any](partial(_Remote, channel, "state"))
    releaser = PhotoReleaser(
        choices, report, lambda *release: summaries.append(summarise(*release)), states=states
    )
    send(channel, "ready")
    while True:
        [task] = receive(channel)
        reason = releaser.finish(task, partial(releaser.prepare, task))
        send(channel, "done", report.entries.pop(), [*summaries], reason)
        summaries.clear()


# In the run


MOST_JOBS: Final = 256  # more processes than this are a slip of the keyboard, not a machine
DIED: Final = "the process that released it ended: it was killed, out of memory, or crashed on the photo"
PHOTOS_EACH: Final = 64
FACES_EACH: Final = 16
BYTES_EACH: Final = 1 << 24
"""Photos, those whose faces are drawn anew, and bytes, for which another process is worth half a second."""


def ignore_release(*release: object) -> None:
    """See nothing of a release."""


def check_jobs(jobs: int) -> None:
    """Raise `InvalidParameter` unless `jobs` is a number of processes."""
    given: object = jobs
    if isinstance(given, bool) or not isinstance(given, int) or not 1 <= given <= MOST_JOBS:
        raise InvalidParameter("jobs", str(jobs), f"is not in 1..{MOST_JOBS}", hint="give one for each core")


def usual_jobs(tasks: Sequence[Task], method: Method) -> int:
    """Return how many processes are worth their start: at most one for each core."""
    each = FACES_EACH if method.draws_faces else PHOTOS_EACH
    size = sum(task.stamp[0] for task in tasks if task.stamp is not None)
    return max(1, min(cores(), MOST_JOBS, max(len(tasks) // each, size // BYTES_EACH)))


def pack_setup(choices: RunSettings, options: Mapping[str, str], summarise: Callable[..., object]) -> bytes:
    """Return what a worker is told first, without ledger and private keys.

    Raises `UsageError` if a method, finder or step cannot be sent.
    """
    sign, mark = choices.sign, choices.mark
    bare = replace(choices, ledger=None, sign=None, mark=None)
    public = None if sign is None else sign.public
    marks = None if mark is None else (mark.chain, mark.algorithm)
    try:
        return pickle.dumps((bare, options, summarise, choices.ledger is not None, public, marks))
    except Exception as error:
        raise UsageError(
            f"the method, or what finds its regions, cannot be sent to other processes: {error}",
            hint="set {jobs} to 1",
            arguments={"jobs": "jobs"},
        ) from error


Outcome = tuple[Entry, Sequence[Any]]
"""What became of a photo, and what was seen of it."""


class WorkerPool:
    """The photos of a run, given out to workers; a thread for each waits for it and answers its calls.

    `start` starts a worker: here, as a process, unless it is one of a cluster (`ray_workers`).
    """

    def __init__(
        self,
        run: PhotoReleaser,
        tasks: Sequence[Task],
        summarise: Callable[..., Any],
        collect: Callable[[Any], None],
        start: Callable[[], Any] | None = None,
    ) -> None:
        self.run, self.tasks, self.collect = run, tasks, collect
        self.start = start or partial(Child, TARGET, one_thread=True)
        self.setup = pack_setup(run.choices, run.report.options, summarise)
        self.reasons = list[str]()  # why the run was stopped, if so: no other photo is given out
        self.idle, self.children = list[Any](), list[Any]()

    def release(self, count: int, step: Callable[[], None], interrupts: Interrupts) -> None:
        """Release all photos by `count` workers; the report is complete on return.

        On an interrupt, photos that workers have are finished; at a second one, all workers are killed.
        """

        def stop() -> None:
            self.reasons.append(INTERRUPTED)
            for child in self.children if interrupts.presses > 1 else ():
                child.kill()

        report = self.run.report
        try:
            with (
                interrupts.handled_by(stop),
                ThreadPoolExecutor(count, thread_name_prefix="worker") as threads,
            ):
                for task, made in zip(self.tasks, threads.map(self._release, self.tasks), strict=True):
                    if made is None:
                        report.fail(task, Untried(self.reasons[0]), tried=False)
                    else:
                        report.entries.append(made[0])
                        for summary in made[1]:
                            self.collect(summary)
                        step()
        finally:
            for child in self.children:
                child.stop()
        report.stopped = next(iter(self.reasons), report.stopped)

    def _release(self, task: Task) -> Outcome | None:
        """Return what became of a photo; None if it was not given to a worker, as the run was stopped."""
        if self.reasons:
            return None
        try:
            child = self._take()
        except (*CHANNEL_ENDED, UsageError) as error:
            self.reasons.append(UNSTARTED)
            if isinstance(error, UsageError) and str(error) not in self.run.report.notes:
                self.run.report.notes.append(str(error))  # a machine of a cluster is not as it should be
            return None
        if self.reasons:  # while the worker started
            return None
        try:
            send(child.channel, task)
            entry, summaries, reason = self._answer_calls(child, task)
        except CHANNEL_ENDED:
            return self._after_death(task)
        self.reasons += [reason] * bool(reason)
        self.idle.append(child)
        return entry, summaries

    def _take(self) -> Any:
        with suppress(IndexError):
            return self.idle.pop()
        child = self.start()
        self.children.append(child)
        child.channel.send(None, self.setup)
        receive(child.channel)  # that it is ready
        return child

    def _answer_calls(self, child: Any, task: Task) -> tuple[Entry, Sequence[Any], str]:
        choices = self.run.choices
        owners: dict[str, Any] = {"ledger": choices.ledger, "mark": choices.mark}
        owners["key"] = choices.sign and choices.sign.private
        owners["state"] = self.run.states[task.output.parent]
        while (told := receive(child.channel))[0] == "call":
            _, owner, name, given, more = told
            try:
                answer: object = getattr(owners[owner], name)(*given, **more)
            except Exception as error:  # noqa: BLE001  it is the photo's error, as without workers
                answer = error
            else:
                if name == "debit":
                    owners["payment"], answer = answer, None
                    self.run.paid.add(task.output)
            send(child.channel, answer)
        entry, summaries, reason = told[1:]
        return entry, summaries, reason

    def _after_death(self, task: Task) -> Outcome | None:
        """Return what became of a photo whose worker has died: it may have been written before."""
        remove_leftovers(task.output.parent)
        paid, report = task.output in self.run.paid, Report(self.run.report.options)
        there = self.run.find_release(task)
        if there is not None and task.remote is None:
            report.record_release(RELEASED, task, *there, keeps=task.keeps(self.run.choices))
        elif self.reasons and not paid and there is None:
            return None
        else:  # not tried again: it may end every process
            hint = (
                "it was paid for, and releasing it again costs again" if paid else "try it alone, with {jobs}"
            )
            if there is not None:  # it waits to be sent
                hint = "run the same command again: it is released, and is sent at no further cost"
            report.fail(task, DPVeilError(DIED, hint=hint, arguments={"jobs": "jobs=1"}))
        return report.entries.pop(), ()
