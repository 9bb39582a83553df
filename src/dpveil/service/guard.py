"""What every request passes: by which name and from which page it comes, and what every answer carries."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from dpveil.errors import DPVeilError
from dpveil.service import log
from dpveil.service.answers import refusal
from dpveil.service.keys import LOCAL, Caller
from dpveil.service.log import Metrics
from dpveil.service.page.files import PAGES, PATHS
from dpveil.service.problems import BadRequest, Busy, Forbidden, Misdirected, TooMany
from dpveil.service.settings import Limits

AGAIN_SECONDS: Final = 2
"""Seconds after which a key that has enough under way may ask again."""


class Rates:
    """How often each key asked: a bucket of `rate` requests that fills up within a minute."""

    def __init__(self) -> None:
        self._left: dict[str, tuple[float, float]] = {}

    def check(self, caller: Caller, now: float) -> None:
        """Count a request at the time `now`, in seconds; raises `TooMany` if the bucket is empty."""
        left = self._at(caller, now)
        if left < 1:
            after = 1 + int((1 - left) * 60 / caller.rate)
            raise TooMany(f"this key asks more than {caller.rate} times a minute", after=after)
        self._left[caller.number] = (left - 1, now)

    def more(self, caller: Caller, photos: int, now: float) -> None:
        """Count the further photos of a request that was let in: the requests after it wait for them."""
        self._left[caller.number] = (self._at(caller, now) - photos, now)

    def _at(self, caller: Caller, now: float) -> float:
        left, before = self._left.get(caller.number, (float(caller.rate), now))
        return min(float(caller.rate), left + (now - before) * caller.rate / 60)


@dataclass
class _Work:
    """What one key has under way, and the turns of its photos at workers."""

    turns: asyncio.Semaphore
    count: int = 0


class Turns:
    """What each key has under way: `caller.parallel` requests and jobs, beyond which none is let in.

    The photos of one request may be more: `caller.parallel` of them are with workers, or wait for one, at
    once, and the rest of them wait for each other.
    """

    def __init__(self) -> None:
        self._work: dict[str, _Work] = {}

    @contextmanager
    def request(self, caller: Caller) -> Iterator[None]:
        """Count a request until what it asks for is begun or answered; raises `TooMany`."""
        work = self._work.get(caller.number)
        if work is not None and work.count >= caller.parallel:
            problem = f"this key has as many requests and jobs under way as it may: {caller.parallel}"
            raise TooMany(problem, after=AGAIN_SECONDS)
        self.begin(caller)
        try:
            yield
        finally:
            self.end(caller)

    def begin(self, caller: Caller) -> None:
        """Count a job, until `end`."""
        work = self._work.get(caller.number)
        if work is None:
            work = self._work[caller.number] = _Work(asyncio.Semaphore(caller.parallel))
        work.count += 1

    def end(self, caller: Caller) -> None:
        """Count a request or job no more."""
        work = self._work[caller.number]
        work.count -= 1
        if not work.count:
            del self._work[caller.number]

    @asynccontextmanager
    async def turn(self, caller: Caller) -> AsyncIterator[None]:
        """Wait until it is the turn of a photo of a request or job that is counted."""
        async with self._work[caller.number].turns:
            yield


class Held:
    """The bytes of all uploads in memory: `limits.held_bytes` at most, and `limits.key_bytes` of each key.

    Where no key is needed, whoever asks has the whole.
    """

    def __init__(self, limits: Limits) -> None:
        self.limits, self.now = limits, 0
        self.of_keys: Counter[str] = Counter()

    @contextmanager
    def share(self, caller: Caller = LOCAL) -> Iterator[Share]:
        """Give one request a share, which it gives back when it ends."""
        share = Share(self, None if caller is LOCAL else caller.number)
        try:
            yield share
        finally:
            share.free()


@dataclass
class Share:
    """What one request holds in memory: of the memory of all, and of that of a `key` by its number."""

    held: Held
    key: str | None = None
    size: int = 0

    def add(self, size: int) -> None:
        """Hold more; raises `TooMany` for more than a key may hold, and `Busy` for more than all may."""
        limits = self.held.limits
        if self.key is not None and self.held.of_keys[self.key] + size > limits.key_bytes:
            raise TooMany("the uploads of this key fill the memory that it has for them", after=AGAIN_SECONDS)
        if self.held.now + size > limits.held_bytes:
            raise Busy("uploads of others fill the memory for them", after=5)
        self._count(size)

    def part(self, size: int) -> Share:
        """Give `size` bytes of this share to a share of its own, as for one photo of several."""
        self.size -= size
        return Share(self.held, self.key, size)

    def free(self) -> None:
        """Give everything back."""
        self._count(-self.size)

    def _count(self, more: int) -> None:
        self.size += more
        self.held.now += more
        if self.key is not None:
            self.held.of_keys[self.key] += more


OPEN: Final = ("/healthz", "/readyz", "/openapi.json", *PATHS)
"""Addresses of which no request is logged: health checks and files of the page."""
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
UNKNOWN: Final = "other"
"""The route of requests to no address of the service, in figures and log."""


class Guard:
    """Wraps the application: lets requests through or answers them itself, counts, and logs.

    `hosts` are the names by which the service is reached.
    """

    def __init__(self, app: ASGIApp, hosts: Sequence[str], limits: Limits, metrics: Metrics) -> None:
        self.app, self.hosts, self.limits, self.metrics = app, frozenset(hosts), limits, metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        answered = _Answered(send)
        try:
            try:
                self._check(scope)
            except DPVeilError as error:
                await refusal(error)(scope, receive, answered)
            else:
                await self.app(scope, receive, answered)
        except Exception:  # noqa: BLE001  logged with its type and place; the client learns nothing of it
            log.error("request")
            if answered.status is None:
                await refusal(FAILURE)(scope, receive, answered)
            elif not answered.whole:
                raise _Broken from None
        finally:
            self._note(scope, answered)

    def _check(self, scope: Scope) -> None:
        """Raise the error with which a request is refused."""
        headers = Headers(scope=scope)
        _check_host(headers, self.hosts)
        if not _opens_page(scope, headers):
            _check_site(headers)
        if not scope["path"].isascii() or len(scope["query_string"]) > self.limits.settings_bytes:
            raise BadRequest("the address is malformed")

    def _note(self, scope: Scope, answered: _Answered) -> None:
        route = getattr(scope.get("route"), "path", UNKNOWN)
        status, caller = answered.status or 0, scope.get("state", {}).get("caller")
        self.metrics.requests.labels(route, str(status)).inc()
        self.metrics.seconds.labels(route).observe(answered.seconds)
        if route not in OPEN:
            log.write(
                "answered",
                method=scope["method"] if scope["method"] in METHODS else UNKNOWN,
                route=route,
                status=status,
                seconds=round(answered.seconds, 4),
                key=None if caller is None else caller.number,
            )


METHODS: Final = ("GET", "HEAD", "POST", "DELETE", "OPTIONS", "PUT", "PATCH")


class _Broken(Exception):
    """An answer that broke off; uvicorn closes the connection."""


def _check_host(headers: Headers, hosts: frozenset[str]) -> None:
    """Refuse names that are not the service's own: with a name that suddenly leads here (DNS rebinding), a
    page of another site would be one of ours.
    """
    named = [value.lower() for name, value in headers.items() if name == "host"]
    if len(named) != 1 or _name(named[0]) not in hosts:
        raise Misdirected("the service is not reached by this name", hint="ask its operator for the name")


def _opens_page(scope: Scope, headers: Headers) -> bool:
    """Whether a link or an address line opens a page: others may link to it, and see nothing of it."""
    asked = scope["method"], headers.get("sec-fetch-mode"), headers.get("sec-fetch-dest")
    return scope["path"] in PAGES and asked == ("GET", "navigate", "document")


def _check_site(headers: Headers) -> None:
    """Refuse requests of other sites' pages, which browsers tell of: they could send a form here."""
    origins, sites = headers.getlist("origin"), headers.getlist("sec-fetch-site")
    own = all(_site(origin) == headers["host"].lower() for origin in origins)
    if not own or not {"none", "same-origin"}.issuperset(sites):
        raise Forbidden("the request comes from a page of another site")


def _site(origin: str) -> str | None:
    """Return the host and port of an origin; None for what is no address."""
    try:
        return urlsplit(origin).netloc.lower()
    except ValueError:
        return None


def _name(host: str) -> str:
    """Return a Host header without its port.

    >>> _name("[::1]:8000"), _name("localhost")
    ('[::1]', 'localhost')
    """
    name, _, port = host.rpartition(":")
    return name if name and port.isdigit() else host


class _Answered:
    """Sends an answer with our headers, and remembers its status, when it began and whether it is `whole`."""

    def __init__(self, send: Send) -> None:
        self.send = send
        self.status: int | None = None
        self.whole = False
        self.begun = time.monotonic()
        self.seconds = 0.0

    async def __call__(self, message: Message) -> None:
        """Send one message."""
        if message["type"] == "http.response.start":
            self.status = message["status"]
            self.seconds = time.monotonic() - self.begun
            given: list[Any] = [*message.get("headers", [])]
            names = {name for name, _ in given}
            message = {**message, "headers": [*given, *(own for own in HEADERS if own[0] not in names)]}
        await self.send(message)
        if message["type"] == "http.response.body":
            self.whole = not message.get("more_body", False)
