"""Debits a second of the ledger in SQLite: reserve and commit, each durable before it returns.

A debit waits for the disk once. Threads of one process share that wait, and so do processes that write at the
same time, so the rate of a single caller is that of the disk. Beside it, in the same run on the same disk:
how many rows a second plain SQLite commits, one by one, with the usual settings (WAL, synchronous=FULL).
"memory" is a disk in memory, where nothing waits, and processor time is measured there: it does not depend on
how busy the machine is. A PostgreSQL server on this machine (`pgserver`), if there is one, is asked over its
socket; its processor time is not ours. The goals are 500 a second, and 1000 in PostgreSQL.
"""

from __future__ import annotations

import os
import sqlite3
import tempfile
import threading
import time
import warnings
from collections.abc import Callable
from pathlib import Path

from dpveil.core.guarantee import Guarantee, Relation, Scope
from dpveil.ledger import Ledger, Limit
from timing import load, report

SECONDS = 3.0
COST = Guarantee(kind="pure", epsilon="0.001", relation=Relation("any-image"), scope=Scope("a photo"))


def pay(ledger: Ledger, me: object) -> int:
    """Pay for SECONDS; return how often."""
    end, number = time.perf_counter() + SECONDS, 0
    while time.perf_counter() < end:
        ledger.debit("studio/album", COST, f"{me} {number}")
        number += 1
    return number


def threads(url: str, count: int) -> float:
    with Ledger(url) as ledger:
        paid = [0] * count

        def work(me: int) -> None:
            paid[me] = pay(ledger, f"{url} {me}")

        running = [threading.Thread(target=work, args=(me,)) for me in range(count)]
        for each in running:
            each.start()
        for each in running:
            each.join()
    return sum(paid) / SECONDS


def processes(url: str, count: int) -> float:
    read, write = os.pipe()
    for me in range(count):
        if not os.fork():
            with Ledger(url) as ledger:
                os.write(write, f"{pay(ledger, f'{url} {me}')}\n".encode())
            os._exit(0)
    for _ in range(count):
        os.wait()
    os.close(write)
    return sum(map(int, os.read(read, 1000).split())) / SECONDS


def plain(url: str, _: int) -> float:
    raw = sqlite3.connect(url.removeprefix("sqlite:///"), isolation_level=None)
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


CALLERS: dict[str, tuple[Callable[[str, int], float], int]] = {
    "one caller": (threads, 1),
    "4 threads": (threads, 4),
    "16 threads": (threads, 16),
    "4 processes": (processes, 4),
    "plain SQLite, one caller": (plain, 1),
}


def make(url: str) -> None:
    with Ledger(url, create=True) as ledger:
        ledger.set_limit("studio", Limit("pure", epsilon=10**6))


def postgres() -> list[dict[str, object]]:
    """Return the rows of a PostgreSQL server, or none where it cannot be had."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it asks for a folder of the desktop
        try:
            import pgserver
        except ImportError:
            return []
    rows: list[dict[str, object]] = []
    for where, place in (("disk", Path.cwd()), ("memory", Path("/dev/shm"))):
        with tempfile.TemporaryDirectory(dir=place) as folder:
            Path(folder).chmod(0o755)
            with pgserver.get_server(Path(folder) / "data") as server:
                make(server.get_uri())
                for number, (call, count) in enumerate([(threads, 1), (processes, 4), (processes, 16)]):
                    name = f"PostgreSQL, {'one caller' if count == 1 else f'{count} processes'}"
                    if where == "disk":
                        rows.append({"callers": name})
                    rows[number][f"debits a second, {where}"] = round(call(server.get_uri(), count))
    return [row | {"ms of processor a debit": ""} for row in rows]


def main() -> None:
    """Print and save the table."""
    rows: list[dict[str, object]] = []
    with (
        tempfile.TemporaryDirectory(dir=Path.cwd()) as disk,
        tempfile.TemporaryDirectory(dir="/dev/shm") as memory,
    ):
        for name, (call, count) in CALLERS.items():
            row: dict[str, object] = {"callers": name}
            for where, place in (("disk", disk), ("memory", memory)):
                url = f"sqlite:///{Path(place) / name.replace(' ', '-')}.db"
                if call is not plain:
                    make(url)
                began = time.process_time()
                rate = call(url, count)
                row[f"debits a second, {where}"] = round(rate)
            spent = 1000 * (time.process_time() - began) / (rate * SECONDS)
            row["ms of processor a debit"] = "" if call is processes else f"{spent:.2f}"
            rows.append(row)
        rows += postgres()
        with Ledger(f"sqlite:///{memory}/one-caller.db") as ledger:
            start = time.perf_counter()
            entries = ledger.check().entries
            rate = entries / (time.perf_counter() - start)
    note = f"Checking took a second for every {round(rate, -3):,.0f} entries. Load of the 2 cores: {load()}."
    report("ledger", rows, notes=(note.replace(",", "\u202f"),))


if __name__ == "__main__":
    main()
