"""A query about a column before anything is drawn, and its result."""

from __future__ import annotations

import csv
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Final

from dpveil.core.guarantee import Guarantee, Scope, counted
from dpveil.core.numbers import Json, to_json
from dpveil.errors import DataError, InvalidParameter, nearest
from dpveil.mechanisms.scalar import ScalarMechanism
from dpveil.noise.bits import SECURE, BitSource, SecureBits, check_bits, kind_of
from dpveil.numbers.expected import answers_of, utility

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


WHOLE: Final = ("count", "histogram")
"""Queries whose true answers are whole numbers."""
SEEDED = "NOT FOR PUBLICATION: the bits follow from a seed, so whoever knows it can take the noise off"


@dataclass(frozen=True)
class Answer:
    """The private answer to one query about a column of `rows` records: a number, or one per bin.

    `guarantee` covers the whole `response`, `mechanism` drew each number, `edges` are the public bins of a
    histogram, and `bits` is the kind of bit source.
    """

    query: str
    response: float | tuple[float, ...]
    rows: int
    guarantee: Guarantee
    mechanism: ScalarMechanism
    bits: str
    edges: tuple[Fraction, ...] | None = None

    def __repr__(self) -> str:
        """Return the response and its guarantee in one line."""
        return f"Answer({self.query}, {self.response}, {self.guarantee})"

    @property
    def expected_error(self) -> float:
        """The expected absolute error of each number, in its units: an average over the public range."""
        asked = answers_of(self.mechanism.range, self.mechanism.sensitivity, whole=self.query in WHOLE)
        return utility(self.mechanism, asked, remapping=False).mean

    @property
    def warnings(self) -> tuple[str, ...]:
        """Reasons not to publish it."""
        return () if self.bits == SECURE else (SEEDED,)

    def to_json(self) -> dict[str, Json]:
        """Return the JSON object; only the response depends on the data."""
        shown: Json = list(self.response) if isinstance(self.response, tuple) else self.response
        named = "responses" if isinstance(self.response, tuple) else "response"
        edges: dict[str, Json] = {} if self.edges is None else {"edges": [to_json(e) for e in self.edges]}
        return {
            "query": self.query,
            **edges,
            named: shown,
            "rows": self.rows,
            "guarantee": self.guarantee.to_json(),
            "mechanism": self.mechanism.name,
            "expected_error": self.expected_error,
            "parameters": self.mechanism.parameters(),
            "bits": self.bits,
            "warnings": list(self.warnings),
        }


@dataclass(frozen=True)
class Plan:
    """One query about a column of `rows` records; `mechanism` draws each of the true `answers` independently.

    The answers are private and exact; everything else is public and the same for every column of that length.
    `guarantee` covers all answers together, and `edges` are the bins of a histogram.
    """

    query: str
    answers: tuple[Fraction, ...]
    rows: int
    guarantee: Guarantee
    mechanism: ScalarMechanism
    edges: tuple[Fraction, ...] | None = None

    def __repr__(self) -> str:
        """Return the guarantee but no answer, as representations end up in logs."""
        return f"Plan({self.query} of {counted(self.rows, 'row')}, {self.mechanism.name}, {self.guarantee})"

    def release(self, bits: BitSource | None = None) -> Answer:
        """Draw every response; each call draws anew and costs the full guarantee again.

        `bits=None` uses a fresh `SecureBits`. Raises `InvalidParameter` if `bits` is not a bit source.
        """
        source = SecureBits() if bits is None else check_bits(bits)
        response: float | tuple[float, ...]
        if self.edges is None:
            response = float(self.mechanism.release(self.answers[0], source))
        else:
            response = tuple(float(found) for found in self.mechanism.release(list(self.answers), source))
        return Answer(
            self.query, response, self.rows, self.guarantee, self.mechanism, kind_of(source), self.edges
        )


def about(guarantee: Guarantee, covers: str, clear: tuple[str, ...]) -> Guarantee:
    """Return a mechanism's guarantee with the scope of the query that it was used for."""
    kept = tuple(words for words in guarantee.scope.in_the_clear if words not in clear)
    return replace(guarantee, scope=Scope(covers, (*clear, *kept)))
