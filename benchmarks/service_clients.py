"""Clients of a service that cost little: one process, one thread, sockets that are kept open.

They send bytes that were made before, get release and certificate in one answer, and parse nothing of it but
its status and length. What they cost is told, as they run on the cores of the service that they measure.
"""

from __future__ import annotations

import re
import selectors
import socket
import time
from dataclasses import dataclass, field
from typing import Final

LENGTH: Final = re.compile(rb"content-length: ([0-9]+)\r\n", re.IGNORECASE)
ROOM: Final = 1 << 20


@dataclass
class Counted:
    """What clients saw: seconds for each release, answers that were none, and their processor seconds.

    `rate` is the releases a second between the first and the last one: neither the start nor what is under
    way at the end counts.
    """

    seconds: list[float] = field(default_factory=list)
    ends: list[float] = field(default_factory=list)
    other: dict[int, int] = field(default_factory=dict)
    spent: float = 0.0

    @property
    def rate(self) -> float:
        return (len(self.ends) - 1) / (self.ends[-1] - self.ends[0])


class Client:
    """One connection: posts a photo, gets its release, and begins again."""

    def __init__(self, port: int, sent: bytes) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.socket.setblocking(False)
        self._post, self._rest = memoryview(sent), memoryview(b"")
        self._answer, self._got, self._whole = bytearray(ROOM), 0, 0
        self.begun = 0.0

    def begin(self) -> None:
        """Post the photo."""
        self.begun = time.perf_counter()
        self._rest, self._got, self._whole = self._post, 0, 0
        self.write()

    def write(self) -> None:
        """Send what the socket takes."""
        try:
            while self._rest:
                self._rest = self._rest[self.socket.send(self._rest) :]
        except BlockingIOError:
            pass

    @property
    def writes(self) -> bool:
        """Whether there is more to be sent."""
        return bool(self._rest)

    def read(self, counted: Counted) -> bool:
        """Read what has arrived; return whether the answer is whole."""
        try:
            size = self.socket.recv_into(memoryview(self._answer)[self._got :])
        except BlockingIOError:
            return False
        if size == 0:
            raise ConnectionError("the service closed a connection")
        self._got += size
        if not self._whole and not self._headed():
            return False
        return self._got >= self._whole and self._told(counted)

    def _headed(self) -> bool:
        """Whether the head has arrived, which tells how long the whole answer is."""
        end = self._answer.find(b"\r\n\r\n", 0, self._got)
        if end < 0:
            return False
        told = LENGTH.search(self._answer, 0, end + 2)
        if told is None:
            raise ConnectionError("an answer without its length")
        self._whole = end + 4 + int(told[1])
        if self._whole > len(self._answer):
            self._answer.extend(bytes(self._whole - len(self._answer)))
        return True

    def _told(self, counted: Counted) -> bool:
        status = int(self._answer[9:12])
        if status == 201:
            now = time.perf_counter()
            counted.seconds.append(now - self.begun)
            counted.ends.append(now)
        else:  # a service that is full, or stops
            counted.other[status] = counted.other.get(status, 0) + 1
        return True


def load(port: int, sent: bytes, clients: int, seconds: float) -> Counted:
    """Keep `clients` requests on the way for so many seconds, and count what was answered in that time."""
    counted, before = Counted(), time.process_time()
    lines = [Client(port, sent) for _ in range(clients)]
    selector, end = selectors.DefaultSelector(), time.perf_counter() + seconds
    both = selectors.EVENT_READ | selectors.EVENT_WRITE
    for line in lines:
        line.begin()
        selector.register(line.socket, both if line.writes else selectors.EVENT_READ, line)
    while time.perf_counter() < end:
        for key, ready in selector.select(1):
            line = key.data
            if ready & selectors.EVENT_WRITE:
                line.write()
            if ready & selectors.EVENT_READ and line.read(counted):
                line.begin()
            wanted = both if line.writes else selectors.EVENT_READ
            if wanted != key.events:
                selector.modify(line.socket, wanted, line)
    for line in lines:
        line.socket.close()
    counted.spent = time.process_time() - before
    return counted


def post(body: bytes, edge: str) -> bytes:
    """Return the bytes of a request that posts a form."""
    head = (
        "POST /v1/releases HTTP/1.1\r\nhost: localhost\r\n"
        f"content-type: multipart/form-data; boundary={edge}\r\ncontent-length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body
