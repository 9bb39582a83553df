"""Sending an image part by part, so that none has to be in memory as a whole."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from typing import Final

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

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
        request = Request(scope, receive)
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        async for part in self.parts:
            await send({"type": "http.response.body", "body": part, "more_body": True})
            if await request.is_disconnected():
                return
        self.taken()
        await send({"type": "http.response.body", "body": b"", "more_body": False})
