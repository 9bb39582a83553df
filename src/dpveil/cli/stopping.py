"""What commands say of Ctrl-C: what is kept, or that nothing is, and what is finished first."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, Final

from dpveil.cli import exits
from dpveil.errors import DPVeilError

if TYPE_CHECKING:
    from dpveil.batch.interrupts import Interrupts

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
