"""Messages between the server and its workers: JSON and bytes, never pickles.

A worker decodes files from strangers, so the server trusts nothing that it sends: a pickle could run code.
"""

from __future__ import annotations

import asyncio
import fcntl
import json
import struct
from contextlib import suppress
from typing import IO, Any, Final

LENGTHS: Final = struct.Struct(">IQ")
"""The lengths of the JSON and of the bytes that follow it."""
SMALL: Final = 1 << 20
"""Bytes below which a message is sent at one go."""
MOST_JSON: Final = 1 << 26
"""Most bytes of JSON in a message; a certificate has up to 2^24."""
MOST_BYTES: Final = 1 << 33
"""Most other bytes in a message that a worker accepts; the server states its own limit."""

Message = tuple[dict[str, Any], bytes]
"""A JSON object, and the bytes that go with it: a photo, or a release."""


def packed(told: dict[str, Any], contents: bytes = b"") -> tuple[bytes, bytes]:
    """Return what is written for a message: its head, and its contents unchanged."""
    text = json.dumps(told, allow_nan=False).encode()
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


async def receive(stream: asyncio.StreamReader, most: int) -> Message:
    """Return the next message of a worker, with at most `most` bytes of contents.

    Raises `EOFError` if the worker has ended, and `ValueError` for what is no message.
    """
    text, contents = _lengths(await stream.readexactly(LENGTHS.size), most)
    return _told(await stream.readexactly(text)), await stream.readexactly(contents)


def _lengths(head: bytes, most: int) -> tuple[int, int]:
    text, contents = LENGTHS.unpack(head)
    if text > MOST_JSON or contents > most:
        raise ValueError("the message is larger than any that is expected")
    return int(text), int(contents)


def _told(text: bytes) -> dict[str, Any]:
    try:
        told = json.loads(text)
    except RecursionError as error:
        raise ValueError("the message is nested too deeply") from error
    if not isinstance(told, dict):
        raise ValueError("the message is no object")
    return told
