"""Sending an image part by part, so that none has to be in memory as a whole."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Final

from starlette.responses import Response
from starlette.types import Message, Receive, Scope, Send

CHUNK: Final = 1 << 20
"""Bytes of an image that are sent at a time."""
NONE: Final[Mapping[str, str]] = {}


class Download(Response):
    """Sends the parts of `size` bytes together, and calls `taken` once the client took all of them.

    It stops where the client is gone: one that does not read is cut off.
    """

    def __init__(
        self,
        size: int,
        parts: AsyncIterator[bytes],
        taken: Callable[[], object],
        media_type: str,
        status: int = 200,
        headers: Mapping[str, str] = NONE,
    ) -> None:
        super().__init__(None, status, {**headers, "content-length": str(size)}, media_type)
        self.parts, self.taken = parts, taken

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send it."""
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        async for part in self.parts:
            await send({"type": "http.response.body", "body": part, "more_body": True})
            if (_at_once(receive()) or {}).get("type") == "http.disconnect":
                return
        self.taken()
        await send({"type": "http.response.body", "body": b"", "more_body": False})


def _at_once(message: Awaitable[Message]) -> Message | None:
    """Return a message that is there, else None; none is waited for, as by a timeout, which costs more."""
    steps = message.__await__()
    try:
        next(steps)
    except StopIteration as done:
        told: Message = done.value
        return told
    steps.close()
    return None
