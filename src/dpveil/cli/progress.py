"""Progress on stderr: a bar on a terminal, and elsewhere, as in a log, a line now and then."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from dpveil.cli import exits, say
from dpveil.errors import DPVeilError

if TYPE_CHECKING:
    from dpveil.batch.interrupts import Interrupts


EVERY: Final = 30.0  # least seconds between two lines of a log

Progress = Callable[[str, int, int], None]
"""Called with a stage ("analyzing", "rendering"), how much of it is done, and of how much."""


@dataclass
class Steps:
    """Counts steps: call it after each."""

    total: int
    word: str
    show: Progress
    done: int = 0

    def __call__(self) -> None:
        self.done += 1
        self.show(self.word, self.done, self.total)

    def restart(self, word: str) -> None:
        """Begin to count the same number of steps anew, under another word."""
        self.word, self.done = word, 0
        self.show(word, 0, self.total)


@contextmanager
def bar(total: int, word: str, *, quiet: bool = False) -> Iterator[Steps]:
    """Show progress during the context; yield what to call after each of `total` steps.

    Nothing is shown of less than two steps, or if `quiet`.
    """
    with frames_bar(quiet=quiet or total < 2, unit="") as show:
        show(word, 0, total)
        yield Steps(total, word, show)


@contextmanager
def frames_bar(*, quiet: bool = False, unit: str = " frames") -> Iterator[Progress]:
    """Show progress over what takes long during the context; yield what to call with it."""
    if quiet:
        yield lambda stage, done, of: None
    elif not sys.stderr.isatty():
        yield _Log(unit)
    else:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
        from rich.progress import Progress as Bar

        columns: list[Any] = [TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn()]
        with Bar(*columns, TimeRemainingColumn(), console=Console(stderr=True), transient=True) as shown:
            task, last = shown.add_task("", total=None), ""

            def tell(stage: str, done: int, of: int) -> None:
                nonlocal last
                if stage != last:
                    shown.reset(task, total=of, description=stage)
                    last = stage
                shown.update(task, completed=done, total=of)

            yield tell


class _Log:
    def __init__(self, unit: str) -> None:
        self._unit, self._stage, self._began, self._first, self._last = unit, "", 0.0, 0, 0.0

    def __call__(self, stage: str, done: int, of: int) -> None:
        now = time.monotonic()
        if stage != self._stage:  # a run that is resumed begins with some of it done
            self._stage, self._began, self._first, self._last = stage, now, done, now
        elif done < of and now - self._last >= EVERY:
            self._last, more = now, done - self._first
            about = f", about {in_words((of - done) * (now - self._began) / more)} left" if more else ""
            say.note(f"{stage}: {done:,} of {of:,}{self._unit}{about}")


def in_words(seconds: float) -> str:
    """Return a time in its largest unit, rounded up.

    >>> in_words(29.5), in_words(61), in_words(7201)
    ('30 s', '2 min', '3 h')
    """
    size, unit = (3600, "h") if seconds >= 3600 else (60, "min") if seconds >= 60 else (1, "s")
    return f"{-int(-seconds // size)} {unit}"


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


def heard_to_the_end(jobs: int) -> Interrupts:
    """Return what hears Ctrl-C for a run by `jobs` processes, and says that it was heard."""
    from dpveil.batch.interrupts import Interrupts

    again = "Ctrl-C again ends at once, and photos that are paid for and not saved yet are lost"
    if jobs == 1:  # the threads of this process, which read photos, cannot be left
        again = "photos that are being read are waited for: if their disk hangs, only kill -9 ends that"
    text = f"\nstopping: what is being drawn is finished and saved first; {again}\n".encode()

    def tell() -> None:
        # past stderr's buffer, in which a signal's handler may have interrupted a line
        with suppress(OSError):
            os.write(2, text)

    return Interrupts(tell)
