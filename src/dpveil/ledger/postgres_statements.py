"""Statements of a ledger as PostgreSQL takes them: what is read in one message, and what is written in another.

Each message and its answer take a while during which nobody else can write. So everything that a transaction
is going to read is asked for in one statement, and what it writes is sent with its COMMIT. The server itself
refuses a statement that writes another number of rows than it should, and with it the whole transaction.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any, Final

from dpveil.ledger.store import SQL, Read, Rows

ONE_ROW: Final = ("append", "new_subject", "set_subject", "reserve")
"""Statements that write one row each."""
OTHERS: Final = ("free", "expire", "replace")
"""Statements that remove any number of rows."""


def translated(sql: str, end: str = "") -> str:
    """Return a statement with parameters as psycopg writes them, whose names get an `end`.

    >>> translated("SELECT 1 WHERE (a, b) = (:a, :b)", "_2")
    'SELECT 1 WHERE (a, b) = (%(a_2)s, %(b_2)s)'
    """
    words = (
        f"%({word[1:].rstrip(',)')}{end})s{word[len(word.rstrip(',)')) :]}" if word.startswith(":") else word
        for word in sql.replace("(:", "( :").split(" ")
    )
    return " ".join(words).replace("( %", "(%")


def _counted(sql: str) -> str:
    """Return a statement that fails on the server, by a division by zero, unless it writes one row."""
    return f"WITH written AS ({sql} RETURNING 1) SELECT 1 / (count(*) = 1)::int FROM written"


READING: Final = {sql: translated(sql) for sql in SQL.values() if sql.startswith("SELECT")}
WRITING: Final = {SQL[name]: _counted(translated(SQL[name])) for name in ONE_ROW} | {
    SQL[name]: translated(SQL[name]) for name in OTHERS
}


class Answer:
    """Rows that were read, or of which the server makes sure that one is written: see `Rows`."""

    def __init__(self, rows: Sequence[Any] = ()) -> None:
        self._rows = list(rows)
        self.rowcount = 1

    def fetchone(self) -> Any:
        """Return the next row, or None."""
        return self._rows.pop(0) if self._rows else None

    def fetchmany(self, size: int, /) -> list[Any]:
        """Return up to `size` rows."""
        found, self._rows = self._rows[:size], self._rows[size:]
        return found

    def fetchall(self) -> list[Any]:
        """Return all rows."""
        return self.fetchmany(len(self._rows))


class Statements:
    """A connection, inside a transaction, that takes the statements of `store.SQL`.

    What it is given to write waits for `send`; `appended` are the values of the entry that was written last.
    """

    def __init__(self, opened: Any) -> None:
        self._opened = opened
        self._read: dict[Any, list[Any]] = {}
        self._waiting: list[tuple[str, Any]] = []
        self.appended: dict[str, Any] = {"number": 0, "head": ""}

    def ready(self, reads: Sequence[Read], found: Sequence[Any]) -> None:
        """Take the rows of `reads`, in the form that `together` has them."""
        for (name, values), rows in zip(reads, found, strict=True):
            self._read[_key(SQL[name], values)] = [tuple(row.values()) for row in rows or ()]

    def execute(self, sql: str, parameters: Any = None, /) -> Rows:
        """Run one statement, or let it wait if it is one that writes."""
        if sql in WRITING:
            self._waiting.append((WRITING[sql], parameters))
            self._read.clear()  # it may be about to change
            self.appended = parameters if sql == SQL["append"] else self.appended
            return Answer()
        if (known := self._read.get(_key(sql, parameters))) is not None:
            return Answer(known)
        self.send()
        found: Rows = self._opened.execute(READING.get(sql, sql), parameters)
        return found

    def send(self) -> None:
        """Send what waits to be written."""
        waiting, self._waiting = self._waiting, []
        for sql, parameters in waiting:
            self._opened.execute(sql, parameters)


def together(reads: Sequence[Read]) -> tuple[str, dict[str, Any]]:
    """Return the columns of one SELECT that reads them all, each as a JSON array of its rows, and its values.

    >>> together([("of_unit", {"unit": "u"})])[1]
    {'unit_0': 'u'}
    """
    values = {f"{key}_{n}": value for n, (_, given) in enumerate(reads) for key, value in given.items()}
    return "".join(f", {_column(name, number)}" for number, (name, _) in enumerate(reads)), values


@cache
def _column(name: str, number: int) -> str:
    return f"(SELECT json_agg(r) FROM ({translated(SQL[name], f'_{number}')}) r)"


def _key(sql: str, parameters: Any) -> Any:
    return sql, tuple(sorted((parameters or {}).items()))
