"""Checking the folder of a run: what its cells say is what its tables say, and a slice comes out the same."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from dpveil.attacks import labels
from dpveil.attacks.base import Attack
from dpveil.bench import galleries
from dpveil.bench.cells import Cell, code_digest, settings_of, weights_digest
from dpveil.bench.data import LEAST, Dataset, load
from dpveil.bench.galleries import MOST_RELEASES, NOTHING, AnySetting, Portraits, Setting, can_be_regions
from dpveil.bench.measuring import cells as cells_of
from dpveil.bench.measuring import rows_of
from dpveil.bench.report import alarm, page
from dpveil.bench.run import (
    ABOUT,
    CELLS,
    DOCUMENT,
    FINISHED,
    MEASURES,
    REPORT,
    RESULTS,
    TIMES,
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
from dpveil.errors import DataError, DPVeilError, UsageError
from dpveil.io import is_present
from dpveil.postprocessing import opens

PLOT: Final = re.compile(r"data:image/svg\+xml;base64,[A-Za-z0-9+/=]*")
"""A plot, which other versions of matplotlib draw otherwise."""
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


def reported(folder: Path, cells: Sequence[Cell]) -> bool | None:
    """Return whether the report is what the cells and times.csv say, but for its plots.

    None if it was made by other code. Raises `DataError` for files that cannot be read.
    """
    about = about_of(folder)
    if about.get("code_sha256") != code_digest():
        return None
    times = rows_of(held(folder / TIMES).decode("utf-8", "replace"))
    try:
        made = page(cells, rows(cells), utility(cells), about, times)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise DataError(f"{folder / ABOUT} does not say how it was made", hint="run it again") from error
    there = held(folder / REPORT).decode("utf-8", "replace")
    return PLOT.sub("", made) == PLOT.sub("", there)


def again(
    cells: Sequence[Cell],
    folders: Sequence[Path],
    attacks: Sequence[str] = (),
    *,
    every: bool = False,
    step: Callable[[], None] = lambda: None,
) -> tuple[int, list[str]]:
    """Compute cells anew, and return their number, and those that come out otherwise.

    They are `every` one on data that is there, or the first of each method, of those that this code computed
    and that need no file of a user; with labels of `attacks`, those by these alone. `step` is called after
    each. Raises `UsageError` for an attack that is none of the run's, and `DataError`.
    """
    given = [labels.attack(name) for name in attacks]
    _check_given(cells, given)
    asked = {one.label for one in given}
    limits = {(_count(cell.of, "most_people"), _count(cell.of, "most_photos")) for cell in cells}
    sets = [load(folder, people=people, photos=photos) for folder in folders for people, photos in limits]
    there = {one.digest: one for one in sets}
    named = [cell for cell in cells if not given or cell.of["attack"] in asked]
    wanted = [cell for cell in named if not _codec_opens(cell) and (given or not _attack_opens(cell))]
    here = [cell for cell in wanted if cell.of["data_sha256"] in there and _of_this(cell)]
    if not here:
        return 0, ["no cell is of these data, this code and these trained files, so none was computed again"]
    firsts = {(*_what(cell), str(cell.of["attack"]) * bool(given)): cell for cell in reversed(here)}
    chosen = here if every else [*firsts.values()][::-1]
    problems = [f"{len(wanted) - len(here)} cells are of other data or code"] * (every and here != wanted)
    count = 0
    for group in _of_one_setting(chosen):
        with one_thread():
            made = _made([_asked(cell, there[str(cell.of["data_sha256"])], given) for cell in group])
        for cell, new in zip(group, made, strict=True):
            if new.text() != cell.text():
                of = cell.of
                problems.append(f"{of['method']} against {of['attack']} comes out otherwise: {cell.key}")
            count += 1
            step()
    return count, problems


def _what(cell: Cell) -> tuple[str, str]:
    return str(cell.of["data_sha256"]), str(cell.of["method"])


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


def left_out(cells: Sequence[Cell], attacks: Sequence[str] = ()) -> list[str]:
    """Return a line for each attack that is computed again only with a user's file, which was not given."""
    given = {labels.attack(name).label for name in attacks}
    names = {str(cell.of["attack"]) for cell in cells if _attack_opens(cell)} - given
    rest = "were not computed again: name it by --attack, with the path of its file, such as embedding:FILE"
    own = {str(cell.of["method"]) for cell in cells if _codec_opens(cell)}
    return [
        *(f"cells by {name} {rest}" for name in sorted(names)),
        *(
            f"cells of {name} with another codec than the usual were not computed again"
            for name in sorted(own)
        ),
    ]


def _codec_opens(cell: Cell) -> bool:
    """Whether it is of a method of galleries in a user's codec."""
    parameters: Any = cell.of["parameters"]
    if cell.of["method"] not in galleries.METHODS or "codec" not in parameters:
        return False
    try:
        return bool(parameters["codec"] != str(Portraits.of(None).codec))
    except DPVeilError:  # computing it again says so
        return False


def _attack_opens(cell: Cell) -> bool:
    try:
        return labels.attack(str(cell.of["attack"])).opens
    except DPVeilError:  # computing it again says so
        return False


def _check_given(cells: Sequence[Cell], given: Sequence[Attack]) -> None:
    """Raise `UsageError` unless each attack is one of the run's, and `DataError` for other files."""
    for one in given:
        own = [cell for cell in cells if cell.of["attack"] == one.label]
        if not own:
            run = ", ".join(sorted({str(cell.of["attack"]) for cell in cells}))
            raise UsageError(f"no cell is by the attack {one.label}", hint=f"those of this run are {run}")
        if all(cell.of.get("attack_settings") != settings_of(one) for cell in own):
            raise DataError(
                f"the file of {one.label} is not the run's: its SHA-256 differs", hint="give the same file"
            )


def _count(of: Mapping[str, Json], name: str) -> int | None:
    value = of.get(name)
    return value if isinstance(value, int) and value >= LEAST else None


def repeated(cell: Cell, dataset: Dataset, attacks: Sequence[Attack] = ()) -> Cell:
    """Return the cell computed anew from what it says it is of.

    An attack with a file of a user is that of `attacks` with the same label. Raises `DataError` if it
    names no method, parameters or attack of dpveil.
    """
    (made,) = _made([_asked(cell, dataset, attacks)])
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


def _asked(cell: Cell, dataset: Dataset, attacks: Sequence[Attack]) -> _Asked:
    of: Any = cell.of
    try:
        setting = _setting(of["method"], dict(of["parameters"]))
        attack, measures = labels.attack(of["attack"]), of["measures"]
        if attack.opens:  # a file of whoever made the run, which is read only if it was given
            (attack,) = [one for one in attacks if one.label == of["attack"]]
        if any(name not in UTILITIES for name in measures):
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
