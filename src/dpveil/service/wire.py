"""Messages between the server and its workers: JSON and bytes, never pickles.

A worker decodes files from strangers, so the server trusts nothing that it sends: a pickle could run code.
"""

from __future__ import annotations

import asyncio
import fcntl
import json
import math
import os
import struct
from contextlib import suppress
from typing import IO, Any, Final

LENGTHS: Final = struct.Struct(">IQ")
"""The lengths of the JSON and of the bytes that follow it."""
SMALL: Final = 1 << 20
"""Bytes below which a message is sent at one go."""
MOST_JSON: Final = 1 << 20
"""Most bytes of JSON in a message: nobody else is served while it is parsed. What is long are bytes."""
MOST_NOTES: Final = 1 << 16
"""Most bytes of a release's notes as JSON."""
MOST_BYTES: Final = 1 << 33
"""Most other bytes in a message that a worker accepts; the server states its own limit."""

_encoded: Final = json.JSONEncoder(allow_nan=False).encode


def _finite(text: str) -> float:
    """Return a number of a message; raises `ValueError` for one that JSON cannot state again."""
    if not math.isfinite(number := float(text)):
        raise ValueError("the message has a number that is not finite")
    return number


_decoded: Final = json.JSONDecoder(parse_float=_finite, parse_constant=_finite).decode

Message = tuple[dict[str, Any], bytes]
"""A JSON object, and the bytes that go with it: a photo, or a release."""


def packed(told: dict[str, Any], contents: bytes = b"") -> tuple[bytes, bytes]:
    """Return what is written for a message: its head, and its contents unchanged."""
    text = _encoded(told).encode()
    return LENGTHS.pack(len(text), len(contents)) + text, contents


def write(stream: IO[bytes], told: dict[str, Any], contents: bytes = b"", *, flush: bool = True) -> None:
    """Write a message to a pipe; without `flush`, with the next one."""
    for part in packed(told, contents):
        stream.write(part)
    if flush:
        stream.flush()


def widen(pipe: int) -> None:
    """Let a pipe hold a small photo or release as a whole, where the system can: fewer turns for each."""
    with suppress(OSError, AttributeError):
        fcntl.fcntl(pipe, fcntl.F_SETPIPE_SZ, SMALL)


def read(stream: IO[bytes]) -> Message | None:
    """Return the next message of a pipe; None at its end. Raises `ValueError` for a malformed one."""
    head = stream.read(LENGTHS.size)
    if len(head) < LENGTHS.size:
        return None
    text, contents = _lengths(head, MOST_BYTES)
    return _told(stream.read(text)), stream.read(contents)


class Answers:
    """The end of a pipe at which the server hears a worker. It does not block; one task reads at a time."""

    def __init__(self, pipe: int) -> None:
        os.set_blocking(pipe, False)
        self._pipe: int | None = pipe
        self._waits: asyncio.Future[None] | None = None

    @property
    def silent(self) -> bool:
        """Whether there is nothing to read: neither a message nor the end. Else what is there may be lost."""
        if self._pipe is None:
            return False
        try:
            os.read(self._pipe, 1)
        except BlockingIOError:
            return True
        return False

    async def receive(self, most: int, seconds: float) -> Message:
        """Return the next message, with at most `most` bytes of contents.

        Raises `EOFError` if the worker has ended, `ValueError` for what is no message, and `TimeoutError` if
        it is not there as a whole after so many seconds.
        """
        end = asyncio.get_running_loop().time() + seconds
        text, contents = _lengths(await self._exactly(LENGTHS.size, end), most)
        return _told(await self._exactly(text, end)), await self._exactly(contents, end)

    async def _exactly(self, size: int, end: float) -> bytes:
        """Return so many bytes, in memory as they arrive; a small image mostly does at one go."""
        parts: list[bytes] = []
        while size:
            if self._pipe is None:
                raise EOFError
            with suppress(BlockingIOError):
                parts.append(part := os.read(self._pipe, min(size, SMALL)))
                if not part:
                    raise EOFError
                size -= len(part)
            if size:
                await self._arrived(self._pipe, end)
        return parts[0] if len(parts) == 1 else b"".join(parts)

    async def _arrived(self, pipe: int, end: float) -> None:
        """Wait until there is more, or no more to come; raises `TimeoutError` after the time `end`."""
        loop = asyncio.get_running_loop()
        self._waits = loop.create_future()
        loop.add_reader(pipe, self._wake)
        late = loop.call_at(end, self._wake)
        try:
            await self._waits
        finally:
            late.cancel()
            self._wake()
            self._waits = None
        if loop.time() >= end:
            raise TimeoutError

    def _wake(self) -> None:
        if self._waits is not None and self._pipe is not None:
            self._waits.get_loop().remove_reader(self._pipe)
            if not self._waits.done():
                self._waits.set_result(None)

    def close(self) -> None:
        """Read no more; whoever waits hears of the end."""
        self._wake()
        if self._pipe is not None:
            os.close(self._pipe)
            self._pipe = None


def _lengths(head: bytes, most: int) -> tuple[int, int]:
    text, contents = LENGTHS.unpack(head)
    if text > MOST_JSON or contents > most:
        raise ValueError("the message is larger than any that is expected")
    return int(text), int(contents)


def _told(text: bytes) -> dict[str, Any]:
    try:
        told = _decoded(text.decode())
    except RecursionError as error:
        raise ValueError("the message is nested too deeply") from error
    if not isinstance(told, dict):
        raise ValueError("the message is no object")
    return told
