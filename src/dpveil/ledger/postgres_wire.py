"""Several statements to a PostgreSQL server in one message, by libpq's pipeline mode.

psycopg's own pipelines send each statement by itself, which wakes the server each time; a debit then takes
longer for waking than for work. Here what belongs together is sent together.
"""

from __future__ import annotations

import selectors
from collections.abc import Sequence
from typing import Any, Final

SELECTOR: Final = getattr(selectors, "PollSelector", selectors.SelectSelector)
PATIENCE: Final = 90.0
"""Seconds without a byte from the server, whose own limits of 30 and 60 s come before."""
Values = Sequence[str | int | None]
Statement = tuple[str, Values]
"""A statement with parameters $1, $2 and so on, and their values."""


class Wire:
    """A connection of psycopg, to which groups of statements are sent at once.

    After an error it is not `usable`, and can only be closed.
    """

    def __init__(self, psycopg: Any, connection: Any) -> None:
        self._psycopg, self._raw = psycopg, connection.pgconn
        self._names: dict[str, bytes] = {}
        self._expected: list[list[bool]] = []
        self.connection = connection

    @property
    def usable(self) -> bool:
        """Whether it is open, and outside of a transaction."""
        kinds, raw = self._psycopg.pq, self._raw
        return bool(
            raw.status == kinds.ConnStatus.OK
            and raw.pipeline_status == kinds.PipelineStatus.OFF
            and raw.transaction_status == kinds.TransactionStatus.IDLE
        )

    def undo(self) -> None:
        """End a transaction without committing it; psycopg would also forget what the server has prepared.

        Within a pipeline, which an error left behind, nothing can be sent: the connection is closed then.
        """
        if self._raw.pipeline_status == self._psycopg.pq.PipelineStatus.OFF:
            self._raw.exec_(b"ROLLBACK")

    def ask(self, *statements: Statement) -> list[bytes | None]:
        """Send statements, and return what `receive` does."""
        self.send(statements)
        return self.receive()

    def send(self, *groups: Sequence[Statement]) -> None:
        """Send groups of statements: if one fails, the server skips the rest of its group.

        Outside of a transaction, each group is one.
        """
        self._raw.enter_pipeline_mode()
        for group in groups:
            self._expected.append([each for sql, values in group for each in self._put(sql, values)])
            self._raw.pipeline_sync()
        while self._raw.flush():
            self._wait(selectors.EVENT_READ | selectors.EVENT_WRITE)
            self._raw.consume_input()

    def receive(self) -> list[bytes | None]:
        """Return the first value of every statement that was sent, or None; raises the first error."""
        found, kinds = [], self._psycopg.pq.ExecStatus
        for group in self._expected:
            for answers in group:
                result = self._next((kinds.COMMAND_OK, kinds.TUPLES_OK))
                if answers:
                    found.append(result.get_value(0, 0) if result.ntuples else None)
                self._read()  # libpq ends each statement with nothing
            self._next((kinds.PIPELINE_SYNC,))
        self._expected.clear()
        self._raw.exit_pipeline_mode()
        return found

    def _put(self, sql: str, values: Values) -> list[bool]:
        """Put a statement into the message; return, for each of its results, whether it is an answer."""
        given = [None if value is None else str(value).encode() for value in values]
        if any(value is not None and 0 in value for value in given):
            raise self._psycopg.DataError("no text may contain a zero")
        new = sql not in self._names
        if new:
            self._names[sql] = f"dpveil_{len(self._names)}".encode()
            self._raw.send_prepare(self._names[sql], sql.encode())
        self._raw.send_query_prepared(self._names[sql], given)
        return [False, True] if new else [True]

    def _next(self, wanted: tuple[Any, ...]) -> Any:
        """Return the next result; raises the error of the server unless it is as wanted."""
        result, psycopg = self._read(), self._psycopg
        if result is not None and result.status in wanted:
            if result.command_status == b"ROLLBACK":  # which is how a COMMIT ends after an error
                raise psycopg.OperationalError("the server did not commit")
            return result
        code = result and result.error_field(psycopg.pq.DiagnosticField.SQLSTATE)
        text = self._raw.get_error_message() if result is None else result.get_error_message()
        kinds = psycopg.errors
        raise (kinds.lookup(code.decode()) if code else psycopg.OperationalError)(text)

    def _read(self) -> Any:
        while self._raw.is_busy():
            self._wait(selectors.EVENT_READ)
            self._raw.consume_input()
        return self._raw.get_result()

    def _wait(self, events: int) -> None:
        with SELECTOR() as selector:
            selector.register(self._raw.socket, events)
            if not selector.select(PATIENCE):
                raise self._psycopg.OperationalError("the server does not answer")
