"""Workers on the machines of a Ray cluster (docs, "Clusters"): the road is that of workers on this machine.

An actor runs `workers.serve`, and its messages go through Ray instead of pipes. It reads photos and writes
releases on a disk that all machines see. The run pays, signs and keeps folders' states, as with `--jobs`.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from importlib.metadata import version
from pathlib import Path
from queue import SimpleQueue
from typing import Any, Final

import numpy as np

from dpveil.batch.workers import serve
from dpveil.errors import UsageError
from dpveil.io.locking import in_use
from dpveil.io.names import show_path
from dpveil.io.writing import OWNER_ONLY, as_output_error, make_folder, temporary_path
from dpveil.processes import Message

INSTALL: Final = "pip install 'dpveil[scale]'"


class Actor:
    """What Ray makes on a machine: a worker in a thread, and as a channel what its messages go through."""

    def __init__(self) -> None:
        self._heard, self._told = SimpleQueue[bytes](), SimpleQueue[bytes | None]()

    def refusal(self, run_version: str, folder: Path, seen: Path | None) -> str:
        """Return why this machine cannot take part in a run, if so, and begin to work if not."""
        with suppress(OSError):  # without it, the paths of the run have to be absolute
            os.chdir(folder)
        if version("dpveil") != run_version:
            return f"a machine of the cluster has dpveil {version('dpveil')}, and the run {run_version}"
        if seen is not None and not seen.exists():  # what it wrote would be paid for, and nobody found it
            return f"a machine of the cluster does not see {show_path(seen.parent)}"
        threading.Thread(target=self._work, daemon=True).start()
        return ""

    def _work(self) -> None:
        try:
            serve(self)
        finally:
            self._told.put(None)

    def answer(self, message: bytes) -> bytes | None:
        """Return the worker's next message after this one; None once it has ended."""
        self._heard.put(message)
        return self._told.get()

    def send(self, _: Any, message: bytes) -> None:
        self._told.put(message)

    def receive(self) -> Message:
        return None, [np.frombuffer(self._heard.get(), np.uint8)]


class RayChild:
    """A worker of the cluster; it has what a run uses of a `processes.Child` and of its channel."""

    def __init__(self, ray: Any, seen: Path | None) -> None:
        self._ray, self.channel = ray, self
        # a worker that has died is not started again by Ray: the run reports its photo
        self._actor = ray.remote(num_cpus=1)(Actor).remote()
        try:
            problem = ray.get(self._actor.refusal.remote(version("dpveil"), Path.cwd(), seen))
        except ray.exceptions.RayError as error:  # such as of a machine without dpveil
            problem = f"a worker cannot start: {' '.join(str(error).split())[:300]}"
        if problem:
            self.kill()
            hint = "install one version on all machines, and name a folder that all see, on a network disk"
            raise UsageError(problem, hint=hint)

    def send(self, _: Any, message: bytes) -> None:
        self._answer = self._actor.answer.remote(message)

    def receive(self) -> Message | None:
        try:
            message = self._ray.get(self._answer)
        except self._ray.exceptions.RayError as error:
            raise EOFError from error
        return None if message is None else (None, [np.frombuffer(message, np.uint8)])

    def kill(self) -> None:
        self._ray.kill(self._actor)

    stop = kill


@contextmanager
def cluster(out: Path | None) -> Iterator[tuple[int, Callable[[], RayChild]]]:
    """Connect to the cluster of RAY_ADDRESS, or start one here; yield its cores, and what starts a worker.

    Every machine has to see the folder `out`, in which a temporary file lies meanwhile. Raises `UsageError`
    and `OutputError`.
    """
    try:
        import ray
    except ImportError as error:
        raise UsageError("Ray is not installed", hint=INSTALL) from error
    if not ray.is_initialized():
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # nothing is sent to Ray's makers
        on_termination = signal.getsignal(signal.SIGTERM)
        try:
            # Without an address, Ray would join any cluster that a file in its temporary folder names, which
            # other users of the machine may write.
            ray.init(os.environ.get("RAY_ADDRESS") or "local", log_to_driver=False)
        except (ConnectionError, RuntimeError, ValueError) as error:
            problem = f"the cluster cannot be reached: {' '.join(str(error).split())}"
            raise UsageError(problem, hint="see RAY_ADDRESS") from error
        finally:
            with suppress(ValueError):  # not in the main thread, where Ray has changed nothing
                # Ray ends the process at once, and what is paid for and not written would be lost
                signal.signal(signal.SIGTERM, on_termination)
    cores = max(1, int(ray.cluster_resources().get("CPU", 1)))
    if out is None:
        yield cores, lambda: RayChild(ray, None)
        return
    make_folder(out)
    seen = temporary_path(out)
    with as_output_error(seen):
        handle = os.open(seen, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, OWNER_ONLY)
    try:
        with in_use(handle):  # else a run would take it for a leftover
            yield cores, lambda: RayChild(ray, seen)
    finally:
        os.close(handle)
        seen.unlink(missing_ok=True)
