"""Running a benchmark, every setting in a process of its own and resumable cell by cell, and checking a run.

A check reads the cells, makes the tables again from them, and computes a slice of the cells anew.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import platform
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from dpveil.attacks import labels
from dpveil.attacks.base import Attack
from dpveil.bench import galleries, measuring
from dpveil.bench.cells import MOST_BYTES, Cell, code_digest, depends_on, key_of, parse, weights_digest
from dpveil.bench.data import LEAST, Dataset, load
from dpveil.bench.galleries import MOST_RELEASES, NOTHING, AnySetting, Portraits, Setting, can_be_regions
from dpveil.bench.measuring import COLUMNS as COLUMNS_OF_TIMES
from dpveil.bench.measuring import Time, attack_cells, release_all
from dpveil.bench.measuring import cells as cells_of
from dpveil.bench.report import alarm, page
from dpveil.bench.table import COLUMNS, UTILITY, Row, rows, to_csv, utility
from dpveil.bench.utility import UTILITIES, usable
from dpveil.core.envelope import this_tool
from dpveil.core.numbers import Json
from dpveil.core.registry import METHODS
from dpveil.errors import DataError, DPVeilError, OutputError, UsageError
from dpveil.io import is_present, make_folder, read_untrusted, write_together
from dpveil.io.unreadable import Refused
from dpveil.postprocessing import opens

ABOUT: Final = "run.json"
RESULTS: Final = "results.csv"
MEASURES: Final = "utility.csv"
TIMES: Final = "times.csv"
DOCUMENT: Final = "results.json"
REPORT: Final = "report.html"
FORMAT: Final = "dpveil.run/1"
FINISHED: Final = "finished"
"""What says whether a run was: missing in those of earlier versions, which list no cells until then."""
MOST_CELLS: Final = 100_000


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
            or not all(isinstance(key, str) and _is_key(key) for key in keys)
        ):
            raise ValueError
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise DataError(f"{folder / ABOUT} is not that of a run", hint="give the folder of a run") from error
    return {**found, FINISHED: done}


def _is_key(text: str) -> bool:
    return len(text) == 64 and set(text) <= set("0123456789abcdef")


def read_run_file(path: Path) -> bytes:
    """Return the contents of a file of a run; raises `DataError` if it cannot be read."""
    try:
        return read_untrusted(path, MOST_BYTES)
    except Refused as error:
        raise DataError(f"{path} {error.problem}", hint="give the folder of a finished run") from error


def finish(
    folder: Path,
    cells: Sequence[Cell],
    command: str,
    notes: Sequence[str],
    took: Sequence[dict[str, str]] = (),
) -> list[Row]:
    """Write the tables and the report of all cells together, and return the rows of results.csv.

    `took` are the rows of measuring.csv, which are part of the report, and of no other table.
    """
    table, measures = rows(cells), utility(cells)
    about = provenance(cells, command, notes)
    texts = tables(table, measures, about)
    files = {**texts, REPORT: page(cells, table, measures, about, took), ABOUT: _text(about)}
    files[TIMES] = to_csv(COLUMNS_OF_TIMES, took)
    write_together([(folder / name, text.encode()) for name, text in files.items()], replace=True)
    return table


def tables(
    table: Sequence[Row], measures: Sequence[dict[str, str]], about: dict[str, Json]
) -> dict[str, str]:
    """Return the contents of the tables by file name."""
    results = [dict(row.values) for row in table]
    document: dict[str, Any] = {"about": dict(about), "results": results, "utility": list(measures)}
    return {
        RESULTS: to_csv(COLUMNS, results),
        MEASURES: to_csv(UTILITY, measures),
        DOCUMENT: _text(document),
    }


def provenance(cells: Sequence[Cell], command: str, notes: Sequence[str]) -> dict[str, Json]:
    """Return where a run's numbers come from."""
    import cv2
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


CELLS: Final = "cells"
"""The folder of cells in that of a run."""


@dataclass(frozen=True)
class Job:
    """One setting on one data set, and the attacks whose cells are missing."""

    dataset: Dataset
    setting: AnySetting
    attacks: tuple[Attack, ...]
    seed: int

    @property
    def keys(self) -> tuple[str, ...]:
        """The names of the cells, in the order of the attacks."""
        of = (self.dataset, self.setting), (self.seed, usable(self.dataset.subject))
        return tuple(key_of(depends_on(*of[0], attack, *of[1])) for attack in self.attacks)

    @property
    def setting_key(self) -> str:
        """The name of the file that says what the setting's releases took."""
        of: dict[str, Json] = {"data": self.dataset.digest, "method": self.setting.name, "seed": self.seed}
        return key_of({**of, "split": self.dataset.split, "parameters": self.setting.parameters})


def run(
    jobs: Sequence[Job], folder: Path, *, processes: int, step: Callable[[], None] = lambda: None
) -> list[Cell]:
    """Compute the cells that are not in `folder` yet, and return all, in the order of the jobs.

    `step` is called after each job. A cell that is there is read and checked; one that is damaged, or not of
    this version, is computed again. Raises `OutputError` if a cell cannot be written, and what a method, an
    attack or a photo raises.
    """
    for name in (CELLS, measuring.FOLDER):
        make_folder(folder / name)
    missing = [job for job in (_without_computed(job, folder) for job in jobs) if job.attacks]
    for _ in range(len(jobs) - len(missing)):
        step()
    for _ in _compute_jobs(missing, folder, processes):
        step()
    return [cell for job in jobs for cell in read_cells(job, folder)]


def count(jobs: Sequence[Job], folder: Path) -> int:
    """Return how many cells of these jobs are there."""
    return sum(is_present(_path(folder, key)) for job in jobs for key in job.keys)


def _path(folder: Path, key: str) -> Path:
    return folder / CELLS / f"{key}.json"


def read_cells(job: Job, folder: Path) -> list[Cell]:
    """Return the cells of a job that is finished; raises `DataError` if one is missing or damaged."""
    found = [read_cell(folder, key) for key in job.keys]
    return [cell for cell in found if cell is not None]


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
    """Return the job without the attacks whose cells are there."""
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
        releases = release_all(job.dataset, job.setting, job.seed)
        spent = releases.spent
        memory = None if spent.mebibytes is None else round(spent.mebibytes, 1)
        count = len(releases.known) + len(releases.probes) + len(releases.strangers)
        each = Time(count, round(1000 * spent.seconds / count, 2), memory)
        measuring.write(folder, job.setting_key, each)
        for cell in attack_cells(
            job.dataset, job.setting, job.attacks, releases, job.seed, usable(job.dataset.subject)
        ):
            write_together([(_path(folder, cell.key), cell.text().encode())], replace=True)


def times_per_release(jobs: Sequence[Job], folder: Path) -> list[dict[str, str]]:
    """Return the rows of measuring.csv: what a release by each setting took, from photo to file."""
    found = []
    for job in jobs:
        try:
            time = measuring.read(folder, job.setting_key)
        except DataError:  # a report without it is better than none
            continue
        if time is not None:
            parameters = json.dumps(job.setting.parameters, sort_keys=True)
            about = {"dataset": job.dataset.name, "method": job.setting.name, "parameters": parameters}
            found.append(time.row(about))
    return found


@contextmanager
def one_thread() -> Iterator[None]:
    """Keep linear algebra and OpenCV to one thread, so that sums do not depend on the machine's cores."""
    import cv2
    from threadpoolctl import threadpool_limits

    before = cv2.getNumThreads()
    cv2.setNumThreads(1)
    try:
        with threadpool_limits(1):
            yield
    finally:
        cv2.setNumThreads(before)


def cores() -> int:
    """Return the number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


MOST_STEPS: Final = 5
"""Most steps of post-processing of a cell that is computed again."""
NEEDED: Final = "pip install 'dpveil[faces,models]', and dpveil install faces"


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
    table = rows(cells)
    made = tables(table, utility(cells), about)
    problems += [
        f"{name} is not what the cells say"
        for name in (RESULTS, MEASURES, DOCUMENT)
        if read_run_file(folder / name) != made[name].encode()
    ]
    problems += [alarm(row) for row in table if row.above]
    return cells, problems


def _interruption_text(folder: Path, keys: Sequence[str]) -> str:
    lacking = sum(not is_present(folder / CELLS / f"{key}.json") for key in keys)
    told = f"{lacking} of its {len(keys)} cells are missing" if lacking else "its tables are not written"
    return f"the run was interrupted, or goes on: {told}; its command computes what is missing"


def recompute_cells(
    cells: Sequence[Cell],
    folders: Sequence[Path],
    *,
    every: bool = False,
    attacks: Sequence[str] = (),
    step: Callable[[], None] = lambda: None,
) -> tuple[int, list[str]]:
    """Compute cells anew, and return their number, and those that come out otherwise.

    They are `every` one on data that is there, or the first of each method, and of each of the `attacks` if
    some are named, of those that this code computed and that need no file of a user. `step` is called after
    each. Raises `DataError`, and `UsageError` for attacks that the run does not have.
    """
    limits = {(_count(cell.of, "most_people"), _count(cell.of, "most_photos")) for cell in cells}
    sets = [load(folder, people=people, photos=photos) for folder in folders for people, photos in limits]
    there = {one.digest: one for one in sets}
    named = [cell for cell in cells if not attacks or cell.of["attack"] in attacks]
    if absent := sorted({*attacks} - {str(cell.of["attack"]) for cell in named}):
        raise UsageError(f"the run has no attack {absent[0]}", hint="name one that its tables have")
    wanted = [cell for cell in named if not _opens(cell)]
    here = [cell for cell in wanted if cell.of["data_sha256"] in there and _of_this(cell)]
    if not here:
        return 0, ["no cell is of these data, this code and these trained files, so none was computed again"]
    by = ("data_sha256", "method", *["attack"] * bool(attacks))
    firsts = {tuple(str(cell.of[name]) for name in by): cell for cell in reversed(here)}
    chosen = here if every else [*firsts.values()][::-1]
    problems = [f"{len(wanted) - len(here)} cells are of other data or code"] * (every and here != wanted)
    count = 0
    for group in _of_one_setting(chosen):
        with one_thread():
            made = _compute_group([_parse_cell(cell, there[str(cell.of["data_sha256"])]) for cell in group])
        for cell, new in zip(group, made, strict=True):
            if new.text() != cell.text():
                of = cell.of
                problems.append(f"{of['method']} against {of['attack']} comes out otherwise: {cell.key}")
            count += 1
            step()
    return count, problems


def _of_this(cell: Cell) -> bool:
    """Whether this code computed a cell, with the trained files that are here."""
    of = cell.of
    return (of.get("code_sha256"), of.get("weights_sha256")) == (code_digest(), weights_digest())


def _of_one_setting(cells: Sequence[Cell]) -> list[list[Cell]]:
    """Return cells in groups that are of the same releases and measures."""
    groups: dict[str, list[Cell]] = {}
    for cell in cells:
        names = ("data_sha256", "split", "method", "parameters", "seed", "measures")
        groups.setdefault(json.dumps([cell.of.get(name) for name in names], sort_keys=True), []).append(cell)
    return [*groups.values()]


def left_out(cells: Sequence[Cell]) -> int:
    """Return how many cells are not computed again, as they need a file of a user."""
    return sum(map(_opens, cells))


def _opens(cell: Cell) -> bool:
    """Whether a cell is by an attack with a file of a user, or of a method of galleries in a user's codec."""
    name, parameters = cell.of["method"], cell.of["parameters"]
    own = isinstance(parameters, dict) and name in galleries.METHODS and parameters.get("codec")
    try:
        if labels.attack(str(cell.of["attack"])).opens:
            return True
        return bool(own) and own != str(Portraits.of(None).codec)
    except DPVeilError:  # computing it again says so
        return False


def _count(of: Mapping[str, Json], name: str) -> int | None:
    value = of.get(name)
    return value if isinstance(value, int) and value >= LEAST else None


def recompute_cell(cell: Cell, dataset: Dataset) -> Cell:
    """Return the cell computed anew from what it says it is of.

    Raises `DataError` if it names no method, parameters or attack of dpveil.
    """
    (made,) = _compute_group([_parse_cell(cell, dataset)])
    return made


@dataclass(frozen=True)
class _Asked:
    """What a cell says it is of, as far as dpveil has it."""

    dataset: Dataset
    setting: AnySetting
    attack: Attack
    seed: int
    measures: tuple[str, ...]


def _compute_group(group: Sequence[_Asked]) -> list[Cell]:
    """Return the cells of several attacks on the same releases."""
    one = group[0]
    return [*cells_of(one.dataset, one.setting, [each.attack for each in group], one.seed, one.measures)]


def _parse_cell(cell: Cell, dataset: Dataset) -> _Asked:
    of: Any = cell.of
    try:
        setting = _setting(of["method"], dict(of["parameters"]))
        attack, measures = labels.attack(of["attack"]), of["measures"]
        if attack.opens or any(name not in UTILITIES for name in measures):
            raise ValueError
        split = replace(dataset, split=of["split"])
    except (DPVeilError, ValueError, TypeError, KeyError) as error:
        raise DataError(
            f"{cell.key}.json is of no method or attack of dpveil", hint="run it again"
        ) from error
    if not all(UTILITIES[name].there for name in measures):
        raise DataError(f"{cell.key}.json was measured with what is not installed", hint=NEEDED)
    return _Asked(split, setting, attack, of["seed"], tuple(measures))


def _setting(name: str, given: dict[str, Any]) -> AnySetting:
    """Return the setting of a cell from anybody, which opens no file; raises for what is none of dpveil."""
    if name in galleries.METHODS:
        return galleries.GallerySetting.from_cell(name, given)
    regions, after = given.pop("regions", None), tuple(given.pop("after", ()))
    releases = given.pop("releases", 1)
    method = None if name == NOTHING else METHODS[name].stated(given)
    if not can_be_regions(regions) or type(releases) is not int:
        raise ValueError
    if not 1 <= releases <= MOST_RELEASES or len(after) > MOST_STEPS:
        raise ValueError
    if any(type(step) is not str or opens(step) for step in after):
        raise ValueError
    return Setting(method, regions, after, releases)


def other_code(cells: Sequence[Cell]) -> bool:
    """Whether some cells were computed by other code than this."""
    return any(cell.of.get("code_sha256") != code_digest() for cell in cells)
