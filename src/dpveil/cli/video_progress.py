"""Progress over the frames of a clip: a bar on a terminal, lines in a log, and with --json objects of JSON.

All of it goes to stderr: stdout has the answer alone.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

from dpveil.cli import say
from dpveil.cli.progress import EVERY, in_words

SECOND: Final = 1.0
"""Least seconds between two objects."""

Progress = Callable[[str, int, int], None]
"""Called with a stage ("analyzing", "rendering"), how many of its frames are done, and how many there are."""


@dataclass
class Pace:
    """How fast a stage goes: it began at a time with so many frames done, as a run that is resumed does."""

    clock: Callable[[], float]
    stage: str = ""
    began: float = 0.0
    first: int = 0
    last: float = 0.0

    def at(self, stage: str, done: int) -> bool:
        """Take note of the frames that are done; return whether the stage is new."""
        new = stage != self.stage
        if new:
            self.stage, self.began, self.first = stage, self.clock(), done
            self.last = self.began
        return new

    def due(self, every: float) -> bool:
        """Whether so many seconds have passed since this was last true."""
        now = self.clock()
        if now - self.last < every:
            return False
        self.last = now
        return True

    def rate(self, done: int) -> float | None:
        """Return frames per second since the stage began; None if nothing can be said yet."""
        passed = self.clock() - self.began
        return (done - self.first) / passed if passed > 0 and done > self.first else None

    def left(self, done: int, of: int) -> float | None:
        """Return the seconds that are left; None if nothing can be said yet."""
        rate = self.rate(done)
        return None if rate is None else (of - done) / rate


@contextmanager
def frames_bar(
    *, quiet: bool = False, as_json: bool = False, clock: Callable[[], float] = time.monotonic
) -> Iterator[Progress]:
    """Show progress over frames during the context; yield what to call with it."""
    if quiet:
        yield lambda stage, done, of: None
    elif as_json:
        yield _objects(Pace(clock))
    elif not sys.stderr.isatty():
        yield _lines(Pace(clock))
    else:
        with _bar(Pace(clock)) as show:
            yield show


def _objects(pace: Pace) -> Progress:
    def tell(stage: str, done: int, of: int) -> None:
        new = pace.at(stage, done)
        if new or done == of or pace.due(SECOND):
            rate, left = pace.rate(done), pace.left(done, of)
            known = {
                "fps": None if rate is None else round(rate, 2),
                "seconds_left": None if left is None else round(left, 1),
            }
            say.note(json.dumps({"stage": stage, "frame": done, "of": of, **known}))

    return tell


def _lines(pace: Pace) -> Progress:
    def tell(stage: str, done: int, of: int) -> None:
        pace.at(stage, done)
        if done < of and pace.due(EVERY):
            say.note(f"{stage}: {done:,} of {of:,} frames{_in_words(pace, done, of)}")

    return tell


@contextmanager
def _bar(pace: Pace) -> Iterator[Progress]:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn
    from rich.progress import Progress as Bar

    columns: list[Any] = [TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn()]
    with Bar(
        *columns, TextColumn("{task.fields[pace]}"), console=Console(stderr=True), transient=True
    ) as shown:
        task = shown.add_task("", total=None, pace="")

        def tell(stage: str, done: int, of: int) -> None:
            if pace.at(stage, done):
                shown.reset(task, total=of, description=stage)
            words = _in_words(pace, done, of).removeprefix(", ")
            shown.update(task, completed=done, total=of, pace=words)

        yield tell


def _in_words(pace: Pace, done: int, of: int) -> str:
    rate, left = pace.rate(done), pace.left(done, of)
    return "" if rate is None or left is None else f", {rate:.1f} frames/s, about {in_words(left)} left"
