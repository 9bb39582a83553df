"""The processes that a script starts, however they are descended: their names, memory and processor time.

A script whose environment has `MARK` hands it down to all of them; that also finds those of Ray, whose
parents have other groups and sessions.
"""

from __future__ import annotations

import os
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path

MARK = "DPVEIL_PROCESSES"
TICK = 1 / os.sysconf("SC_CLK_TCK")


def ours(token: str) -> Iterator[tuple[int, str]]:
    """Yield number and name of every process that has `MARK` with this value in its environment."""
    wanted = f"{MARK}={token}".encode()
    for place in Path("/proc").iterdir():
        if place.name.isdecimal():
            with suppress(OSError):
                if wanted in (place / "environ").read_bytes().split(b"\0"):
                    yield int(place.name), (place / "cmdline").read_bytes().replace(b"\0", b" ").decode()


def is_worker(name: str) -> bool:
    """Whether this is the name of a process in which Ray Data releases photos."""
    return name.startswith("ray::MapWorker")


def memory(process: int) -> float:
    """Return the memory of a process in MB, what it shares divided among those that share it."""
    with suppress(OSError):
        text = Path(f"/proc/{process}/smaps_rollup").read_text()
        return int(text.partition("\nPss:")[2].split()[0]) / 1024
    return 0.0


def nodes(token: str) -> dict[int, dict[int, str]]:
    """Return the processes of each node of Ray with their names, by the number of its raylet.

    They are the raylet and all that it started.
    """
    seen, found = dict(ours(token)), dict[int, dict[int, str]]()
    parents = {process: _parent(process) for process in seen}
    for process, name in seen.items():
        root = process
        while root in parents and "/raylet/raylet " not in seen[root]:
            root = parents[root]
        if root in parents:
            found.setdefault(root, {})[process] = name
    return found


def note_memory(token: str, most: Counter[str]) -> None:
    """Raise `most` to the MB that a worker, a node that has one, and this process take now."""
    now = Counter({"MB of the driver": memory(os.getpid())})
    for node in nodes(token).values():
        taken = {process: memory(process) for process in node}
        workers = [taken[process] for process, name in node.items() if is_worker(name)]
        if workers:
            now |= Counter({"MB of a worker": max(workers), "MB of a node": sum(taken.values())})
    for name, each in now.items():
        most[name] = max(most[name], round(each))


def _parent(process: int) -> int:
    fields = _fields(process)
    return int(fields[1]) if fields else 0


def _fields(process: int) -> list[str]:
    """Return what /proc tells of a process, from its state on."""
    with suppress(OSError):
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return []


class Watch:
    """Processor time of this process and of all that have its mark, and the most memory that they took.

    This process must have had the mark when it began. What has ended counts as last seen. Looking, ten times
    a second, is not counted.
    """

    def __init__(self) -> None:
        self.most = Counter[str]()
        self._wanted = f"{MARK}={os.environ[MARK]}".encode()
        self._known: dict[int, bool] = {os.getpid(): False}
        self._ticks: dict[int, int] = {}
        self._workers = set[int]()
        self._looking, self._lock = 0.0, threading.Lock()
        threading.Thread(target=self._watch, daemon=True).start()

    def seconds(self) -> tuple[float, float]:
        """Return the seconds of processor time so far: of workers of Ray Data, and of everything else."""
        with self._lock, self._uncounted():
            self._look()
        with self._lock:
            workers = sum(ticks for process, ticks in self._ticks.items() if process in self._workers) * TICK
            every = sum(self._ticks.values()) * TICK + time.process_time() - self._looking
            return workers, every - workers

    @contextmanager
    def _uncounted(self) -> Iterator[None]:
        began = time.thread_time()
        yield
        self._looking += time.thread_time() - began

    def _watch(self) -> None:
        for number in count():
            with self._lock, self._uncounted():
                self._look()
                if number % 20 == 0:
                    note_memory(os.environ[MARK], self.most)
            time.sleep(0.1)

    def _look(self) -> None:
        for place in os.listdir("/proc"):  # noqa: PTH208  a hundred of them
            if place.isdecimal() and self._is_ours(int(place)):
                fields = _fields(int(place))
                if len(fields) > 12:
                    self._ticks[int(place)] = int(fields[11]) + int(fields[12])
                    self._note_name(int(place))

    def _note_name(self, process: int) -> None:
        if process not in self._workers:
            with suppress(OSError):
                if is_worker(Path(f"/proc/{process}/cmdline").read_bytes().decode(errors="replace")):
                    self._workers.add(process)

    def _is_ours(self, process: int) -> bool:
        if process not in self._known:
            with suppress(OSError):
                given = Path(f"/proc/{process}/environ").read_bytes().split(b"\0")
                self._known[process] = self._wanted in given
        return self._known.get(process, False)
