"""What releases took: processor time and memory, which differ between machines and are no part of cells."""

from __future__ import annotations

import csv
import io
import json
import math
import re
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from dpveil.errors import DataError
from dpveil.io import is_present, received, write_together
from dpveil.io.refused import Refused

FOLDER: Final = "times"
"""The folder of times in that of a run, one file a setting."""
COLUMNS: Final = ("dataset", "method", "parameters", "releases", "ms", "MiB")
MOST_BYTES: Final = 1 << 16
AMOUNT: Final = re.compile(r"\d{1,12}(\.\d{1,6})?")
STATUS: Final = Path("/proc/self/status")
PEAK: Final = Path("/proc/self/clear_refs")
RESET: Final = "5"
"""What resets the peak of a process's memory (Linux, proc_pid_clear_refs)."""


@dataclass
class Spent:
    """Seconds of the processor, and MiB beyond what was in use before; None where the system does not say."""

    seconds: float = 0.0
    mebibytes: float | None = None


@contextmanager
def spent() -> Iterator[Spent]:
    """Measure what the block takes."""
    out, before, start = Spent(), _peak(reset=True), time.process_time()
    yield out
    out.seconds, after = time.process_time() - start, _peak()
    out.mebibytes = None if before is None or after is None else max(0.0, after - before)


def _peak(*, reset: bool = False) -> float | None:
    """Return the most memory that was resident, in MiB, since the last reset; None if it is not known."""
    try:
        if reset:
            PEAK.write_text(RESET, encoding="ascii")
        (line,) = (one for one in STATUS.read_text(encoding="utf-8").splitlines() if one.startswith("VmHWM"))
        return int(line.split()[1]) / 1024
    except (OSError, ValueError):
        return None


@dataclass(frozen=True)
class Time:
    """What one release took: milliseconds of the processor, and MiB, None where it is not known."""

    releases: int
    ms: float
    MiB: float | None

    def row(self, about: Mapping[str, str]) -> dict[str, str]:
        """Return the row of times.csv; `about` names data set, method and parameters."""
        return {**about, **{name: "" if value is None else str(value) for name, value in vars(self).items()}}


def write(folder: Path, key: str, took: Time) -> None:
    """Write what a setting took; `key` names the file."""
    text = json.dumps(asdict(took), sort_keys=True)
    write_together([(folder / FOLDER / f"{key}.json", text.encode())], replace=True)


def read(folder: Path, key: str) -> Time | None:
    """Return what a setting took; None if there is no file, and `DataError` for a damaged one."""
    path = folder / FOLDER / f"{key}.json"
    if not is_present(path):
        return None
    try:
        found = Time(**json.loads(received(path, MOST_BYTES)))
        numbers = (found.releases, found.ms, found.MiB or 0)
        if not all(type(one) in (int, float) and 0 <= one < math.inf for one in numbers):
            raise ValueError
    except (Refused, ValueError, TypeError, RecursionError) as error:
        raise DataError(f"{path.name} does not say what took how long", hint="delete it") from error
    return found


def rows_of(text: str) -> list[dict[str, str]]:
    """Return the rows of a times.csv from anybody; raises `DataError` for anything else."""
    reader = csv.DictReader(io.StringIO(text))
    try:
        found = list(reader)
        amounts = [row[name] for row in found for name in ("releases", "ms", "MiB") if row[name]]
        if tuple(reader.fieldnames or ()) != COLUMNS or not all(AMOUNT.fullmatch(one) for one in amounts):
            raise ValueError
    except (csv.Error, ValueError, TypeError, KeyError) as error:
        raise DataError("times.csv does not say what took how long", hint="run it again") from error
    return found
