"""Checking the folder of a run: what its cells say is what its tables say, and a slice comes out the same."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from dpveil.attacks import labels
from dpveil.attacks.base import Attack
from dpveil.bench import galleries
from dpveil.bench.cells import Cell, code_digest, weights_digest
from dpveil.bench.data import LEAST, Dataset, load
from dpveil.bench.galleries import MOST_RELEASES, NOTHING, AnySetting, Portraits, Setting, can_be_regions
from dpveil.bench.measuring import cells as cells_of
from dpveil.bench.report import alarm
from dpveil.bench.run import (
    ABOUT,
    CELLS,
    DOCUMENT,
    FINISHED,
    MEASURES,
    RESULTS,
    about_of,
    held,
    one_thread,
    read_cell,
    tables,
)
from dpveil.bench.table import rows, utility
from dpveil.bench.utility import UTILITIES
from dpveil.core.numbers import Json
from dpveil.core.registry import METHODS
from dpveil.errors import DataError, DPVeilError
from dpveil.io import is_present
from dpveil.postprocessing import opens

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
        return [], [_interrupted(folder, about["cells"])]
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
        if held(folder / name) != made[name].encode()
    ]
    problems += [alarm(row) for row in table if row.above]
    return cells, problems


def _interrupted(folder: Path, keys: Sequence[str]) -> str:
    lacking = sum(not is_present(folder / CELLS / f"{key}.json") for key in keys)
    told = f"{lacking} of its {len(keys)} cells are missing" if lacking else "its tables are not written"
    return f"the run was interrupted, or goes on: {told}; its command computes what is missing"


def again(
    cells: Sequence[Cell],
    folders: Sequence[Path],
    *,
    every: bool = False,
    step: Callable[[], None] = lambda: None,
) -> tuple[int, list[str]]:
    """Compute cells anew, and return their number, and those that come out otherwise.

    They are `every` one on data that is there, or the first of each method, of those that this code computed
    and that need no file of a user. `step` is called after each. Raises `DataError`.
    """
    limits = {(_count(cell.of, "most_people"), _count(cell.of, "most_photos")) for cell in cells}
    sets = [load(folder, people=people, photos=photos) for folder in folders for people, photos in limits]
    there = {one.digest: one for one in sets}
    wanted = [cell for cell in cells if not _opens(cell)]
    here = [cell for cell in wanted if cell.of["data_sha256"] in there and _of_this(cell)]
    if not here:
        return 0, ["no cell is of these data, this code and these trained files, so none was computed again"]
    firsts = {(str(cell.of["data_sha256"]), str(cell.of["method"])): cell for cell in reversed(here)}
    chosen = here if every else [*firsts.values()][::-1]
    problems = [f"{len(wanted) - len(here)} cells are of other data or code"] * (every and here != wanted)
    count = 0
    for group in _of_one_setting(chosen):
        with one_thread():
            made = _made([_asked(cell, there[str(cell.of["data_sha256"])]) for cell in group])
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


def repeated(cell: Cell, dataset: Dataset) -> Cell:
    """Return the cell computed anew from what it says it is of.

    Raises `DataError` if it names no method, parameters or attack of dpveil.
    """
    (made,) = _made([_asked(cell, dataset)])
    return made


@dataclass(frozen=True)
class _Asked:
    """What a cell says it is of, as far as dpveil has it."""

    dataset: Dataset
    setting: AnySetting
    attack: Attack
    seed: int
    measures: tuple[str, ...]


def _made(group: Sequence[_Asked]) -> list[Cell]:
    """Return the cells of several attacks on the same releases."""
    one = group[0]
    return [*cells_of(one.dataset, one.setting, [each.attack for each in group], one.seed, one.measures)]


def _asked(cell: Cell, dataset: Dataset) -> _Asked:
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
        return galleries.GallerySetting.stated(name, given)
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
