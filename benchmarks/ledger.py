"""Debits a second of the ledger in SQLite and PostgreSQL, each durable before it returns.

A debit waits for the disk once, and debits are written one after another, so that they are never faster than
the disk. In the same run, on the same disk: how often a second the disk alone flushes 8 kB, before and after,
and how many rows plain SQLite commits one by one with the usual settings (WAL, synchronous=FULL). A debit is
`Ledger.debit`, as releases and the service take it; "in two steps" is `reserve` and then `commit`.

"memory" is a disk in memory, where nothing waits. Processor time is measured there, of the callers and of the
server; it depends less on how busy the machine is. PostgreSQL is a server on this machine (`pgserver`), asked
over its socket. The goal is 200 debits a second, which no release is faster than.
"""

from __future__ import annotations

import os
import sqlite3
import statistics
import tempfile
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

from dpveil.core.guarantee import Guarantee, Relation, Scope
from dpveil.ledger import Ledger, Limit
from timing import load, report

SECONDS = 2.0
COST = Guarantee(kind="pure", epsilon="0.001", relation=Relation("any-image"), scope=Scope("a photo"))
Row = dict[str, object]


def pay(ledger: Ledger, me: object) -> int:
    """Pay for SECONDS; return how often."""
    end, number = time.perf_counter() + SECONDS, 0
    while time.perf_counter() < end:
        ledger.debit("studio/album", COST, f"{me} {number}")
        number += 1
    return number


def two_steps(url: str, _: int) -> float:
    with Ledger(url) as ledger:
        ledger.head()
        end, number = time.perf_counter() + SECONDS, 0
        while time.perf_counter() < end:
            ledger.reserve("studio/album", COST, f"steps {number}").commit()
            number += 1
    return number / SECONDS


def threads(url: str, count: int) -> float:
    with Ledger(url) as ledger:
        ledger.head()
        paid = [0] * count

        def work(me: int) -> None:
            paid[me] = pay(ledger, f"{count} {me}")

        running = [threading.Thread(target=work, args=(me,)) for me in range(count)]
        for each in running:
            each.start()
        for each in running:
            each.join()
    return sum(paid) / SECONDS


def processes(url: str, count: int) -> float:
    """Return the rate of processes that begin together, once each has opened the ledger."""
    ready, go, out = os.pipe(), os.pipe(), os.pipe()
    for me in range(count):
        if not os.fork():
            with Ledger(url) as ledger:
                ledger.head()
                os.write(ready[1], b"x")
                os.close(go[1])
                os.read(go[0], 1)
                os.write(out[1], f"{pay(ledger, f'process {me}')}\n".encode())
            os._exit(0)
    for _ in range(count):
        os.read(ready[0], 1)
    os.close(go[1])
    for _ in range(count):
        os.wait()
    paid = os.read(out[0], 1000).split()
    for end in (*ready, go[0], *out):
        os.close(end)
    return sum(map(int, paid)) / SECONDS


def plain(url: str, _: int) -> float:
    raw = sqlite3.connect(f"{url.removeprefix('sqlite:///')}.plain", isolation_level=None)
    for command in ("PRAGMA journal_mode = WAL", "PRAGMA synchronous = FULL", "CREATE TABLE t (a, b)"):
        raw.execute(command)
    end, number = time.perf_counter() + SECONDS, 0
    while time.perf_counter() < end:
        raw.execute("BEGIN IMMEDIATE")
        raw.execute("INSERT INTO t VALUES (?, ?)", (number, "x" * 300))
        raw.execute("COMMIT")
        number += 1
    raw.close()
    return number / SECONDS


Callers = dict[str, tuple[Callable[[str, int], float], int]]
Opened = Callable[[Path], AbstractContextManager[tuple[str, int]]]
CALLERS: Callers = {
    "one caller": (threads, 1),
    "one caller, in two steps": (two_steps, 1),
    "4 threads": (threads, 4),
    "16 threads": (threads, 16),
    "4 processes": (processes, 4),
    "16 processes": (processes, 16),
}


def flushes(folder: Path) -> float:
    """Return how often a second the disk alone flushes 8 kB in the middle of a file."""
    seconds, place = [], folder / "flushed"
    with place.open("wb+", buffering=0) as file:
        file.write(bytes(1 << 24))
        os.fsync(file.fileno())
        for number in range(200):
            os.pwrite(file.fileno(), bytes(8192), 8192 * number)
            start = time.perf_counter()
            os.fdatasync(file.fileno())
            seconds.append(time.perf_counter() - start)
    place.unlink()
    return 1 / statistics.mean(seconds)


def make(url: str) -> None:
    with Ledger(url, create=True) as ledger:
        ledger.set_limit("studio", Limit("pure", epsilon=10**6))


def spent(server: int) -> tuple[float, float]:
    """Return seconds of processor so far: of this process and those that ended, and of a server's."""
    ours, theirs, tick = sum(os.times()[:4]), 0, os.sysconf("SC_CLK_TCK")
    for path in Path("/proc").glob("[0-9]*/stat") if server else ():
        try:
            found = path.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if server in (int(path.parent.name), int(found[1])):
            theirs += sum(map(int, found[11 : 15 if int(path.parent.name) == server else 13]))
    return ours, theirs / tick


@contextmanager
def sqlite(folder: Path) -> Iterator[tuple[str, int]]:
    yield f"sqlite:///{folder / 'budget.db'}", 0


@contextmanager
def postgres(folder: Path) -> Iterator[tuple[str, int]]:
    import pgserver

    with pgserver.get_server(folder / "data") as server:
        yield server.get_uri(), int((folder / "data" / "postmaster.pid").read_text().split()[0])


def measured(kind: str, opened: Opened, callers: Callers) -> list[Row]:
    """Return a row for each kind of callers, on the disk and in memory."""
    columns = ("debits a second, disk", "debits a second, memory", "ms of processor a debit")
    rows: list[Row] = [{"callers": f"{kind}, {name}", **dict.fromkeys(columns, "")} for name in callers]
    for where, place in (("disk", Path.cwd()), ("memory", Path("/dev/shm"))):
        with tempfile.TemporaryDirectory(dir=place) as folder:
            Path(folder).chmod(0o755)  # the server runs as another user
            with opened(Path(folder)) as (url, server):
                make(url)
                for row, (call, count) in zip(rows, callers.values(), strict=True):
                    before = spent(server)
                    rate = call(url, count)
                    time.sleep(0.3)  # processes of the server that ended are counted once it noticed
                    ours, theirs = (b - a for a, b in zip(before, spent(server), strict=True))
                    row[f"debits a second, {where}"] = round(rate)
                    used = (ours, theirs) if server else (ours,)
                    each = (f"{1000 * seconds / (rate * SECONDS):.2f}" for seconds in used)
                    row["ms of processor a debit"] = " + ".join(each)
    return rows


def checking() -> float:
    """Return how many entries a second are checked."""
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        url = f"sqlite:///{folder}/budget.db"
        make(url)
        threads(url, 1)
        with Ledger(url) as ledger:
            start = time.perf_counter()
            return ledger.check().entries / (time.perf_counter() - start)


def figure(value: float) -> str:
    return f"{value:,.0f}".replace(",", "\u202f" if value >= 10_000 else "")


def main() -> None:
    """Print and save the table."""
    warnings.simplefilter("ignore")  # pgserver asks for a folder of the desktop
    before = flushes(Path.cwd())
    rows = measured("SQLite", sqlite, CALLERS | {"plain rows by one caller": (plain, 1)})
    rows += measured("PostgreSQL", postgres, CALLERS)
    first = os.sched_getscheduler(0) != os.SCHED_OTHER
    notes = (
        f"The disk alone flushed {figure(before)} times a second, and {figure(flushes(Path.cwd()))} later.",
        f"Checking took a second for every {figure(round(checking(), -3))} entries.",
        f"Load of the 2 cores: {load()}{', and these processes came first' if first else ''}.",
    )
    report("ledger", rows, notes=notes)


if __name__ == "__main__":
    main()
