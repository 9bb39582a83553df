"""The processes of workers, as the process that starts them sees them."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final

PROGRAM: Final = "dpveil.batch.worker"
"""The module that a worker runs."""
ONE_THREAD: Final = {
    f"{library}_NUM_THREADS": "1"
    for library in ("OMP", "OPENBLAS", "MKL", "NUMEXPR", "VECLIB_MAXIMUM", "NUMBA")
}
"""There is a worker for each core, so each has one thread."""
END_SECONDS: Final = 20
"""Seconds within which a worker ends that has nothing left to do."""


@dataclass(eq=False)
class Worker:
    """A process, the photos that it `holds`, those of them that may be `drawn`, and the last of these.

    `lone` is one of which a worker died; no other is given out beside it. Of those `refused` nothing is kept.
    """

    process: subprocess.Popen[bytes]
    holds: set[int] = field(default_factory=set)
    drawn: set[int] = field(default_factory=set)
    refused: set[int] = field(default_factory=set)
    last: int = -1
    lone: int | None = None
    ready: bool = False

    @classmethod
    def start(cls) -> Worker:
        """Return a new worker, in a session of its own, so that Ctrl-C in a terminal reaches this one alone.

        Raises `OSError`.
        """
        environment = {**os.environ, **ONE_THREAD, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        process = subprocess.Popen(  # noqa: S603  this very program
            (sys.executable, "-P", "-m", PROGRAM),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,  # what libraries print may tell of photos
            env=environment,
            start_new_session=True,
        )
        return cls(process)

    def end(self) -> None:
        """Close its pipes, after which it ends; kill it if it takes long."""
        for stream in (self.process.stdin, self.process.stdout):
            if stream is not None:
                with suppress(OSError):
                    stream.close()
        try:
            self.process.wait(END_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
