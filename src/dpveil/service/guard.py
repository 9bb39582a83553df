"""Checks of every request: its name and page, what its key has under way, and what answers carry."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from dpveil.errors import DPVeilError
from dpveil.service import log
from dpveil.service.answers import refusal_response
from dpveil.service.keys import Caller
from dpveil.service.limits import Limits
from dpveil.service.metrics import Metrics
from dpveil.service.page.files import INDEX, PATHS
from dpveil.service.problems import ServiceError, busy


class Rates:
    """How often each key asked: a bucket of `rate` requests that fills up within a minute."""

    def __init__(self) -> None:
        self._left: dict[str, tuple[float, float]] = {}

    def check(self, caller: Caller, now: float) -> None:
        """Count a request at the time `now`, in seconds; raises "TooMany" if the bucket is empty."""
        left, before = self._left.get(caller.number, (float(caller.rate), now))
        left = min(float(caller.rate), left + (now - before) * caller.rate / 60)
        if left < 1:
            after = 1 + int((1 - left) * 60 / caller.rate)
            text = f"this key asks more than {caller.rate} times a minute"
            raise ServiceError("TooMany", text, after=after)
        self._left[caller.number] = (left - 1, now)


class ActiveRequests:
    """The requests and jobs that each key has under way: `caller.parallel` at most."""

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()

    @contextmanager
    def count(self, caller: Caller, *, job: bool = False) -> Iterator[None]:
        """Count a request until it ends, or the job that it began; raises "TooMany" for a request."""
        if not job and self._counts[caller.number] >= caller.parallel:
            problem = f"this key has as many requests and jobs under way as it may: {caller.parallel}"
            raise ServiceError("TooMany", problem, after=2)
        self._counts[caller.number] += 1
        try:
            yield
        finally:
            self._counts[caller.number] -= 1


@dataclass
class UploadMemory:
    """The bytes of all uploads in memory: `most` at once."""

    most: int
    now: int = 0


@dataclass
class RequestLoad:
    """What one request holds of them."""

    held: UploadMemory
    size: int = 0

    def add(self, size: int) -> None:
        """Hold more; raises "Busy" for more than all may."""
        if self.held.now + size > self.held.most:
            raise busy("uploads of others fill the memory for them", after=5)
        self.size += size
        self.held.now += size

    def free(self) -> None:
        self.held.now -= self.size
        self.size = 0


OPEN: Final = ("/healthz", "/readyz", "/openapi.json", *PATHS)
"""Addresses of which no request is logged: health checks and files of the page."""
METHODS: Final = ("GET", "HEAD", "POST", "DELETE", "OPTIONS", "PUT", "PATCH")
HEADERS: Final = (
    (b"cache-control", b"no-store"),
    (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"permissions-policy", b"camera=(), geolocation=(), microphone=()"),
    (b"referrer-policy", b"no-referrer"),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
)
"""What every answer carries."""
FAILURE: Final = DPVeilError("the service failed", hint="its log says where")
"""What a client learns of an error that nobody expected."""
UNKNOWN: Final = "other"  # the route of requests to no address of the service, in figures and log


class Guard:
    """Wraps the application: lets requests through or answers them itself, counts, and logs.

    `hosts` are the names by which the service is reached.
    """

    def __init__(self, app: ASGIApp, hosts: Sequence[str], limits: Limits, metrics: Metrics) -> None:
        self.app, self.hosts, self.limits, self.metrics = app, frozenset(hosts), limits, metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        started, status, seconds = time.monotonic(), 0, 0.0

        async def answer(message: Message) -> None:
            nonlocal status, seconds
            if message["type"] == "http.response.start":
                status, seconds = message["status"], time.monotonic() - started
                given: list[Any] = [*message.get("headers", [])]
                names = {name for name, _ in given}
                message = {**message, "headers": [*given, *(own for own in HEADERS if own[0] not in names)]}
            await send(message)

        try:
            self._check(scope)
            await self.app(scope, receive, answer)
        except DPVeilError as error:
            await refusal_response(error)(scope, receive, answer)
        except Exception:  # noqa: BLE001  logged with its type and place; the client learns nothing of it
            log.error("request")
            if not status:  # else uvicorn closes the connection of an answer that broke off
                await refusal_response(FAILURE)(scope, receive, answer)
        finally:
            self._note(scope, status, seconds)

    def _check(self, scope: Scope) -> None:
        headers = Headers(scope=scope)
        hosts = [value.lower() for value in headers.getlist("host")]
        # with a name that suddenly leads here (DNS rebinding), a page of another site would be one of ours
        if len(hosts) != 1 or _name(hosts[0]) not in self.hosts:
            raise ServiceError(
                "Misdirected", "the service is not reached by this name", hint="ask its operator for the name"
            )
        mode = headers.get("sec-fetch-mode"), headers.get("sec-fetch-dest")
        # others may link to the page, and see nothing of it, but their pages could send a form here
        if scope["path"] != INDEX or (scope["method"], *mode) != ("GET", "navigate", "document"):
            try:
                own = all(urlsplit(each).netloc.lower() == hosts[0] for each in headers.getlist("origin"))
            except ValueError:  # an origin is no address
                own = False
            if not own or not {"none", "same-origin"}.issuperset(headers.getlist("sec-fetch-site")):
                raise ServiceError("Forbidden", "the request comes from a page of another site")
        if not scope["path"].isascii() or len(scope["query_string"]) > self.limits.settings_bytes:
            raise ServiceError("BadRequest", "the address is malformed")

    def _note(self, scope: Scope, status: int, seconds: float) -> None:
        route = getattr(scope.get("route"), "path", UNKNOWN)
        caller = scope.get("state", {}).get("caller")
        self.metrics.requests.labels(route, str(status)).inc()
        self.metrics.seconds.labels(route).observe(seconds)
        if route not in OPEN:
            log.write(
                "answered",
                method=scope["method"] if scope["method"] in METHODS else UNKNOWN,
                route=route,
                status=status,
                seconds=round(seconds, 4),
                key=None if caller is None else caller.number,
            )


def _name(host: str) -> str:
    """Return a Host header without its port.

    >>> _name("[::1]:8000"), _name("localhost")
    ('[::1]', 'localhost')
    """
    name, _, port = host.rpartition(":")
    return name if name and port.isdigit() else host
