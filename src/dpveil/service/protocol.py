"""The HTTP protocol with deadlines: a client that dawdles in sending or reading loses its connection."""

from __future__ import annotations

import asyncio
from typing import Any, Final

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from dpveil.service.limits import Limits

LATE: Final = b"HTTP/1.1 408 Request Timeout\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"
GRACE: Final = 5
"""Seconds beyond the limit for a body: the application answers first."""


class Timely(H11Protocol):
    """uvicorn's protocol, which waits for headers and bodies as long as the limits say, and no longer."""

    def __init__(self, limits: Limits, **given: Any) -> None:
        super().__init__(**given)
        self.limits = limits

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to wait for the first request."""
        super().connection_made(transport)
        transport.set_write_buffer_limits(high=0)  # whatever is not taken at once counts as not read
        self._unread: asyncio.TimerHandle | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._phase: Any = None
        self._watch(h11.IDLE)

    def data_received(self, data: bytes) -> None:
        """Take what arrived, and wait for the rest."""
        super().data_received(data)
        self._watch(self.conn.their_state)

    def send_400_response(self, msg: str) -> None:
        """Refuse what is not HTTP, and end the connection; an answer that is under way ends with it."""
        if self.cycle is not None:
            self.cycle.disconnected = True
            self.cycle.message_event.set()
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            super().send_400_response(msg)
        else:
            self.transport.close()

    def on_response_complete(self) -> None:
        """Wait for the next request; while nothing of it arrives, uvicorn's own timer runs."""
        super().on_response_complete()
        if self.conn.their_state is not h11.SEND_BODY:
            self._watch(None)

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop waiting."""
        self._watch(None)
        self._read()
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        """Begin to wait for a client to read."""
        super().pause_writing()
        if self._unread is None:
            self._unread = self.loop.call_later(self.limits.send_seconds, self.transport.abort)

    def resume_writing(self) -> None:
        """Stop waiting: everything was read."""
        self._read()
        super().resume_writing()

    def _read(self) -> None:
        if self._unread is not None:
            self._unread.cancel()
            self._unread = None

    def _watch(self, phase: Any) -> None:
        """Start the clock of a phase that has just begun; one that goes on keeps its clock."""
        if phase is self._phase:
            return
        self._phase = phase
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        waits = {h11.IDLE: self.limits.header_seconds, h11.SEND_BODY: self.limits.body_seconds + GRACE}
        if phase in waits:
            self._timer = self.loop.call_later(waits[phase], self._late)

    def _late(self) -> None:
        if self._phase is h11.IDLE and not self.transport.is_closing():
            self.transport.write(LATE)
            self.transport.close()
        else:
            self.transport.abort()
