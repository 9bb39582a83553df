"""Progress on stderr: a bar on a terminal, and elsewhere, as in a log, a line now and then."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from dpveil.cli import exits, say
from dpveil.errors import DPVeilError

if TYPE_CHECKING:
    from dpveil.batch.interrupts import Interrupts


EVERY: Final = 30.0
"""Least seconds between two lines."""
LINES: Final = 100
"""Most lines about one run of steps."""


@dataclass
class Steps:
    """Counts steps: call it after each. `show` is called whenever the count or the word changes."""

    total: int
    word: str
    show: Callable[[Steps], None] = lambda steps: None
    done: int = 0

    def __call__(self) -> None:
        """Count one step."""
        self.done += 1
        self.show(self)

    def restart(self, word: str) -> None:
        """Begin to count the same number of steps anew, under another word."""
        self.word, self.done = word, 0
        self.show(self)


@dataclass
class _Log:
    """Prints a line once `EVERY` seconds have passed and a share of 1 / `LINES` was done since the last."""

    clock: Callable[[], float]
    began: float = field(init=False)
    last: float = field(init=False)
    told: int = 0

    def __post_init__(self) -> None:
        self.began = self.last = self.clock()

    def __call__(self, steps: Steps) -> None:
        now = self.clock()
        if steps.done == 0:
            self.began, self.last, self.told = now, now, 0
        elif (
            steps.done < steps.total
            and now - self.last >= EVERY
            and (steps.done - self.told) * LINES >= steps.total
        ):
            left = in_words((now - self.began) * (steps.total - steps.done) / steps.done)
            about = f", about {left} left" * (steps.done > 1)  # the first step may have loaded a network
            say.note(f"{steps.word}: {steps.done:,} of {steps.total:,}{about}")
            self.last, self.told = now, steps.done


def in_words(seconds: float) -> str:
    """Return a time in its largest unit, rounded up.

    >>> in_words(29.5), in_words(61), in_words(7201)
    ('30 s', '2 min', '3 h')
    """
    for size, unit in ((3600, "h"), (60, "min")):
        if seconds >= size:
            return f"{-int(-seconds // size)} {unit}"
    return f"{-int(-seconds // 1)} s"


@contextmanager
def bar(
    total: int, word: str, *, quiet: bool = False, clock: Callable[[], float] = time.monotonic
) -> Iterator[Steps]:
    """Show progress during the context; yield what to call after each of `total` steps.

    Nothing is shown of less than two steps, or if `quiet`.
    """
    if quiet or total < 2:
        yield Steps(total, word)
        return
    if not sys.stderr.isatty():
        yield Steps(total, word, _Log(clock))
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task(word, total=total)

        def show(steps: Steps) -> None:
            if steps.done == 0:
                progress.reset(task, description=steps.word)
            progress.update(task, completed=steps.done)

        yield Steps(total, word, show)


FINISHING: Final = "\nstopping: what is being drawn is finished and saved first{again}\n"
AGAIN: Final = "; Ctrl-C again ends at once, and photos that are paid for and not saved yet are lost"


class Interrupted(DPVeilError):
    """A run was stopped by Ctrl-C or a signal."""

    exit_code = exits.INTERRUPTED


@contextmanager
def stopping(kept: str) -> Iterator[None]:
    """Say of Ctrl-C what is `kept` of a run."""
    try:
        yield
    except KeyboardInterrupt as error:
        raise Interrupted("interrupted", hint=kept) from error


ALONE: Final = "; photos that are being read are waited for: if their disk hangs, only kill -9 ends that"
"""What a single process, whose threads read photos, cannot leave undone."""


def heard_to_the_end(jobs: int) -> Interrupts:
    """Return what hears Ctrl-C for a run by `jobs` processes, and says that it was heard."""
    from dpveil.batch.interrupts import Interrupts

    text = FINISHING.format(again=AGAIN if jobs > 1 else ALONE)
    return Interrupts(partial(_write, text.encode()))


def _write(text: bytes) -> None:
    """Write to stderr past its buffer, in which a signal's handler may have interrupted a line."""
    with suppress(OSError):
        os.write(2, text)


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

    def is_due(self, every: float) -> bool:
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

    def seconds_left(self, done: int, of: int) -> float | None:
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
        if new or done == of or pace.is_due(SECOND):
            rate, left = pace.rate(done), pace.seconds_left(done, of)
            known = {
                "fps": None if rate is None else round(rate, 2),
                "seconds_left": None if left is None else round(left, 1),
            }
            say.note(json.dumps({"stage": stage, "frame": done, "of": of, **known}))

    return tell


def _lines(pace: Pace) -> Progress:
    def tell(stage: str, done: int, of: int) -> None:
        pace.at(stage, done)
        if done < of and pace.is_due(EVERY):
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
    rate, left = pace.rate(done), pace.seconds_left(done, of)
    return "" if rate is None or left is None else f", {rate:.1f} frames/s, about {in_words(left)} left"
