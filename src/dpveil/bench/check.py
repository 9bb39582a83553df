"""Checking the folder of a run: what its cells say is what its tables say, and a slice comes out the same."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from dpveil.attacks import labels
from dpveil.attacks.base import Attack
from dpveil.bench import beside
from dpveil.bench.cells import MOST_BYTES, Cell, code_digest, settings_of, weights_digest
from dpveil.bench.data import LEAST, Dataset, load
from dpveil.bench.folder import ABOUT, DOCUMENT, FORMAT, MEASURES, REPORT, RESULTS, TIMES, tables
from dpveil.bench.measuring import cells as cells_of
from dpveil.bench.report import alarm, page
from dpveil.bench.run import one_thread, read_cell
from dpveil.bench.settings import MOST_RELEASES, NOTHING, Setting
from dpveil.bench.table import rows, utility
from dpveil.bench.times import rows_of
from dpveil.bench.utility import UTILITIES
from dpveil.core.numbers import Json
from dpveil.core.registry import METHODS
from dpveil.errors import DataError, DPVeilError
from dpveil.io import received
from dpveil.io.refused import Refused

MOST_CELLS: Final = 100_000
BOX: Final = re.compile(r"\d{1,6}(,\d{1,6}){3}")
"""A region that opens no file."""
PLOT: Final = re.compile(r"data:image/svg\+xml;base64,[A-Za-z0-9+/=]*")
"""A plot, which other versions of matplotlib draw otherwise."""
MOST_STEPS: Final = 5
"""Most steps of post-processing of a cell that is computed again."""
NEEDED: Final = "pip install 'dpveil[faces,models]', and dpveil install faces"


def check(folder: Path) -> tuple[list[Cell], list[str]]:
    """Return the cells of a run, and what does not fit together in its folder, a line each.

    The cells are read, and the tables made again from them. Raises `DataError` for a folder of no run.
    """
    about = _about(folder)
    problems: list[str] = []
    cells: list[Cell] = []
    if len(set(about["cells"])) < len(about["cells"]):
        raise DataError(f"{folder / ABOUT} lists a cell twice", hint="run it again")
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
    if problems or not cells:
        return cells, problems or ["the run has no cells yet: it was not finished"]
    table = rows(cells)
    made = tables(table, utility(cells), about)
    problems += [
        f"{name} is not what the cells say"
        for name in (RESULTS, MEASURES, DOCUMENT)
        if _held(folder / name) != made[name].encode()
    ]
    problems += [alarm(row) for row in table if row.above]
    return cells, problems


def reported(folder: Path, cells: Sequence[Cell]) -> bool | None:
    """Return whether the report is what the cells and times.csv say, but for its plots.

    None if it was made by other code. Raises `DataError` for files that cannot be read.
    """
    about = _about(folder)
    if about.get("code_sha256") != code_digest():
        return None
    times = rows_of(_held(folder / TIMES).decode("utf-8", "replace"))
    try:
        made = page(cells, rows(cells), utility(cells), about, times)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise DataError(f"{folder / ABOUT} does not say how it was made", hint="run it again") from error
    held = _held(folder / REPORT).decode("utf-8", "replace")
    return PLOT.sub("", made) == PLOT.sub("", held)


def again(
    cells: Sequence[Cell], folders: Sequence[Path], attacks: Sequence[str] = ()
) -> tuple[int, list[str]]:
    """Compute a slice of the cells anew, and return their number, and those that come out otherwise.

    The slice is the first cell of each method on data that is there, of those that this code computed, and
    that need no file of a user; with labels of `attacks`, the first of each method by each of these. Raises
    `DataError` for such an attack that is none of the run's.
    """
    given = [labels.attack(name) for name in attacks]
    _check_given(cells, given)
    slices: dict[tuple[str, str, str], Cell] = {}
    limits = {(_count(cell.of, "most_people"), _count(cell.of, "most_photos")) for cell in cells}
    sets = [load(folder, people=people, photos=photos) for folder in folders for people, photos in limits]
    there = {one.digest: one for one in sets}
    asked = {one.label for one in given}
    for cell in cells:
        of = cell.of
        here = (of.get("code_sha256"), of.get("weights_sha256")) == (code_digest(), weights_digest())
        wanted = of["attack"] in asked if given else not _opens(cell)
        if of["data_sha256"] in there and here and wanted:
            by = str(of["attack"]) if given else ""
            slices.setdefault((str(of["data_sha256"]), str(of["method"]), by), cell)
    if not slices:
        return 0, ["no cell is of these data, this code and these trained files, so none was computed again"]
    problems = []
    for cell in slices.values():
        with one_thread():
            made = repeated(cell, there[str(cell.of["data_sha256"])], given)
        if made.text() != cell.text():
            problems.append(
                f"{cell.of['method']} against {cell.of['attack']} comes out otherwise: {cell.key}"
            )
    return len(slices), problems


def left_out(cells: Sequence[Cell], attacks: Sequence[str] = ()) -> list[str]:
    """Return a line for each attack that is computed again only with a user's file, which was not given."""
    given = {labels.attack(name).label for name in attacks}
    names = {str(cell.of["attack"]) for cell in cells if _opens(cell)} - given
    rest = "were not computed again: name it by --attack, with the path of its file, such as embedding:FILE"
    return [f"cells by {name} {rest}" for name in sorted(names)]


def _opens(cell: Cell) -> bool:
    try:
        return labels.attack(str(cell.of["attack"])).opens
    except DPVeilError:  # computing it again says so
        return False


def _check_given(cells: Sequence[Cell], given: Sequence[Attack]) -> None:
    """Raise `DataError` unless each attack is one of the run's, with the same files."""
    for one in given:
        own = [cell for cell in cells if cell.of["attack"] == one.label]
        if not own:
            run = ", ".join(sorted({str(cell.of["attack"]) for cell in cells}))
            raise DataError(f"no cell is by the attack {one.label}", hint=f"those of this run are {run}")
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
    of: Any = cell.of
    try:
        given = dict(of["parameters"])
        regions, after = given.pop("regions", None), tuple(given.pop("after", ()))
        releases = given.pop("releases", 1)
        method = None if of["method"] == NOTHING else METHODS[of["method"]].stated(given)
        known = regions in (None, "whole", "faces") or (type(regions) is str and BOX.fullmatch(regions))
        if not known or type(releases) is not int:  # a mask is a file of whoever made the run
            raise ValueError
        if not 1 <= releases <= MOST_RELEASES or len(after) > MOST_STEPS:
            raise ValueError
        if any(type(step) is not str or step.startswith("denoiser:") for step in after):  # or a file
            raise ValueError
        attack, measures = labels.attack(of["attack"]), of["measures"]
        if attack.opens:  # a file of whoever made the run, which is read only if it was given
            (attack,) = [one for one in attacks if one.label == of["attack"]]
        if any(name not in UTILITIES for name in measures):
            raise ValueError
        setting = Setting(method, regions, after, releases)
        split = replace(dataset, split=of["split"])
    except (DPVeilError, ValueError, TypeError, KeyError) as error:
        raise DataError(
            f"{cell.key}.json is of no method or attack of dpveil", hint="run it again"
        ) from error
    if not all(UTILITIES[name].there for name in measures):
        raise DataError(f"{cell.key}.json was measured with what is not installed", hint=NEEDED)
    (made,) = cells_of(split, setting, [attack], of["seed"], measures)
    return made


def other_code(cells: Sequence[Cell]) -> bool:
    """Whether some cells were computed by other code than this."""
    return any(cell.of.get("code_sha256") != code_digest() for cell in cells)


def _about(folder: Path) -> dict[str, Any]:
    data = _held(folder / ABOUT)
    try:
        found = json.loads(data.decode("utf-8"))
        keys = found["cells"]
        fits = found["format"] == FORMAT and isinstance(keys, list) and len(keys) <= MOST_CELLS
        if not fits or not all(isinstance(key, str) and _is_key(key) for key in keys):
            raise ValueError
        beside.tables_of(found.get(beside.KEY, []))
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise DataError(f"{folder / ABOUT} is not that of a run", hint="give the folder of a run") from error
    return dict(found)


def _is_key(text: str) -> bool:
    return len(text) == 64 and set(text) <= set("0123456789abcdef")


def _held(path: Path) -> bytes:
    try:
        return received(path, MOST_BYTES)
    except Refused as error:
        raise DataError(f"{path} {error.problem}", hint="give the folder of a finished run") from error
