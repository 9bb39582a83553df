"""A real worker that notes each draw in a file before it begins: $TMPDIR/draws."""

from __future__ import annotations

import os
from typing import Any

from dpveil.processes import Channel
from dpveil.release.plan import Plan
from dpveil.service import worker


def serve(channel: Channel) -> None:
    """Run the worker; a line in the file is a draw that may have happened."""
    draws = os.open(f"{os.environ['TMPDIR']}/draws", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    release = Plan.release

    def noted(self: Plan, *given: Any, **more: Any) -> Any:
        os.write(draws, b"draw\n")
        return release(self, *given, **more)

    Plan.release = noted  # type: ignore[method-assign]
    worker.serve(channel)
