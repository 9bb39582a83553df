"""One column of a CSV file as text. Column names are public, everything else is private."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Final

from dpveil.errors import DataError, InvalidParameter, nearest

DELIMITERS: Final = ";\t|,"
"""Delimiters that are suggested when a header has only one column."""


def column(path: Path | str, name: str, *, delimiter: str = ",") -> list[str]:
    """Return the texts of one column of a UTF-8 CSV file, one per row under the header line.

    Empty lines are skipped, except in a table with one column, where they are missing values. Raises
    `DataError` if the file cannot be read or contains no table, and `InvalidParameter` for a name that is not
    in its header and for a bad delimiter.
    """
    if len(delimiter) != 1 or delimiter in '"\r\n':
        raise InvalidParameter("delimiter", delimiter, "is not one character", hint="such as , or ;")
    file = " ".join(str(path).split())
    try:
        with Path(path).open(encoding="utf-8-sig", newline="") as text:
            lines = list(csv.reader(text, delimiter=delimiter, strict=True))
    except OSError as error:
        raise DataError(f"{file} cannot be read: {error.strerror or 'no file'}") from None
    except UnicodeDecodeError:
        raise DataError(f"{file} is not text in UTF-8", hint="save it as CSV in UTF-8") from None
    except csv.Error as error:
        raise DataError(f"{file} is not a CSV table", private=f"{file}: {error}") from None
    header = [title.strip() for title in lines[0]] if lines else []
    if not any(header):
        raise DataError(f"{file} has no header line", hint="the first line names the columns")
    place = _place(header, name)
    rows = [line for line in lines[1:] if line or len(header) == 1]
    if not rows:
        raise DataError(f"{file} has no rows under its header")
    for number, row in enumerate(rows, 1):
        if len(row) != len(header) and row:
            raise DataError(
                f"{file} is not a table: not every row has as many cells as the header, {len(header)}",
                hint="quote cells that hold the delimiter, or give {delimiter}",
                arguments={"delimiter": "delimiter="},
                private=f"{file}: row {number} under the header has {_cells(row)}",
            )
    return [row[place].strip() if row else "" for row in rows]


def _cells(row: list[str]) -> str:
    return f"{len(row)} cell{'s' * (len(row) > 1)}"


def _place(header: list[str], name: str) -> int:
    found = [place for place, title in enumerate(header) if title == name.strip()]
    if len(found) == 1:
        return found[0]
    if found:
        raise InvalidParameter("column", name, "is the name of several columns", hint="rename them")
    other = next((mark for mark in DELIMITERS if len(header) == 1 and mark in header[0]), None)
    if other is not None:
        hint = f"its header is one column, {header[0]!r}: give {{delimiter}} {other!r}"
        arguments = {"delimiter": "delimiter ="}
        raise InvalidParameter("column", name, "is not in the table", hint=hint, arguments=arguments)
    near = nearest(name, header)
    hint = f"did you mean {near!r}? " if near else ""
    raise InvalidParameter("column", name, "is not in the table", hint=f"{hint}it has {', '.join(header)}")
