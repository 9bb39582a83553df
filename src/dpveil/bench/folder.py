"""The folder of a run: tables, the report, and where they come from."""

from __future__ import annotations

import json
import platform
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import dpveil
from dpveil.bench import beside
from dpveil.bench.cells import Cell, code_digest
from dpveil.bench.report import page
from dpveil.bench.table import COLUMNS, UTILITY, Row, rows, to_csv, utility
from dpveil.bench.times import COLUMNS as COLUMNS_OF_TIMES
from dpveil.core.numbers import Json
from dpveil.errors import OutputError
from dpveil.io import is_present, make_folder, write_together

ABOUT: Final = "run.json"
RESULTS: Final = "results.csv"
MEASURES: Final = "utility.csv"
TIMES: Final = "times.csv"
DOCUMENT: Final = "results.json"
REPORT: Final = "report.html"
FORMAT: Final = "dpveil.run/1"


def begin(folder: Path) -> None:
    """Make the folder of a run, or take up an earlier one's; raises `OutputError` for any other folder."""
    if folder.is_dir() and any(folder.iterdir()) and not is_present(folder / ABOUT):
        raise OutputError(
            f"{folder} holds something else than a run", hint="choose another {out}", arguments={"out": "out"}
        )
    make_folder(folder)
    if not is_present(folder / ABOUT):
        write_together([(folder / ABOUT, _json({"format": FORMAT, "cells": []}))], replace=True)


def finish(
    folder: Path,
    cells: Sequence[Cell],
    command: str,
    notes: Sequence[str],
    took: Sequence[dict[str, str]] = (),
    others: Sequence[Json] = (),
) -> list[Row]:
    """Write the tables and the report of all cells together, and return the rows of results.csv.

    `took` are the rows of times.csv, which are part of the report, and of no other table; `others` the tables
    of other benches, which are shown beside them.
    """
    table, measures = rows(cells), utility(cells)
    about = provenance(cells, command, notes) | ({beside.KEY: list(others)} if others else {})
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
    shown = {beside.KEY: about[beside.KEY]} if beside.KEY in about else {}
    told = {name: value for name, value in about.items() if name != beside.KEY}
    document: dict[str, Any] = {"about": told, "results": results, "utility": list(measures), **shown}
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
        "tool": f"dpveil {dpveil.__version__}",
        "code_sha256": code_digest(),
        "command": command,
        "python": platform.python_version(),
        "libraries": {**libraries},
        "notes": list(notes),
        "cells": [cell.key for cell in cells],
    }


def _text(value: dict[str, Json]) -> str:
    return json.dumps(value, indent=2, sort_keys=True, ensure_ascii=False) + "\n"


def _json(value: dict[str, Json]) -> bytes:
    return _text(value).encode()
