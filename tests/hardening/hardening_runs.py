"""Runs of the command line that end early, at any step that changes the disk.

A server process has everything imported and forks one child for each run, so that hundreds of deaths are
affordable. A child counts its steps (files opened for writing, flushed, linked, renamed, removed, folders
made) and sends itself a signal just before the chosen one. `cut` adds what a power failure does: files that
were written and not flushed yet lose half of what they hold.
"""

import hashlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

STEPS = {"os.link", "os.rename", "os.remove", "os.mkdir"}
TEMPORARY = ".dpveil-"


@dataclass(frozen=True)
class Order:
    """A run: its arguments, and at which step and how it dies."""

    arguments: Sequence[str]
    at: int = 0
    signal: int = signal.SIGKILL
    cut: bool = False


@dataclass(frozen=True)
class End:
    """How a run ended: `code` is its exit code, or the negative number of the signal that killed it."""

    code: int
    out: str
    err: str

    @property
    def report(self) -> dict[str, list[dict[str, str]]]:
        return json.loads(self.out)

    @property
    def counts(self) -> dict[str, int]:
        return {name: len(entries) for name, entries in self.report.items() if entries}


@dataclass
class Doom:
    """Counts the steps of this process, and ends it at one of them."""

    order: Order
    steps: int = 0
    unflushed: set[str] = field(default_factory=set)

    def watch(self) -> None:
        sys.addaudithook(self.hook)
        flush = os.fsync

        def fsync(handle: int) -> None:
            self.step()
            flush(handle)
            self.unflushed.discard(str(Path(f"/proc/self/fd/{handle}").readlink()))

        os.fsync = fsync

    def hook(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event == "open":
            path, _, flags = arguments
            if not isinstance(path, int) and flags & (os.O_WRONLY | os.O_RDWR):
                self.step()
                self.unflushed.add(os.path.abspath(path))  # noqa: PTH100  as /proc names it
        elif event in STEPS:
            self.step()
            if event == "os.rename" and os.path.abspath(arguments[0]) in self.unflushed:  # noqa: PTH100
                self.unflushed.add(os.path.abspath(arguments[1]))  # noqa: PTH100

    def step(self) -> None:
        self.steps += 1
        if self.steps != self.order.at:
            return
        if self.order.cut:
            for path in list(self.unflushed):
                with suppress(OSError):
                    os.truncate(path, Path(path).stat().st_size // 2)
        os.kill(os.getpid(), self.order.signal)


def _child(order: Order, start: int, logs: Sequence[Path]) -> None:
    from dpveil.cli import main

    for number, log in enumerate(logs, 1):
        os.dup2(os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), number)
    sys.argv[1:] = order.arguments
    os.read(start, 1)  # until all are ready
    if order.at:
        Doom(order).watch()
    code: Any = 70
    try:
        main()
    except SystemExit as exit_:
        code = exit_.code
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _files(folder: Path) -> list[Path]:
    return sorted(folder.iterdir()) if folder.is_dir() else []


def _together(orders: Sequence[Order], place: Path) -> list[dict[str, Any]]:
    start, go = os.pipe()
    runs = []
    for number, order in enumerate(orders):
        logs = [place / f"{name}-{number}" for name in ("out", "err")]
        pid = os.fork()
        if pid == 0:
            os.close(go)
            _child(order, start, logs)
        runs.append((pid, logs))
    os.close(start)
    os.close(go)
    ends = []
    for pid, logs in runs:
        code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        out, err = (log.read_text(encoding="utf-8") if log.exists() else "" for log in logs)
        ends.append(asdict(End(code, out, err)))
    return ends


def _serve(place: Path) -> None:
    """Answer one list of orders a line; the first runs of all import everything and fill caches."""
    answers = os.fdopen(os.dup(1), "w")
    warm = obfuscate(originals(place / "warm", 2), place / "warmed")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    os.dup2(1, 2)
    from dpveil.cli import run

    run(warm)
    run(warm)
    for line in sys.stdin:
        answers.write(json.dumps(_together([Order(**order) for order in json.loads(line)], place)) + "\n")
        answers.flush()


class Runs:
    """The server's client; a context manager."""

    def __init__(self, place: Path) -> None:
        command = [sys.executable, __file__, str(place)]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def __enter__(self) -> "Runs":
        return self

    def __exit__(self, *_: object) -> None:
        self.process.communicate(timeout=60)

    def together(self, *orders: Order) -> list[End]:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps([asdict(order) for order in orders]) + "\n")
        self.process.stdin.flush()
        return [End(**end) for end in json.loads(self.process.stdout.readline())]

    def __call__(self, *arguments: str, **when: Any) -> End:
        return self.together(Order(arguments, **when))[0]


def settings(epsilon: float) -> tuple[str, ...]:
    return ("--method", "dp-pix", "--epsilon", str(epsilon), "--block", "4", "--neighbourhood", "4")


def obfuscate(photos: Path, out: Path, *more: str, epsilon: float = 2) -> tuple[str, ...]:
    return ("obfuscate", str(photos), "--out", str(out), *settings(epsilon), "--json", *more)


def noise(seed: int) -> np.ndarray:
    """A photo that does not compress, so that its file is large, and that no other seed gives."""
    return np.random.default_rng(seed).integers(0, 256, (24, 32, 3), np.uint8)


def originals(folder: Path, count: int) -> Path:
    folder.mkdir()
    for number in range(count):
        Image.fromarray(noise(number)).save(folder / f"{number:02}.png")
    return folder


def snapshot(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in _files(folder)}


def pairs(folder: Path, photos: Path, verify: Callable[..., Any]) -> dict[str, str]:
    """The whole releases in `folder`, name to SHA-256; anything that must never be there is an error."""
    secret = [np.asarray(Image.open(path)) for path in photos.iterdir()]
    found = snapshot(folder)
    whole = {}
    for name, contents in found.items():
        if name.startswith(TEMPORARY) or name.endswith(".certificate.json"):
            assert name.startswith(TEMPORARY) or json.loads(contents), f"{name} is torn"
        else:
            result = verify(folder / name)
            assert result.status == "consistent", f"{name}: {result.problems}"
            whole[name] = hashlib.sha256(contents).hexdigest()
        with suppress(OSError, SyntaxError):  # a half written temporary file may still be decoded
            levels = np.asarray(Image.open(BytesIO(contents)))
            assert not any(np.array_equal(levels, each) for each in secret), f"{name} is an original"
    return whole


def finished(folder: Path, photos: Path, verify: Callable[..., Any]) -> dict[str, str]:
    """As `pairs`, where every photo has its pair and nothing else is there."""
    whole = pairs(folder, photos, verify)
    names = {path.name for path in photos.iterdir()}
    assert set(whole) == names
    assert set(snapshot(folder)) == names | {f"{name}.certificate.json" for name in names}
    return whole


if __name__ == "__main__":
    _serve(Path(sys.argv[1]))
