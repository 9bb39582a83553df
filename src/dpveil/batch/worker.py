"""The program of a worker: it releases photos as the run itself would, and calls it for the rest."""

from __future__ import annotations

import os
import pickle
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

from dpveil.batch.calls import Line, Setup
from dpveil.batch.prefetch import ahead
from dpveil.batch.report import Entry, Report
from dpveil.batch.run import Run
from dpveil.batch.task import Task
from dpveil.core.allocator import keep_freed
from dpveil.errors import DPVeilError


class _Work:
    """The photos that the run gives out, and what became of those that are done."""

    def __init__(self, line: Line, run: Run) -> None:
        self._line, self._run = line, run
        self._done: tuple[Any, ...] = ()

    def __iter__(self) -> Iterator[tuple[Task | None, Callable[[], Any]]]:
        """Yield photos until there are no more; None where none is given out just now."""
        while (given := self._line("next", *self._told())) is not None:
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
            self._line("done", *done)

    def _told(self) -> tuple[Any, ...]:
        done, self._done = self._done, ()
        return done


def serve(line: Line, setup: Setup) -> None:
    """Release photos, planning and drawing each while the one before is written."""
    seen: list[object] = []
    run = Run(
        setup.choices_by(line),
        Report(setup.options),
        lambda *release: seen.append(setup.see(*release)),
        around=line,
    )
    work = _Work(line, run)

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


def main() -> None:
    """Run a worker on stdin and stdout; whatever else is printed goes nowhere."""
    answers, calls = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    nowhere = os.open(os.devnull, os.O_RDWR)
    for standard in (0, 1, 2):
        os.dup2(nowhere, standard)
    import cv2

    keep_freed()
    cv2.setNumThreads(1)  # there is a worker for each core
    setup = pickle.load(answers)  # noqa: S301  from the process that started this one
    serve(Line(answers, calls), setup)


if __name__ == "__main__":
    main()
