"""Running a benchmark, every setting in a process of its own and resumable cell by cell, and checking a run.

A check reads the cells, and makes the tables again from them.
"""

from __future__ import annotations

import json
import multiprocessing
import platform
import re
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from dpveil.attacks.base import Attack
from dpveil.bench.cells import MOST_BYTES, Cell, code_digest, depends_on, key_of, parse
from dpveil.bench.data import Dataset
from dpveil.bench.measuring import cells
from dpveil.bench.report import alarm, page
from dpveil.bench.setting import Setting
from dpveil.bench.table import COLUMNS, UTILITY, Row, rows, to_csv, utility
from dpveil.bench.utility import usable
from dpveil.core.envelope import this_tool
from dpveil.core.rationals import Json
from dpveil.errors import DataError, OutputError
from dpveil.io.unreadable import Refused
from dpveil.io.untrusted_files import is_present, read_untrusted
from dpveil.io.writing import make_folder, write_together
from dpveil.opencv import cv2

ABOUT: Final = "run.json"
RESULTS: Final = "results.csv"
MEASURES: Final = "utility.csv"
REPORT: Final = "report.html"
FORMAT: Final = "dpveil.run/1"
FINISHED: Final = "finished"
"""What says whether a run was: missing in those of earlier versions, which list no cells until then."""
MOST_CELLS: Final = 100_000
KEY: Final = re.compile(r"[0-9a-f]{64}")  # the name of a cell


def begin(folder: Path, keys: Sequence[str]) -> list[str]:
    """Make the folder of a run of these cells, or take up an earlier one's, and say what will be replaced.

    Until it is finished, the folder says which cells it will have. Raises `OutputError` for any other folder,
    and `DataError` for one that is no run's any more.
    """
    if folder.is_dir() and any(folder.iterdir()) and not is_present(folder / ABOUT):
        raise OutputError(
            f"{folder} holds something else than a run", hint="choose another {out}", arguments={"out": "out"}
        )
    make_folder(folder)
    earlier = about_of(folder) if is_present(folder / ABOUT) else {}
    other = set(earlier.get("cells", ())) - set(keys)
    begun: dict[str, Json] = {"format": FORMAT, "cells": [*keys], FINISHED: False}
    write_together([(folder / ABOUT, _text(begun).encode())], replace=True)
    if not other or not earlier.get(FINISHED, True):
        return []
    return [
        f"{folder} holds the tables of a run with other settings, data or code, which this run replaces; its"
        " cells stay, so that its command brings its tables back"
    ]


def about_of(folder: Path) -> dict[str, Any]:
    """Return what a folder says of its run, from anybody; raises `DataError` for one of no run."""
    data = read_run_file(folder / ABOUT)
    try:
        found = json.loads(data.decode("utf-8"))
        keys, done = found["cells"], found.get(FINISHED, bool(found["cells"]))
        fits = found["format"] == FORMAT and isinstance(keys, list) and len(keys) <= MOST_CELLS
        if (
            not fits
            or type(done) is not bool
            or not all(isinstance(key, str) and KEY.fullmatch(key) for key in keys)
        ):
            raise ValueError
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise DataError(f"{folder / ABOUT} is not that of a run", hint="give the folder of a run") from error
    return {**found, FINISHED: done}


def read_run_file(path: Path) -> bytes:
    """Return the contents of a file of a run; raises `DataError` if it cannot be read."""
    try:
        return read_untrusted(path, MOST_BYTES)
    except Refused as error:
        raise DataError(f"{path} {error.problem}", hint="give the folder of a finished run") from error


def finish(folder: Path, cells: Sequence[Cell], command: str, notes: Sequence[str]) -> list[Row]:
    """Write the tables and the report of all cells together, and return the rows of results.csv."""
    table, measures = rows(cells), utility(cells)
    about = provenance(cells, command, notes)
    files = {**tables(table, measures), REPORT: page(cells, table, measures, about), ABOUT: _text(about)}
    write_together([(folder / name, text.encode()) for name, text in files.items()], replace=True)
    return table


def tables(table: Sequence[Row], measures: Sequence[dict[str, str]]) -> dict[str, str]:
    return {RESULTS: to_csv(COLUMNS, [row.values for row in table]), MEASURES: to_csv(UTILITY, measures)}


def provenance(cells: Sequence[Cell], command: str, notes: Sequence[str]) -> dict[str, Json]:
    """Return where a run's numbers come from."""
    import numpy
    import scipy

    libraries = {"numpy": numpy.__version__, "scipy": scipy.__version__, "opencv": cv2.__version__}
    return {
        "format": FORMAT,
        FINISHED: True,
        "tool": this_tool(),
        "code_sha256": code_digest(),
        "command": command,
        "python": platform.python_version(),
        "libraries": {**libraries},
        "notes": list(notes),
        "cells": [cell.key for cell in cells],
    }


def _text(value: dict[str, Json]) -> str:
    return json.dumps(value, indent=2, sort_keys=True, ensure_ascii=False) + "\n"


CELLS: Final = "cells"  # the folder of cells in that of a run


@dataclass(frozen=True)
class Job:
    """One setting on one data set, and the attacks whose cells are missing."""

    dataset: Dataset
    setting: Setting
    attacks: tuple[Attack, ...]
    seed: int

    @property
    def keys(self) -> tuple[str, ...]:
        """The names of the cells, in the order of the attacks."""
        of = (self.dataset, self.setting), (self.seed, usable())
        return tuple(key_of(depends_on(*of[0], attack, *of[1])) for attack in self.attacks)


def run(
    jobs: Sequence[Job], folder: Path, *, processes: int, step: Callable[[], None] = lambda: None
) -> list[Cell]:
    """Compute the cells that are not in `folder` yet, and return all, in the order of the jobs.

    `step` is called after each job. A cell that is there is read and checked; one that is damaged, or not of
    this version, is computed again. Raises `OutputError` if a cell cannot be written, and what a method, an
    attack or a photo raises.
    """
    make_folder(folder / CELLS)
    missing = [job for job in (_without_computed(job, folder) for job in jobs) if job.attacks]
    for _ in range(len(jobs) - len(missing)):
        step()
    for _ in _compute_jobs(missing, folder, processes):
        step()
    found = [read_cell(folder, key) for job in jobs for key in job.keys]
    return [cell for cell in found if cell is not None]


def count(jobs: Sequence[Job], folder: Path) -> int:
    return sum(is_present(_path(folder, key)) for job in jobs for key in job.keys)


def _path(folder: Path, key: str) -> Path:
    return folder / CELLS / f"{key}.json"


def read_cell(folder: Path, key: str) -> Cell | None:
    """Return the cell of this name, or None if there is none; raises `DataError` for anything else."""
    path = _path(folder, key)
    if not is_present(path):
        return None
    try:
        cell = parse(read_untrusted(path, MOST_BYTES), path.name)
    except Refused as error:
        raise DataError(f"{path.name} {error.problem}", hint=error.remedy) from error
    if cell.key != key:
        raise DataError(f"{path.name} is the cell of another run", hint="delete it, and run it again")
    return cell


def _without_computed(job: Job, folder: Path) -> Job:
    missing = []
    for attack, key in zip(job.attacks, job.keys, strict=True):
        try:
            there = read_cell(folder, key) is not None
        except DataError:
            there = False
        if not there:
            missing.append(attack)
    return Job(job.dataset, job.setting, tuple(missing), job.seed)


def _compute_jobs(jobs: Sequence[Job], folder: Path, processes: int) -> Iterator[None]:
    if processes == 1 or len(jobs) < 2:
        for job in jobs:
            compute(job, folder)
            yield
        return
    context = multiprocessing.get_context("spawn")
    others = set(multiprocessing.active_children())
    with ProcessPoolExecutor(min(processes, len(jobs)), mp_context=context) as pool:
        waiting = [pool.submit(compute, job, folder) for job in jobs]
        try:
            for one in as_completed(waiting):
                one.result()
                yield
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            for child in set(multiprocessing.active_children()) - others:
                child.terminate()  # a cell is written whole or not at all
            raise


def compute(job: Job, folder: Path) -> None:
    """Compute the cells of a job on one thread, and write each as soon as it is there."""
    with one_thread():
        for cell in cells(job.dataset, job.setting, job.attacks, job.seed):
            write_together([(_path(folder, cell.key), cell.text().encode())], replace=True)


@contextmanager
def one_thread() -> Iterator[None]:
    """Keep linear algebra and OpenCV to one thread, so that sums do not depend on the machine's cores."""
    from threadpoolctl import threadpool_limits

    before = cv2.getNumThreads()
    cv2.setNumThreads(1)
    try:
        with threadpool_limits(1):
            yield
    finally:
        cv2.setNumThreads(before)


def check(folder: Path) -> tuple[list[Cell], list[str]]:
    """Return the cells of a run, and what does not fit together in its folder, a line each.

    The cells are read, and the tables made again from them. Raises `DataError` for a folder of no run.
    """
    about = about_of(folder)
    problems: list[str] = []
    cells: list[Cell] = []
    if len(set(about["cells"])) < len(about["cells"]):
        raise DataError(f"{folder / ABOUT} lists a cell twice", hint="run it again")
    if not about[FINISHED]:
        return [], [_interruption_text(folder, about["cells"])]
    for key in about["cells"]:
        try:
            cell = read_cell(folder, key)
        except DataError as error:
            problems.append(str(error))
            continue
        if cell is None:
            problems.append(f"the cell {key} is missing")
        else:
            cells.append(cell)
    if problems:
        return cells, problems
    try:
        table = rows(cells)
        made = tables(table, utility(cells))
    except (ValueError, TypeError, KeyError, AttributeError, ArithmeticError) as error:
        raise DataError(f"the cells of {folder} do not fit together", hint="run it again") from error
    problems += [
        f"{name} is not what the cells say"
        for name in (RESULTS, MEASURES)
        if read_run_file(folder / name) != made[name].encode()
    ]
    problems += [alarm(row) for row in table if row.above]
    return cells, problems


def _interruption_text(folder: Path, keys: Sequence[str]) -> str:
    lacking = sum(not is_present(folder / CELLS / f"{key}.json") for key in keys)
    told = f"{lacking} of its {len(keys)} cells are missing" if lacking else "its tables are not written"
    return f"the run was interrupted, or goes on: {told}; its command computes what is missing"


def other_code(cells: Sequence[Cell]) -> bool:
    """Whether some cells were computed by other code than this."""
    return any(cell.of.get("code_sha256") != code_digest() for cell in cells)
