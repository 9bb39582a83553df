"""What all fuzzers share: workers that are given files by their index, and what came of each.

A fuzzer is a program of its own: `--files N [--first 0] [--workers 2] [--only INDEX]`. Every file is a
function of its index alone, so that a finding is repeated with `--only`. A worker that is silent for too long
is killed (a hang), one that dies is a crash, and the files after that go to another one.
"""

import argparse
import json
import os
import selectors
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

MEMORY_DISK = Path("/dev/shm")  # noqa: S108  files are named by their worker, in a folder of their own
GIVE_BACK = {"MALLOC_MMAP_THRESHOLD_": "65536", "MALLOC_TRIM_THRESHOLD_": "65536"}
"""What makes the allocator return memory at once, so that one file does not pay for another's."""
BEGINNING = 120.0
"""Seconds that a worker may take before its first file."""

Try = Callable[[int], dict[str, Any]]
"""Tries one file: returns its `kind`, its `outcome`, and a `finding` if something was wrong."""


class Worker:
    """A process that tries files; `busy` is the index that it is at."""

    def __init__(self, script: str, folder: Path) -> None:
        folder.mkdir(exist_ok=True)
        environment = {k: v for k, v in (os.environ | GIVE_BACK).items() if not k.startswith("COV")}
        command = [sys.executable, script, "--work", str(folder)]
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment, bufsize=0
        )
        self.busy = self.stop = 0
        self.since, self.rest = time.monotonic(), b""

    def give(self, first: int, stop: int) -> None:
        assert self.process.stdin is not None
        self.busy, self.stop, self.since = first, stop, time.monotonic()
        self.process.stdin.write(f"{first} {stop}\n".encode())

    def lines(self) -> list[dict[str, Any]] | None:
        """What it has said; None if it is dead."""
        assert self.process.stdout is not None
        more = os.read(self.process.stdout.fileno(), 1 << 20)
        if not more:
            return None
        *whole, self.rest = (self.rest + more).split(b"\n")
        self.busy, self.since = self.busy + len(whole), time.monotonic()
        return [json.loads(line) for line in whole]

    def end(self) -> int:
        self.process.kill()
        for stream in (self.process.stdin, self.process.stdout):
            if stream is not None:
                stream.close()
        return self.process.wait()


@dataclass
class Tally:
    """What came of all files."""

    counts: Counter[tuple[str, str]] = field(default_factory=Counter)
    findings: list[dict[str, Any]] = field(default_factory=list)
    slowest: list[tuple[float, int, str]] = field(default_factory=list)

    def add(self, entry: dict[str, Any]) -> None:
        self.counts[entry["kind"], entry["outcome"]] += 1
        if entry["finding"]:
            self.findings.append(entry)
        self.slowest = sorted([*self.slowest, (entry["seconds"], entry["index"], entry["kind"])])[-3:]

    @property
    def files(self) -> int:
        return sum(self.counts.values())

    def of(self, outcome: str) -> int:
        return sum(n for (_, what), n in self.counts.items() if what == outcome)

    def print(self) -> None:
        for kind in sorted({kind for kind, _ in self.counts}):
            counts = {what: n for (which, what), n in sorted(self.counts.items()) if which == kind}
            print(f"  {kind:13}", ", ".join(f"{what} {n:,}" for what, n in counts.items()))
        for seconds, index, kind in reversed(self.slowest):
            print(f"slow: {seconds:.3f} s, file {index} ({kind})")
        for entry in self.findings[:40]:
            print(f"FINDING in file {entry['index']} ({entry['kind']}): {entry['finding'][:2000]}")
        print(f"{self.files:,} files, {len(self.findings)} findings")


def fuzz(
    script: str, files: int, *, first: int = 0, workers: int = 2, hang: float = 60.0, chunk: int = 500
) -> Tally:
    """Let workers that run `script` try the files `first` to `first + files`."""
    tally = Tally()
    waiting = [(a, min(a + chunk, first + files)) for a in range(first, first + files, chunk)][::-1]
    memory = MEMORY_DISK if MEMORY_DISK.is_dir() else None
    with tempfile.TemporaryDirectory(dir=memory) as place, selectors.DefaultSelector() as ready:

        def start(number: int) -> None:
            worker = Worker(script, Path(place, str(number)))
            ready.register(worker.process.stdout, selectors.EVENT_READ, worker)  # type: ignore[arg-type]
            worker.give(*waiting.pop())
            worker.since += BEGINNING

        def lost(worker: Worker, why: str) -> None:
            """Note the file that a worker did not survive, and go on after it in a new one."""
            ready.unregister(worker.process.stdout)  # type: ignore[arg-type]
            code = worker.end() if why.startswith("no") else worker.process.wait()
            worker.end()
            entry = {"index": worker.busy, "kind": "?", "outcome": "lost", "seconds": 0.0}
            tally.add(entry | {"finding": f"{why} (exit status {code})"})
            if worker.busy + 1 < worker.stop:
                waiting.append((worker.busy + 1, worker.stop))
            if waiting:
                start(worker.busy + workers)

        for number in range(min(workers, len(waiting))):
            start(number)
        while ready.get_map():
            for key, _ in ready.select(timeout=0.5):
                worker: Worker = key.data
                entries = worker.lines()
                if entries is None:
                    lost(worker, "the process died")
                    continue
                for entry in entries:
                    tally.add(entry)
                if worker.busy >= worker.stop and waiting:
                    worker.give(*waiting.pop())
                elif worker.busy >= worker.stop:
                    ready.unregister(key.fileobj)
                    worker.end()
            for key in list(ready.get_map().values()):
                if time.monotonic() - key.data.since > hang:
                    lost(key.data, f"no answer for {hang} seconds")
    return tally


def tried(index: int, test: Try) -> dict[str, Any]:
    start = time.perf_counter()
    try:
        entry = test(index)
    except Exception as error:  # noqa: BLE001  this is what is looked for
        entry = {"kind": "?", "outcome": "raised", "finding": f"{type(error).__name__}: {error}"}
    return {"index": index, "seconds": time.perf_counter() - start, **entry}


def main(script: str, words: str, begin: Callable[[Path], Try], *, hang: float = 60.0) -> int:
    """Run a fuzzer's command line; `begin` is called once in every worker, with a folder for its files."""
    parser = argparse.ArgumentParser(description=words, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--files", type=int, default=10_000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--only", type=int, help="try this one file in this process, and keep it in --keep")
    parser.add_argument("--keep", type=Path, default=Path(tempfile.gettempdir(), "fuzz"))
    parser.add_argument("--work", type=Path, help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.work:
        answers = os.fdopen(os.dup(1), "w", buffering=1)
        quiet = os.open(os.devnull, os.O_WRONLY)
        os.dup2(quiet, 1)
        os.dup2(quiet, 2)  # libtiff writes there
        test = begin(chosen.work)
        for line in sys.stdin:
            for index in range(*map(int, line.split())):
                answers.write(json.dumps(tried(index, test)) + "\n")
        return 0
    if chosen.only is not None:
        chosen.keep.mkdir(exist_ok=True)
        print(json.dumps(tried(chosen.only, begin(chosen.keep)), indent=1))
        return 0
    tally = fuzz(script, chosen.files, first=chosen.first, workers=chosen.workers, hang=hang)
    tally.print()
    return 1 if tally.findings or tally.files != chosen.files else 0
