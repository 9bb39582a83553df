"""What every request passes: by which name and from which page it comes, and what every answer carries."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any, Final
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from dpveil.errors import DPVeilError
from dpveil.service import log
from dpveil.service.answers import refusal
from dpveil.service.log import Metrics
from dpveil.service.page.files import PAGES, PATHS
from dpveil.service.problems import BadRequest, Forbidden, Misdirected
from dpveil.service.settings import Limits

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
