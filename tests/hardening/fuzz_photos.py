"""Feed damaged photos to `dpveil.io.read`: anything but a photo or one clear refusal is a finding.

    python tests/hardening/fuzz_photos.py --files 100000 [--first 0] [--workers 2] [--only INDEX --keep FILE]

Every file is a function of its index alone, so a finding is repeated with `--only`. Worker processes read
many files each; one that is silent for HANG seconds is killed (a hang), one that dies is a crash. Memory is
the growth of the resident set while one file is read (Linux: the peak is reset before each), at most
8 bytes × pixels × channels that the file declares, plus SPARE and what the file itself takes.
"""

import argparse
import contextlib
import json
import os
import random
import selectors
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))
sys.path.insert(0, str(Path(__file__).parent))
from hardening_mutations import damaged
from hardening_seeds import seeds

HANG = 20.0
"""Seconds for one file of at most MAX_PIXELS pixels; the slowest honest one takes a tenth of a second."""
MAX_PIXELS = 1_000_000
MEMORY_DISK = Path("/dev/shm")  # noqa: S108  files are named by their worker, in a folder of their own
SPARE = 4 * 2**20
"""Bytes that any file may cost: decoder tables, modules imported on the way, pages of the allocator."""
GIVE_BACK = {"MALLOC_MMAP_THRESHOLD_": "65536", "MALLOC_TRIM_THRESHOLD_": "65536"}
"""What makes the allocator return memory at once, so that one file does not pay for another's."""
ADDRESSES = 2**30
"""Bytes of address space that a worker may ask for beyond what it has at the start."""


def file_of(index: int, originals: dict[str, bytes]) -> tuple[str, bytes]:
    """The name of the seed, and the damaged file, of one index."""
    rng = random.Random(f"dpveil {index}")  # noqa: S311  no secret depends on it
    name = list(originals)[index % len(originals)]
    return name, damaged(name, originals, rng)


class Meter:
    """Seconds and resident memory of one call."""

    def __init__(self) -> None:
        self.on = Path("/proc/self/clear_refs").exists()

    def reset(self) -> int:
        if not self.on:
            return 0
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
        return self.peak()

    def peak(self) -> int:
        if not self.on:
            return 0
        text = Path("/proc/self/status").read_bytes()
        return int(text.split(b"VmHWM:", 1)[1].split(None, 1)[0]) * 1024


class Spy:
    """Notes how large the file that is being read claims to be, once it has passed the limit."""

    def __init__(self) -> None:
        from dpveil.io import decoding, screening

        self.pixels = self.channels = 0
        check, opened = screening.check_pixels, decoding.check_opened

        def check_pixels(width: int, height: int, most: int) -> None:
            check(width, height, most)
            self.pixels = max(self.pixels, width * height)

        def check_opened(image: Any, *rest: Any) -> Any:
            self.channels = max(1, len(image.getbands()))
            return opened(image, *rest)

        screening.check_pixels = decoding.check_pixels = check_pixels
        decoding.check_opened = check_opened


def work(path: Path) -> None:
    """Read indices from stdin, and say what became of each file, one line each."""
    from PIL import ImageCms  # so that its import is nobody's memory

    from dpveil.io import read

    originals = seeds()
    meter, spy = Meter(), Spy()
    assert ImageCms.getOpenProfile
    for name in originals:  # first uses of a codec load tables
        path.write_bytes(originals[name])
        with contextlib.suppress(Exception):
            read(path)
    _limit_addresses()
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    quiet = os.open(os.devnull, os.O_WRONLY)
    os.dup2(quiet, 2)  # libtiff writes there
    for line in sys.stdin:
        first, stop = map(int, line.split())
        for index in range(first, stop):
            answers.write(json.dumps(one(index, originals, path, meter, spy)) + "\n")


def _limit_addresses() -> None:
    try:
        import resource

        now = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (now + ADDRESSES, now + ADDRESSES))
    except (ImportError, OSError, ValueError):
        return


def one(index: int, originals: dict[str, bytes], path: Path, meter: Meter, spy: Spy) -> dict[str, Any]:
    """Read one file; `finding` says what was wrong, if anything."""
    from dpveil.errors import PhotoError
    from dpveil.io import read

    name, data = file_of(index, originals)
    path.write_bytes(data)
    spy.pixels = spy.channels = 0
    finding = ""
    before, start = meter.reset(), time.perf_counter()
    try:
        photo = read(path, max_pixels=MAX_PIXELS)
    except PhotoError as refusal:
        outcome, finding = "refused", _unclear(refusal, path)
    except Exception as error:  # noqa: BLE001  this is what is looked for
        outcome, finding = "raised", f"{type(error).__name__}: {error}"
    else:
        outcome = "released"
        spy.pixels = spy.pixels or photo.width * photo.height  # decoded in another process
        if not 0 < photo.width * photo.height <= MAX_PIXELS or photo.image.dtype != "uint8":
            finding = f"a photo of {photo.image.shape}"
    seconds, grown = time.perf_counter() - start, meter.peak() - before
    allowed = 8 * spy.pixels * max(spy.channels, 3) + SPARE + 2 * len(data)
    if grown > allowed and not finding:
        finding = f"took {grown:,} bytes, allowed are {allowed:,}"
    return {
        "index": index, "seed": name, "outcome": outcome, "finding": finding, "seconds": seconds,
        "grown": grown, "declared": spy.pixels * spy.channels, "size": len(data),
    }  # fmt: skip


def _unclear(refusal: Exception, path: Path) -> str:
    line = str(refusal)
    if isinstance(refusal.__cause__, MemoryError):
        return f"asked for more than {ADDRESSES:,} bytes of addresses: {line}"
    if path.name not in line or not line.isprintable() or len(line) > 400:
        return f"an unclear refusal: {line!r}"
    return ""


class Worker:
    """A process that reads files; `busy` is the index that it is at."""

    def __init__(self, folder: Path, number: int) -> None:
        environment = os.environ | GIVE_BACK
        environment = {k: v for k, v in environment.items() if not k.startswith("COV")}
        command = [sys.executable, __file__, "--work", str(folder / f"photo-{number}")]
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment, bufsize=0
        )
        self.busy = self.stop = 0
        self.since = time.monotonic()
        self.rest = b""

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
        self.busy += len(whole)
        self.since = time.monotonic()
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
    largest: list[tuple[int, int, int, str]] = field(default_factory=list)

    def add(self, entry: dict[str, Any]) -> None:
        self.counts[entry["seed"].split()[0], entry["outcome"]] += 1
        if entry["finding"]:
            self.findings.append(entry)
        if "seconds" in entry:
            self.slowest = sorted([*self.slowest, (entry["seconds"], entry["index"], entry["seed"])])[-3:]
            grown = (entry["grown"], entry["declared"], entry["index"], entry["seed"])
            self.largest = sorted([*self.largest, grown])[-3:]

    @property
    def files(self) -> int:
        return sum(self.counts.values())

    def of(self, outcome: str) -> int:
        return sum(n for (_, what), n in self.counts.items() if what == outcome)


def fuzz(files: int, *, first: int = 0, workers: int = 2, hang: float = HANG, chunk: int = 500) -> Tally:
    """Read the files `first` to `first + files` in `workers` processes and return what came of them."""
    tally = Tally()
    waiting = [(a, min(a + chunk, first + files)) for a in range(first, first + files, chunk)][::-1]
    memory = MEMORY_DISK if MEMORY_DISK.is_dir() else None
    with tempfile.TemporaryDirectory(dir=memory) as place, selectors.DefaultSelector() as ready:
        for number in range(min(workers, len(waiting))):
            _start(Worker(Path(place), number), waiting, ready)
        while ready.get_map():
            for key, _ in ready.select(timeout=0.5):
                _hear(key.data, waiting, ready, tally, Path(place))
            for key in list(ready.get_map().values()):
                if time.monotonic() - key.data.since > hang:
                    _lost(key.data, f"no answer for {hang} seconds", waiting, ready, tally, Path(place))
    return tally


def _start(worker: Worker, waiting: list[tuple[int, int]], ready: selectors.BaseSelector) -> None:
    ready.register(worker.process.stdout, selectors.EVENT_READ, worker)  # type: ignore[arg-type]
    worker.give(*waiting.pop())


def _hear(worker: Worker, waiting, ready, tally: Tally, place: Path) -> None:  # type: ignore[no-untyped-def]
    entries = worker.lines()
    if entries is None:
        _lost(worker, "the process died", waiting, ready, tally, place)
        return
    for entry in entries:
        tally.add(entry)
    if worker.busy >= worker.stop:
        if waiting:
            worker.give(*waiting.pop())
        else:
            ready.unregister(worker.process.stdout)
            worker.end()


def _lost(worker: Worker, why: str, waiting, ready, tally: Tally, place: Path) -> None:  # type: ignore[no-untyped-def]
    """Note the file that a worker did not survive, and go on after it in a new one."""
    ready.unregister(worker.process.stdout)
    code = worker.end() if why.startswith("no") else worker.process.wait()
    worker.end()
    name = list(seeds())[worker.busy % len(seeds())]
    finding = f"{why} (exit status {code})"
    tally.add({"index": worker.busy, "seed": name, "outcome": "lost", "finding": finding})
    if worker.busy + 1 < worker.stop:
        waiting.append((worker.busy + 1, worker.stop))
    if waiting:
        _start(Worker(place, worker.busy), waiting, ready)


def report(tally: Tally) -> None:
    print(f"{tally.files:,} files: {tally.of('released'):,} photos, {tally.of('refused'):,} refusals")
    for kind in sorted({kind for kind, _ in tally.counts}):
        counts = {what: n for (which, what), n in sorted(tally.counts.items()) if which == kind}
        print(f"  {kind:5}", ", ".join(f"{what} {n:,}" for what, n in counts.items()))
    for seconds, index, name in reversed(tally.slowest):
        print(f"slow: {seconds:.3f} s, file {index} ({name})")
    for grown, declared, index, name in reversed(tally.largest):
        print(f"memory: {grown:,} bytes for {declared:,} declared samples, file {index} ({name})")
    kinds = Counter(entry["finding"][:50] for entry in tally.findings)
    for entry in tally.findings[:40]:
        print(f"FINDING in file {entry['index']} ({entry['seed']}): {entry['finding']}")
    print(f"{len(tally.findings)} findings", dict(kinds) if kinds else "")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--files", type=int, default=100_000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--only", type=int, help="read this one file in this process")
    parser.add_argument("--keep", type=Path, help="where to write the file of --only")
    parser.add_argument("--work", type=Path, help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.work:
        work(chosen.work)
        return 0
    if chosen.only is not None:
        with tempfile.TemporaryDirectory() as folder:
            path = chosen.keep or Path(folder) / "photo"
            print(json.dumps(one(chosen.only, seeds(), path, Meter(), Spy()), indent=1))
        return 0
    start = time.perf_counter()
    tally = fuzz(chosen.files, first=chosen.first, workers=chosen.workers)
    report(tally)
    print(f"{time.perf_counter() - start:.0f} s, {chosen.workers} workers")
    return 1 if tally.findings or tally.files != chosen.files else 0


if __name__ == "__main__":
    sys.exit(main())
