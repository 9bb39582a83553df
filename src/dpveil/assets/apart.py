"""Networks from anybody that dpveil cannot screen, run in a process of its own, which may end."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import weakref
from contextlib import suppress
from pathlib import Path
from typing import IO, Final, cast

import numpy as np

from dpveil.assets import opencv_child
from dpveil.core.environment import passed_on
from dpveil.errors import ModelError

LONGEST: Final = 300
"""Seconds after which a run is ended; a search of 4096 × 3072 pixels takes 6."""
Child = subprocess.Popen[bytes]
Idle = list[tuple[int, Child]]
"""Processes that wait for more, each with the one that started it: after a fork, another may not use them."""


class Apart:
    """The `contents` of an ONNX file, for one of the jobs of `opencv_child`, in a process of its own.

    A damaged file can end the process that reads it: then this one goes on, with one error. May be called
    from several threads, each of which gets a process.
    """

    def __init__(self, job: str, contents: bytes) -> None:
        self.job, self.contents = job, contents
        self._idle: Idle = []
        weakref.finalize(self, _end_all, self._idle)

    def __reduce__(self) -> tuple[type[Apart], tuple[str, bytes]]:
        """Return how to make it again in another process, which starts its own."""
        return Apart, (self.job, self.contents)

    def __call__(self, *arrays: np.ndarray) -> np.ndarray:
        """Return the only array that the job gives for `arrays`; raises as `all`."""
        found = self.all(*arrays)
        if len(found) != 1:
            raise ModelError("the network gives several arrays")
        return found[0]

    def all(self, *arrays: np.ndarray) -> list[np.ndarray]:
        """Return the arrays that the job gives for `arrays`.

        Raises `ModelError` if the network is refused, or if the process ends or takes too long.
        """
        import cv2

        child, new = self._child()
        timer = threading.Timer(LONGEST, child.kill)
        try:
            timer.start()
            told = [[np.frombuffer(self.contents, np.uint8)]] if new else []
            for message in (*told, [np.array(cv2.getNumThreads(), np.float64), *arrays]):
                opencv_child.write(cast("IO[bytes]", child.stdin), message)
            found = opencv_child.read(cast("IO[bytes]", child.stdout), opencv_child.MOST_FOUND)
        except (EOFError, OSError, TypeError, ValueError) as error:
            _end(child)
            raise ModelError("the network ends the process that reads it") from error
        except BaseException:
            _end(child)
            raise
        finally:
            timer.cancel()
        self._idle.append((os.getpid(), child))
        if found is None:
            raise ModelError("the network does not run")
        return found

    def _child(self) -> tuple[Child, bool]:
        """Return a process that waits, or else a new one, which has no network yet, and whether it is new."""
        with suppress(IndexError):
            while True:
                started_by, child = self._idle.pop()
                if started_by == os.getpid():
                    return child, False
        return _started(self.job), True


def _started(job: str) -> Child:
    """Return a new process, which finds the packages that this one finds."""
    command = [sys.executable, "-P", str(Path(opencv_child.__file__)), job]
    paths = os.pathsep.join(path for path in sys.path if path)
    try:
        return subprocess.Popen(  # noqa: S603  no argument is a user's
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**passed_on(), "PYTHONPATH": paths},
            start_new_session=True,  # an interruption is for this process, which ends the other one
        )
    except OSError as error:
        reason = error.strerror or "it cannot be started"
        raise ModelError(f"the network needs a process of its own: {reason}") from error


def _end(child: Child) -> None:
    """End a process, whatever it does."""
    child.kill()
    for stream in (child.stdin, child.stdout):
        with suppress(OSError):
            cast("IO[bytes]", stream).close()
    child.wait()


def _end_all(idle: Idle) -> None:
    for started_by, child in idle:
        if started_by == os.getpid():
            _end(child)
