"""Statements of a ledger as PostgreSQL takes them: one message reads, and another one writes.

Each message and its answer take a while during which nobody else can write. So everything that a transaction
is going to read is asked for in one statement, and what it writes is sent with its COMMIT. The server itself
refuses a statement that writes another number of rows than it should, and with it the whole transaction.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, Final

from dpveil.ledger.postgres_wire import Statement, Values, Wire
from dpveil.ledger.store import SQL, Read, Rows

PARAMETER: Final = re.compile(r":([a-z0-9]+)")
ONE_ROW: Final = frozenset(SQL[name] for name in ("append", "new_subject", "set_subject", "reserve"))
"""Statements that write one row each."""
WRITING: Final = ONE_ROW | {SQL[name] for name in ("free", "expire", "replace")}


@cache
def numbered(sql: str, first: int = 1) -> tuple[str, tuple[str, ...]]:
    """Return a statement with parameters as the server writes them, from $`first`, and their names.

    >>> numbered("SELECT 1 WHERE (a, b) = (:a, :b)")
    ('SELECT 1 WHERE (a, b) = ($1, $2)', ('a', 'b'))
    """
    names: list[str] = []

    def number(found: re.Match[str]) -> str:
        names.append(found[1])
        return f"${first + len(names) - 1}"

    return PARAMETER.sub(number, sql), tuple(names)


@cache
def written(sql: str) -> tuple[str, tuple[str, ...]]:
    """Return a statement that writes, which the server fails by a division by zero if one row is not one."""
    text, names = numbered(sql)
    if sql not in ONE_ROW:
        return text, names
    return f"WITH w AS ({text} RETURNING 1) SELECT 1 / (count(*) = 1)::int FROM w", names  # noqa: S608  ours


@cache
def together(names: tuple[str, ...]) -> tuple[str, tuple[str, ...]]:
    """Return columns, each with the rows of one of these statements as JSON, and all their parameters.

    >>> together(("last", "of_unit"))[1]
    ('unit',)
    """
    columns: list[str] = []
    parameters: list[str] = []
    for name in names:
        text, its = numbered(SQL[name], 1 + len(parameters))
        columns.append(f"(SELECT json_agg(r) FROM ({text}) r)")  # noqa: S608  it is ours
        parameters += its
    return ", ".join(columns), tuple(parameters)


@cache
def looked_up(sql: str) -> str:
    """Return a statement that reads with parameters as psycopg writes them.

    >>> looked_up("SELECT 1 WHERE a = :a")
    'SELECT 1 WHERE a = %(a)s'
    """
    return PARAMETER.sub(r"%(\1)s", sql)


def asked(columns: Sequence[str], reads: Sequence[Read]) -> Statement:
    """Return the statement for these columns and everything that is read, in one JSON array."""
    more, _ = together(tuple(name for name, _ in reads))
    values = [given[each] for name, given in reads for each in numbered(SQL[name])[1]]
    return f"SELECT json_build_array({', '.join([*columns, more] if more else columns)})", values


class Answer:
    """Rows that were read, or of which the server makes sure that one is written: see `Rows`."""

    rowcount = 1

    def __init__(self, rows: Sequence[Any] = ()) -> None:
        self._rows = list(rows)

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

    What it is given to write is kept in `waiting`; `appended` are the values of the last entry among it.
    """

    def __init__(self, wire: Wire, reads: Sequence[Read] = (), found: Sequence[Any] = ()) -> None:
        self._wire = wire
        self._read = {
            _key(SQL[name], given): [tuple(row.values()) for row in rows or ()]
            for (name, given), rows in zip(reads, found, strict=True)
        }
        self.waiting: list[Statement] = []
        self.appended: Mapping[str, Any] = {"number": 0, "head": ""}

    def execute(self, sql: str, parameters: Any = None, /) -> Rows:
        """Run one statement, or let it wait if it is one that writes."""
        if sql in WRITING:
            text, names = written(sql)
            self.waiting.append((text, [parameters[name] for name in names]))
            self._read.clear()  # it may be about to change
            self.appended = parameters if sql == SQL["append"] else self.appended
            return Answer()
        if (known := self._read.get(_key(sql, parameters))) is not None:
            return Answer(known)
        self.send()
        found: Rows = self._wire.connection.execute(looked_up(sql), parameters)
        return found

    def send(self) -> None:
        """Send what waits to be written."""
        if self.waiting:
            waiting, self.waiting = self.waiting, []
            self._wire.ask(*waiting)


def _key(sql: str, parameters: Any) -> tuple[str, Values]:
    return sql, tuple((parameters or {}).values())


def parsed(answer: bytes | None) -> list[Any]:
    """Return the values of the JSON array of `asked`."""
    return list(json.loads(answer or b"[]"))
