"""The service at saturation, beside the library's own work: throughput, processor time, p50, p99, memory.

Clients run on the same cores, and get image and certificate of every release in one answer. `share` is the
throughput of the service, clients and all, divided by that of the library in a process for each core. These
read, plan, release and encode the same photo; with a ledger they pay from it, and save to a folder. `by cpu`
divides processor seconds instead: those of the library by those of the server and its workers for a release.
That is the share on cores without clients, if the cores are kept busy. Library and service take turns.

`service_soak.py` runs the service for long.
"""

from __future__ import annotations

import argparse
import io
import json
import multiprocessing
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from PIL import Image
from skimage import data

from service_clients import load, post
from timing import load_note, report

CORES, CLIENTS = os.cpu_count() or 1, 6
WORKERS = CORES + 1
SIZES = ((512, 512), (1600, 1200), (4000, 3000))
SETTINGS = {"method": "dp-pix", "epsilon": 20, "block": 16, "neighbourhood": 256, "regions": "176,60,88,120"}
EDGE = "----8c1f"
KINDS = {"in memory": False, "ledger and files": True}


def photo(width: int, height: int) -> bytes:
    file = io.BytesIO()
    Image.fromarray(data.astronaut()).resize((width, height)).save(file, "JPEG", quality=90)
    return file.getvalue()


def request(contents: bytes, settings: dict[str, object]) -> bytes:
    told = json.dumps(settings).encode()
    head = f"--{EDGE}\r\ncontent-disposition: form-data; name=%s\r\n\r\n"
    photo, rest = head % '"photo"; filename="photo.jpg"', head % '"settings"'
    parts = (photo.encode(), contents, b"\r\n", rest.encode(), told)
    return post(b"".join(parts) + f"\r\n--{EDGE}--\r\n".encode(), EDGE)


def library(contents: bytes, folder: str | None, begin: float, seconds: float, done: object) -> None:
    """Release as often as the time allows, as one worker would; with a folder, pay and save there."""
    import cv2

    import dpveil
    from dpveil.noise.backend import compile_now

    cv2.setNumThreads(1)
    compile_now()
    given = {n: v for n, v in SETTINGS.items() if n not in ("method", "regions")}
    ledger = dpveil.Ledger(url_in(folder)) if folder else None

    def once(count: int) -> None:
        plan = dpveil.plan(dpveil.read(contents), "dp-pix", regions=SETTINGS["regions"], **given)
        if ledger is None:
            plan.release().encode_with_certificate("png")[1].to_text()
        else:
            plan.release(ledger=ledger, subject="album").save(f"{folder}/{os.getpid()}-{count}.png")

    once(0)
    time.sleep(max(0.0, begin - time.time()))
    count, start, spent = 0, time.perf_counter(), time.process_time()
    while time.time() < begin + seconds:
        count += 1
        once(count)
    done.put((count / (time.perf_counter() - start), (time.process_time() - spent) / count))  # type: ignore[attr-defined]


def own(contents: bytes, folder: str | None, seconds: float) -> dict[str, float]:
    """Return the figures of the library in a process for each core."""
    context = multiprocessing.get_context("spawn")
    done, begin = context.Queue(), time.time() + 10
    told = (contents, folder, begin, seconds, done)
    processes = [context.Process(target=library, args=told) for _ in range(CORES)]
    for process in processes:
        process.start()
    rates, spent = zip(*(done.get() for _ in processes), strict=True)
    for process in processes:
        process.join()
    return {"releases a second": sum(rates), "workers ms": 1000 * statistics.mean(spent)}


def children(process: int) -> list[str]:
    return Path(f"/proc/{process}/task/{process}/children").read_text().split()


def ticks(numbers: list[str]) -> float:
    """Return the processor seconds of processes so far."""
    stats = [Path(f"/proc/{n}/stat").read_text().rpartition(")")[2].split() for n in numbers]
    return sum(int(s[11]) + int(s[12]) for s in stats) / os.sysconf("SC_CLK_TCK")


def memory(numbers: list[str]) -> int:
    """Return the resident MiB of processes together."""
    told = [re.search(r"VmRSS:\s+([0-9]+)", Path(f"/proc/{n}/status").read_text()) for n in numbers]
    return sum(int(each[1]) for each in told if each) // 1024


@contextmanager
def served(arguments: list[str], workers: int = WORKERS) -> Iterator[tuple[int, int]]:
    """Run a service; yield its process and port."""
    command = [sys.executable, "-m", "dpveil", "serve", "--port", "0", "--workers", str(workers), *arguments]
    with tempfile.TemporaryFile() as log, subprocess.Popen(command, stderr=log) as process:
        while not (told := re.search(rb":([0-9]+)\n", _read(log))):
            time.sleep(0.1)
        try:
            yield process.pid, int(told[1])
        finally:
            process.terminate()


def _read(file: object) -> bytes:
    file.seek(0)  # type: ignore[attr-defined]
    return file.read()  # type: ignore[attr-defined]


def measured(process: int, port: int, sent: bytes, seconds: float) -> dict[str, float]:
    """Return the figures of the service at saturation; processor time in milliseconds for a release."""
    server = [str(process)]
    workers = children(process)
    before = ticks(server), ticks(workers)
    counted = load(port, sent, CLIENTS, seconds)
    if counted.other or workers != children(process):
        raise SystemExit(f"other answers: {counted.other}, or a worker was replaced")
    times = sorted(counted.seconds)
    each = 1000 / len(times)
    return {
        "releases a second": counted.rate,
        "server ms": (ticks(server) - before[0]) * each,
        "workers ms": (ticks(workers) - before[1]) * each,
        "clients ms": counted.spent * each,
        "p50 ms": 1000 * statistics.median(times),
        "p99 ms": 1000 * times[int(0.99 * len(times))],
        "server MiB": memory(server),
        "workers MiB": memory(workers),
    }


def url_in(folder: str) -> str:
    return f"sqlite:///{folder}/budget.db"


def limited(folder: str) -> None:
    """Make a ledger."""
    limit = [sys.executable, "-m", "dpveil", "ledger", "limit", "album", "--epsilon", "1000000"]
    subprocess.run([*limit, "--ledger", url_in(folder)], check=True, capture_output=True)


def options(folder: str) -> list[str]:
    """Return the options of a service with a ledger and results in files."""
    limited(folder)
    return ["--ledger", url_in(folder), "--results", f"{folder}/results.db"]


def turn(contents: bytes, seconds: float, workers: int, *, paid: bool) -> tuple[dict[str, float], ...]:
    """Return the figures of library and service, one after the other."""
    with tempfile.TemporaryDirectory() as folder:
        if paid:
            limited(folder)
        alone = own(contents, folder if paid else None, seconds)
    with (
        tempfile.TemporaryDirectory() as folder,
        served(options(folder) if paid else [], workers) as (pid, port),
    ):
        sent = request(contents, {**SETTINGS, "subject": "album"} if paid else SETTINGS)
        load(port, sent, CLIENTS, 8)  # the workers start meanwhile
        return alone, measured(pid, port, sent, seconds)


def compared(width: int, height: int, seconds: float, rounds: int, workers: int) -> list[dict[str, object]]:
    """Return the rows of one size: medians of rounds in which library and service take turns."""
    contents, size = photo(width, height), f"{width} × {height}"
    turns: dict[str, list[tuple[dict[str, float], ...]]] = {kind: [] for kind in KINDS}
    for _ in range(rounds):
        for kind, paid in KINDS.items():
            turns[kind].append(turn(contents, seconds, workers, paid=paid))
    rows = []
    for kind, figures in turns.items():
        alone, service = (
            {name: statistics.median(each[name] for each in side) for name in side[0]}
            for side in zip(*figures, strict=True)
        )
        made = row(size, f"service, {kind}", service)
        made["share"] = f"{service['releases a second'] / alone['releases a second']:.2f}"
        spent = service["server ms"] + service["workers ms"]
        made["by cpu"] = f"{alone['workers ms'] / spent:.2f}"
        rows += [row(size, f"library, {kind}", alone), made]
    return rows


COLUMNS = ("server ms", "workers ms", "clients ms", "p50 ms", "p99 ms", "server MiB", "workers MiB")


def row(size: str, what: str, figures: dict[str, float]) -> dict[str, object]:
    made: dict[str, object] = {"photo": size, "what": what}
    made |= {"releases a second": f"{figures['releases a second']:.1f}", "share": "", "by cpu": ""}
    digits = {name: 0 if "MiB" in name or figures.get(name, 0) >= 100 else 1 for name in COLUMNS}
    return made | {n: f"{figures[n]:.{digits[n]}f}" if n in figures else "" for n in COLUMNS}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--workers", type=int, default=WORKERS, help="workers of the service")
    parser.add_argument("--small", action="store_true", help="only small photos, and nothing is kept")
    given = parser.parse_args()
    sizes = SIZES[:1] if given.small else SIZES
    rows = [row for size in sizes for row in compared(*size, given.seconds, given.rounds, given.workers)]
    if given.small:
        for each in rows:
            print(json.dumps(each, ensure_ascii=False))
        return
    told = f"{given.workers} workers, {CLIENTS} clients; medians of {given.rounds} rounds"
    told += f" of {given.seconds:g} s."
    report("service", rows, notes=(told, load_note()))


if __name__ == "__main__":
    main()
