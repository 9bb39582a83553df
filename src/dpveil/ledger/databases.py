"""Which database a URL names: an SQLite file, or a PostgreSQL server."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Protocol

from dpveil.ledger import sqlite_files
from dpveil.ledger.sqlite import SQLite
from dpveil.ledger.store import Connection, Read


class Database(Protocol):
    """What a ledger needs of its database."""

    @property
    def files(self) -> tuple[Path, ...]:
        """Files that nothing else in this process may open."""

    def write(self, *, durable: bool, reads: Sequence[Read] = ()) -> AbstractContextManager[Connection]:
        """Run one transaction alone, and commit it at the end; with `durable`, wait until it is flushed.

        `reads` are what it reads before it writes: a server is asked for them at once.
        """

    def together(self) -> AbstractContextManager[None]:
        """Let what this thread writes be durable only at the end, where that saves time."""

    def read(self) -> AbstractContextManager[Connection]:
        """Read in one consistent state."""

    def examine(self, connection: Connection) -> None:
        """Raise `LedgerError` if the database itself is damaged."""

    def close(self) -> None:
        """Close the connection; using it again opens it again."""


def opened(url: str, fill: Callable[[Connection], None] | None) -> tuple[Database, bool]:
    """Return the database of a URL, and whether it was made just now.

    With `fill`, which writes the first rows, a missing ledger is made. Raises `UsageError` for other URLs,
    and `LedgerError`.
    """
    if url.lower().startswith(("postgresql:", "postgres:")):
        from dpveil.ledger.postgres import PostgreSQL

        server = PostgreSQL(url, fill)
        return server, server.created
    path = sqlite_files.path_of(url)
    made = fill is not None and sqlite_files.create(path, fill)
    return SQLite(path), made
