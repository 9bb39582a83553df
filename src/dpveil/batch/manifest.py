"""A manifest: one row for every input of a run. It links releases to their originals: keep it private."""

from __future__ import annotations

import csv
import io
import json
import unicodedata
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from dpveil.batch.report import Entry, Report
from dpveil.batch.task import Task, check_private, within
from dpveil.errors import OutputError, UnknownName, UsageError
from dpveil.io import write_together
from dpveil.io.names import shown

COLUMNS: Final = (
    "status",
    "input",
    "output",
    "certificate",
    "regions",
    "guarantee",
    "strength",
    "warnings",
    "error",
    "hint",
)
FORMATS: Final = (".csv", ".jsonl")
STARTS: Final = {".csv": ",".join(COLUMNS).encode(), ".jsonl": b'{"status": '}
"""First bytes of a manifest; an existing file is only replaced without being asked to if it has them."""
FORMULA: Final = ("=", "+", "-", "@")
"""First characters by which a spreadsheet may take a cell for a formula."""


def check_manifest(path: Path, tasks: Sequence[Task], *, replace: bool) -> None:
    """Raise any error that would prevent writing the manifest, before anything is drawn.

    Raises `UnknownName` for another suffix; `UsageError` if the path is an input or an output of the run, or
    beside numbered releases, whose names it would reveal; and `OutputError` if the folder is missing or not
    writable, or without `replace` if the path exists and is not a manifest.
    """
    if path.suffix.lower() not in FORMATS:
        raise UnknownName("format of a manifest", path.suffix or shown(path), FORMATS)
    if any(within(path, task) for task in tasks if task.numbered is not None):
        problem = f"the manifest {shown(path)} would lie beside the numbered releases, and tells their names"
        raise UsageError(problem, hint="choose another folder")
    check_private(path, tasks, what="manifest", start=STARTS[path.suffix.lower()], replace=replace)
    if not replace and _earlier(path) is None:
        problem = (
            f"cannot write {shown(path)}: it is a manifest that was changed, and its rows cannot be kept"
        )
        raise OutputError(problem, hint="choose another name")


def write_manifest(report: Report, path: Path) -> None:
    """Write one row for every input, in the order of the run, as CSV or JSON Lines; raises `OutputError`.

    Rows of an earlier run stay, before them, unless they are about an output of this one, or had none and are
    about an input of this one.
    """
    as_csv = path.suffix.lower() == ".csv"
    rows = [
        _cells(entry) if as_csv else {"status": entry.status, **entry.to_json()} for entry in report.entries
    ]
    outputs, inputs = ({row.get(place) for row in rows} for place in ("output", "input"))
    kept = [
        row
        for row in _earlier(path) or ()
        if (row["output"] not in outputs if row.get("output") else row["input"] not in inputs)
    ]
    made = _csv([*kept, *rows]) if as_csv else _json_lines([*kept, *rows])
    write_together([(path, made)], replace=True, private=True)


def _earlier(path: Path) -> list[dict[str, Any]] | None:
    """Return the rows of a manifest; none if there is no such file, and None if it is not one as written."""
    try:
        text = path.read_bytes().decode("utf-8") if path.exists() else ""
        if path.suffix.lower() == ".csv":
            table = csv.DictReader(io.StringIO(text, newline=""), strict=True)
            rows: list[Any] = list(table)
            whole = not text or tuple(table.fieldnames or ()) == COLUMNS
        else:
            rows, whole = [json.loads(line) for line in text.splitlines()], True
    except (OSError, ValueError, csv.Error):
        return None
    as_written = (isinstance(row, dict) and isinstance(row.get("input"), str) for row in rows)
    return rows if whole and all(as_written) and not any(None in row for row in rows) else None


def _json_lines(rows: Sequence[dict[str, Any]]) -> bytes:
    return "".join(json.dumps(row) + "\n" for row in rows).encode("ascii")


def _csv(rows: Sequence[dict[str, Any]]) -> bytes:
    text = io.StringIO()
    table = csv.DictWriter(text, COLUMNS, lineterminator="\n")
    table.writeheader()
    table.writerows(rows)
    return text.getvalue().encode("utf-8", "backslashreplace")


def _cells(entry: Entry) -> dict[str, str]:
    row = {"status": entry.status, **entry.to_json()}
    if entry.promise is not None:
        row["guarantee"] = None if entry.promise.total is None else str(entry.promise.total)
    row["warnings"] = "; ".join(row.get("warnings", ()))
    return {name: _cell(row.get(name)) for name in COLUMNS}


def _cell(value: Any) -> str:
    r"""Return the cell's text in one line, with an apostrophe in front if a spreadsheet could take it for a
    formula.

    Control characters, line ends and those that turn text, as in names of files, are escaped.

    >>> _cell("a\nb.png"), _cell("=1+1")
    ('a\\nb.png', "'=1+1")
    """
    letters = "" if value is None else str(value)
    text = "".join(c.encode("unicode_escape").decode("ascii") if _is_control(c) else c for c in letters)
    return f"'{text}" if text.lstrip(" ").startswith(FORMULA) else text


def _is_control(letter: str) -> bool:
    """Whether a character is none to be seen: a control or format character, or the end of a line."""
    category = unicodedata.category(letter)
    return category[0] == "C" or category in ("Zl", "Zp")
