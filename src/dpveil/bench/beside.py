"""Scores of other benches, shown beside a run and never computed here: tables that hifd writes as CSV."""

from __future__ import annotations

import csv
import hashlib
import html
import io
import math
import re
from collections.abc import Mapping, Sequence
from itertools import dropwhile
from pathlib import Path
from typing import Any, Final

from dpveil.core.numbers import Json
from dpveil.errors import UsageError
from dpveil.io import received
from dpveil.io.refused import Refused

KEY: Final = "beside"
"""What run.json and results.json call the tables."""
COMPUTED: Final = "not computed here"
METHOD: Final = "method"
LEVELS: Final = ("P", "Q", "U1", "U2", "U3")
"""Columns of hifd's tables, of which one at least is there: privacy, quality, and utility at three levels."""
MOST_BYTES: Final = 1 << 20
MOST_TABLES, MOST_ROWS, MOST_COLUMNS = 10, 100, 32
"""Most files, and most methods and columns of each."""
MOST_NAME: Final = 255
"""Longest name of a file, in characters."""
NAME: Final = re.compile(r"[^\W_][\w .()+,:=%/-]{0,63}")
"""A method: it starts with a letter or a digit, so that no spreadsheet takes it for a formula."""
COLUMN: Final = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,31}")
NUMBER: Final = re.compile(r"-?[0-9]{1,32}(\.[0-9]{1,32})?([eE][-+]?[0-9]{1,3})?")
PACKAGE: Final = re.compile(r"# Package: (hifd==[0-9A-Za-z.+]{1,32})")
HASH: Final = re.compile(r"[0-9a-f]{64}")
HINT: Final = "give composite.csv or method_level.csv of hifd"


def read_all(paths: Sequence[Path]) -> list[Json]:
    """Return the tables of files; raises `UsageError` for too many, and for those that are no such tables.

    Source: infraface/hifd 0.x, `tables/composite.csv` and `per_method/method_level.csv`.
    """
    if len(paths) > MOST_TABLES:
        raise UsageError(f"{len(paths)} tables are more than {MOST_TABLES}", hint="give fewer")
    return [_read(path) for path in paths]


def _read(path: Path) -> Json:
    if not path.name.isprintable():
        raise UsageError(f"{path.name!a} is a name that cannot be shown", hint="rename the file")
    try:
        data = received(path, MOST_BYTES)
        table = _parsed(data.decode("utf-8-sig"))
        table |= {"file": path.name, "sha256": hashlib.sha256(data).hexdigest()}
        return tables_of([table])[0]
    except Refused as error:
        raise UsageError(f"{path} {error.problem}", hint=HINT) from error
    except UnicodeDecodeError as error:
        raise UsageError(f"{path} is not UTF-8", hint=HINT) from error
    except (ValueError, csv.Error) as error:
        raise UsageError(f"{path} is no table of scores: {error}", hint=HINT) from error


def _parsed(text: str) -> dict[str, Any]:
    """Return what a CSV file says; raises `ValueError` and `csv.Error`."""
    lines = list(io.StringIO(text, newline=""))
    body = list(dropwhile(lambda line: line.startswith("#"), lines))
    comments = lines[: len(lines) - len(body)]
    rows = [row for row in csv.reader(body, strict=True) if row]
    head, *rest = rows or [[]]
    if head[:1] != [METHOD]:
        raise ValueError("its first column is not method")
    if any(len(row) != len(head) for row in rest):
        raise ValueError("its rows have other lengths than its header")
    made = [{METHOD: row[0], **_numbers(head[1:], row[1:])} for row in rest]
    package = next((found[1] for found in map(PACKAGE.fullmatch, map(str.strip, comments)) if found), "")
    return {"package": package, "columns": head[1:], "rows": made, "computed": COMPUTED}


def _numbers(names: Sequence[str], texts: Sequence[str]) -> dict[str, float | None]:
    if not all(text == "" or NUMBER.fullmatch(text) for text in texts):
        raise ValueError("a score is not a number")
    return {name: float(text) if text else None for name, text in zip(names, texts, strict=True)}


def tables_of(value: Any) -> list[Json]:
    """Return the tables that a file says are shown beside a run; raises `ValueError` for anything else.

    Counts and lengths are bounded, methods and columns have plain names, and scores are finite or missing.
    """
    if not isinstance(value, list) or len(value) > MOST_TABLES:
        raise ValueError(f"it has not at most {MOST_TABLES} tables")
    for one in value:
        _check(one)
    return value


def _check(table: Any) -> None:
    if not isinstance(table, dict) or set(table) != {
        "file",
        "sha256",
        "package",
        "columns",
        "rows",
        "computed",
    }:
        raise ValueError("a table says too little or too much")
    columns, rows = table["columns"], table["rows"]
    if not _fits(table["file"], None) or not _fits(table["sha256"], HASH) or table["computed"] != COMPUTED:
        raise ValueError("it does not say where it is from")
    if table["package"] != "" and not _fits(f"# Package: {table['package']}", PACKAGE):
        raise ValueError("it does not say what made it")
    if not isinstance(columns, list) or not all(_fits(name, COLUMN) for name in columns):
        raise ValueError("a column is no plain name")
    if (
        not set(LEVELS) & set(columns)
        or METHOD in columns
        or not len(set(columns)) == len(columns) <= MOST_COLUMNS
    ):
        raise ValueError(
            f"it has not one of {', '.join(LEVELS)} and at most {MOST_COLUMNS} columns, each once"
        )
    if not isinstance(rows, list) or not 1 <= len(rows) <= MOST_ROWS:
        raise ValueError(f"it has not 1 to {MOST_ROWS} methods")
    for row in rows:
        _check_row(row, columns)
    if len({row[METHOD] for row in rows}) < len(rows):
        raise ValueError("it has a method twice")


def _check_row(row: Any, columns: Sequence[str]) -> None:
    if not isinstance(row, dict) or set(row) != {METHOD, *columns}:
        raise ValueError("a row has other columns")
    if not _fits(row[METHOD], NAME):
        raise ValueError("a method is no plain name of at most 64 characters")
    if not all(row[name] is None or _is_finite(row[name]) for name in columns):
        raise ValueError("a score is not finite")


def _is_finite(value: Any) -> bool:
    return type(value) is float and math.isfinite(value)


def _fits(text: Any, pattern: re.Pattern[str] | None) -> bool:
    if type(text) is not str or len(text) > MOST_NAME:
        return False
    return text.isprintable() if pattern is None else bool(pattern.fullmatch(text))


def section(about: Mapping[str, Json]) -> str:
    """Return the part of the report about tables of other benches, as HTML; empty without any."""
    given: Any = about.get(KEY, [])
    if not given:
        return ""
    words = (
        "Rows of other benches, as their files say: not computed here, and not checked. They are agreements"
        " of estimators on photos and releases (P privacy, Q quality, U1 to U3 utility, by hifd), with"
        " whatever photos and methods others took. They say nothing of attackers who know the method, are no"
        " guarantees, and take no part in any ranking or bound above."
    )
    return f"<h2>Scores of other benches</h2><p>{words}</p>{''.join(map(_table, given))}"


def _table(table: Mapping[str, Any]) -> str:
    columns = table["columns"]
    head = "".join(f"<th class=n>{html.escape(name)}</th>" for name in columns)
    lines = []
    for row in table["rows"]:
        cells = "".join(f"<td class=n>{_short(row[name])}</td>" for name in columns)
        told = f"{html.escape(row[METHOD])}<br><span class=small>{COMPUTED}</span>"
        lines.append(f"<tr><td>{told}</td>{cells}</tr>")
    by = f"{table['package']}, " if table["package"] else ""
    source = html.escape(f"{table['file']} ({by}SHA-256 {table['sha256'][:12]}…)")
    return (
        f"<p class=small>{source}</p><div class=scroll><table><tr><th>method</th>{head}</tr>"
        f"{''.join(lines)}</table></div>"
    )


def _short(value: float | None) -> str:
    return "" if value is None else f"{value:.4g}"
