"""The folder of a run: tables, the report, and where they come from."""

from __future__ import annotations

import json
import platform
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from dpveil.bench.cells import MOST_BYTES, Cell, code_digest
from dpveil.bench.report import page
from dpveil.bench.table import COLUMNS, UTILITY, Row, rows, to_csv, utility
from dpveil.bench.times import COLUMNS as COLUMNS_OF_TIMES
from dpveil.core.envelope import this_tool
from dpveil.core.numbers import Json
from dpveil.errors import DataError, OutputError
from dpveil.io import is_present, make_folder, received, write_together
from dpveil.io.refused import Refused

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
    data = held(folder / ABOUT)
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


def held(path: Path) -> bytes:
    """Return the contents of a file of a run; raises `DataError` if it cannot be read."""
    try:
        return received(path, MOST_BYTES)
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

    `took` are the rows of times.csv, which are part of the report, and of no other table.
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
