"""What commands without photos to count say of Ctrl-C: what is kept, or that nothing is."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from dpveil.cli import exits
from dpveil.errors import DPVeilError


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
