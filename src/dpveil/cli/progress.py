"""Progress: a bar on a terminal."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dpveil.cli import exits
from dpveil.errors import DPVeilError

if TYPE_CHECKING:
    from dpveil.batch.interrupts import Interrupts


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
    with frames_bar(quiet=quiet or total < 2) as show:
        show(word, 0, total)
        yield Steps(total, word, show)


@contextmanager
def frames_bar(*, quiet: bool = False) -> Iterator[Progress]:
    """Show progress over what takes long during the context; yield what to call with it."""
    if quiet or not sys.stderr.isatty():
        yield lambda stage, done, of: None
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
    if jobs == 1:  # the threads of this process cannot be left
        again = "photos that are being read are waited for"
    text = f"\nstopping: what is being drawn is finished and saved first; {again}\n".encode()

    def tell() -> None:
        # past stderr's buffer, in which a signal's handler may have interrupted a line
        with suppress(OSError):
            os.write(2, text)

    return Interrupts(tell)
