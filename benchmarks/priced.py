"""A folder with faces that a ledger pays for, and that is priced before anything is drawn, by several ways.

"once" keeps what was found while the run was priced; "twice" searches each photo again when it is released,
as with no memory for it; "not paid" is the same run without a ledger, which is not priced. The runs take
turns. Processor time is that of all processes, and depends less on how busy the machine is. The photos are
1280 × 720 pixels large.
"""

from __future__ import annotations

import resource
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

from dpveil.batch import Choices, found, plan_tasks, release_all
from dpveil.catalogue import build
from dpveil.ledger import Ledger, Limit
from dpveil.regions import parse
from folder_photos import make
from timing import load, report

ROUNDS = 5
JOBS = (1, 2)
WAYS = {"not paid": (False, 0), "once": (True, found.MOST_BYTES), "twice": (True, 0)}


def released(photos: Path, work: Path, ledger: Ledger | None, jobs: int) -> tuple[float, float]:
    """Return the seconds, and processor seconds, of releasing the folder."""
    method = build("dp-pix", {"epsilon": 5, "block": 16, "neighbourhood": 256})
    paying: dict[str, Any] = {} if ledger is None else {"ledger": ledger, "subject": "album"}
    chosen = Choices(method=method, regions=[parse("faces")], if_none="whole", **paying)
    with tempfile.TemporaryDirectory(dir=work) as out:
        tasks = plan_tasks([photos], Path(out))
        start, spent = time.perf_counter(), _processor()
        done = release_all(tasks, chosen, jobs=jobs)
        took = time.perf_counter() - start, _processor() - spent
    if len(done.released) != len(tasks):
        raise RuntimeError(f"not all were released: {done.failed or done.stopped}")
    return took


def _processor() -> float:
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in used)


def rows(work: Path) -> list[dict[str, object]]:
    """Return a row for each way and number of jobs."""
    count = len(make(work / "photos"))
    times: dict[tuple[str, int], list[tuple[float, float]]] = {}
    with Ledger(f"sqlite:///{work}/budget.db", create=True) as ledger:
        ledger.set_limit("album", Limit("pure", epsilon=10**6))
        released(work / "photos", work, ledger, 1)  # loads what is loaded once
        for _ in range(ROUNDS):
            for name, (pays, most) in WAYS.items():
                found.MOST_BYTES = most  # type: ignore[misc]
                for jobs in JOBS:
                    took = released(work / "photos", work, ledger if pays else None, jobs)
                    times.setdefault((name, jobs), []).append(took)
    return [
        {
            "search": name,
            "jobs": jobs,
            "photos": count,
            "seconds": round(statistics.median(took for took, _ in each), 2),
            "processor seconds": round(statistics.median(busy for _, busy in each), 2),
            "load": load(),
        }
        for (name, jobs), each in times.items()
    ]


def main() -> None:
    """Print and save the table."""
    with tempfile.TemporaryDirectory() as temporary:
        report("priced", rows(Path(temporary)))


if __name__ == "__main__":
    main()
