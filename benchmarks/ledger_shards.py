"""Debits a second of two processes in one SQLite ledger, and in two, each with its own tree of subjects.

The cases take turns, and figures are medians; every debit is on the disk before it returns. Processor time
depends less on how busy the machine is. "For 100 photos at once" is one debit of a composed cost.
"""

from __future__ import annotations

import os
import statistics
import tempfile
import time
from pathlib import Path

from dpveil.accounting import compose
from dpveil.core.guarantee import Guarantee, Relation, Scope
from dpveil.ledger import Ledger, Limit
from timing import load_note, report

SECONDS, ROUNDS, PHOTOS = 3.0, 5, 100
COST = Guarantee(kind="pure", epsilon="0.0001", relation=Relation("any-image"), scope=Scope("a photo"))
CASES = {
    "one process, one ledger": (1, 1, 1),
    "two processes, one ledger": (2, 1, 1),
    "two processes, a ledger each": (2, 2, 1),
    "one process, for 100 photos at once": (1, 1, PHOTOS),
}
"""Processes, ledgers, and photos for which a debit pays."""


def url(folder: str, number: int) -> str:
    return f"sqlite:///{Path(folder) / f'{number}.db'}"


def pay(where: str, me: int, photos: int, begin: float) -> int:
    """Pay for a while from the moment `begin`; return for how many photos."""
    cost, paid = compose([COST] * photos), 0
    with Ledger(where) as ledger:
        ledger.head()
        time.sleep(max(0.0, begin - time.monotonic()))
        while time.monotonic() < begin + SECONDS:
            ledger.debit(f"studio-{me}/album", cost, f"{me} {paid}")
            paid += photos
    return paid


def measured(processes: int, ledgers: int, photos: int) -> tuple[float, float]:
    """Return photos paid a second, and processor milliseconds of a photo."""
    with tempfile.TemporaryDirectory(dir=Path.cwd()) as folder:
        for number in range(processes):
            with Ledger(url(folder, number % ledgers), create=True) as ledger:
                ledger.set_limit(f"studio-{number}", Limit("pure", epsilon=10**6))
        read, write = os.pipe()
        begin, before = time.monotonic() + 1, sum(os.times()[2:4])
        for number in range(processes):
            if not os.fork():
                os.write(write, f"{pay(url(folder, number % ledgers), number, photos, begin)}\n".encode())
                os._exit(0)
        for _ in range(processes):
            os.wait()
        paid = sum(map(int, os.read(read, 1000).split()))
        spent = sum(os.times()[2:4]) - before
        os.close(read)
        os.close(write)
    return paid / SECONDS, 1000 * spent / paid


def main() -> None:
    """Print and save the table."""
    found: dict[str, list[tuple[float, float]]] = {name: [] for name in CASES}
    for _ in range(ROUNDS):
        for name, case in CASES.items():
            found[name].append(measured(*case))
    rows: list[dict[str, object]] = []
    for name, values in found.items():
        rate, spent = (statistics.median(part) for part in zip(*values, strict=True))
        rows.append(
            {"callers": name, "photos a second": round(rate), "processor ms a photo": round(spent, 3)}
        )
    report("ledger_shards", rows, notes=(load_note(),))


if __name__ == "__main__":
    main()
