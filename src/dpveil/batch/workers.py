"""Workers of a run: processes that release photos as the run itself would, and call it for the rest.

A worker is told the settings, and calls for one photo after another, payments and signatures: ledger and
private keys stay behind. Messages are pickles, as a worker does nothing that the run would not do in its own
process: formats in which a stranger could take a decoder over are decoded elsewhere (`io.decoding`). No
pixels are sent: photos are read and written by workers.
"""

from __future__ import annotations

import pickle
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Final

from dpveil.batch.choices import Choices
from dpveil.batch.prefetch import ahead
from dpveil.batch.report import Entry, Report
from dpveil.batch.run import Run
from dpveil.batch.shared import Shared
from dpveil.batch.task import Task
from dpveil.core.guarantee import Guarantee
from dpveil.core.numbers import keep_freed
from dpveil.core.region import Covered
from dpveil.errors import DPVeilError, UsageError
from dpveil.processes import Channel
from dpveil.release.keys import PublicKey, SigningKey
from dpveil.release.marking import Marker

TARGET: Final = "dpveil.batch.workers:serve"
ENDED: Final = (EOFError, OSError, ValueError, pickle.UnpicklingError)
"""What reading from, or writing to, an ended process raises."""


@dataclass(frozen=True)
class Call:
    """One call: its name and arguments."""

    name: str
    given: tuple[Any, ...]
    more: Mapping[str, Any]


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
    def packed(cls, choices: Choices, options: Mapping[str, str], see: Callable[..., object]) -> bytes:
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
                hint="use {jobs}",
                arguments={"jobs": "jobs=1"},
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
                send(self._channel, Call(name, given, more))
                answer = heard(self._channel)
            except ENDED:
                raise SystemExit from None  # nothing that was not written yet will be
        if isinstance(answer, Exception):
            raise answer
        return answer

    def stopped(self, task: Task) -> str:
        """Ask whether a photo may be drawn."""
        return str(self("stopped", task.output))

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
    def __init__(self, calls: Calls, number: int) -> None:
        self._calls, self._number = calls, number

    def stored(self, sha256: str) -> None:
        self._calls("stored", self._number, sha256)


class _Ledger:
    files: tuple[Path, ...] = ()  # the worker opens none

    def __init__(self, calls: Calls) -> None:
        self._calls = calls

    def debit(self, subject: str, guarantee: Guarantee, key: str | bytes, **more: Any) -> _Payment:
        return _Payment(self._calls, self._calls("debit", subject, guarantee, key, **more))

    def knows(self, subject: str, sha256: str) -> bool:
        return bool(self._calls("knows", subject, sha256))

    def check_regions(self, covered: Covered) -> None:
        self._calls("check_regions", covered)


class _Signer:
    def __init__(self, calls: Calls) -> None:
        self._calls = calls

    def sign(self, data: bytes) -> bytes:
        return bytes(self._calls("sign", data))


class _Work:
    """The photos that the run gives out, and what became of those that are done."""

    def __init__(self, calls: Calls, run: Run) -> None:
        self._calls, self._run = calls, run
        self._done: tuple[Any, ...] = ()

    def __iter__(self) -> Iterator[tuple[Task | None, Callable[[], Any]]]:
        """Yield photos until there are no more; None where none is given out just now."""
        while (given := self._calls("next", *self._told())) is not None:
            task, copied, seen = given
            if copied is not None:
                self._run.copies[task.source] = copied
            if seen is not None:
                self._run.found.add(task.output, seen)
            yield task, partial(self._run.prepare, task) if task is not None else lambda: None

    def done(self, *done: Any) -> None:
        """Take what became of a photo, which the run is told when it is asked for another."""
        self.tell()
        self._done = done

    def tell(self) -> None:
        """Tell the run at once."""
        if done := self._told():
            self._calls("done", *done)

    def _told(self) -> tuple[Any, ...]:
        done, self._done = self._done, ()
        return done


def serve(channel: Channel) -> None:
    """Release photos, planning and drawing each while the one before is written."""
    import cv2

    keep_freed()
    cv2.setNumThreads(1)  # there is a worker for each core
    release(Calls(channel), heard(channel))


def release(calls: Calls, setup: Setup) -> None:
    """Release the photos that are given out."""
    seen: list[object] = []
    see = setup.see
    choices, report = setup.choices_by(calls), Report(setup.options)
    run = Run(choices, report, lambda *release: seen.append(see(*release)), around=calls)
    work = _Work(calls, run)

    def draw(task: Task | None, waiting: Callable[[], Any]) -> Any:
        return None if task is None else run.draw(task, waiting)

    with ahead(draw, work) as drawn:
        for task, waiting in drawn:
            if task is None:
                continue
            reason = run.turn(task, waiting)
            found = run.found.take(task.output)
            done = task.output, _plain(run.report.entries.pop()), [*seen], reason
            work.done(*done, found if run.choices.dry else None)
            seen.clear()
            run.copies.pop(task.source, None)
        work.tell()


def _plain(entry: Entry) -> Entry:
    """Return an entry whose error is named by its nearest class that every process has."""
    failure = entry.failure
    if failure is None:
        return entry
    own = (DPVeilError.__module__, BaseException.__module__)
    kind = next(kind for kind in failure.kind.__mro__ if kind.__module__ in own)
    return replace(entry, failure=replace(failure, kind=kind))
