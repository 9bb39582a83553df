"""The log: one JSON object a line, on stderr, with nothing of a photo, a caller's address or a subject."""

from __future__ import annotations

import json
import logging
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

SECONDS = (0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30, 100)
"""Bounds of the classes of times."""


class Metrics:
    """The figures of one service, in a registry of their own."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        own = self.registry
        self.requests = Counter(
            "dpveil_requests", "Requests by route and status.", ["route", "status"], registry=own
        )
        self.seconds = Histogram(
            "dpveil_request_seconds", "Time until the answer began.", ["route"], buckets=SECONDS, registry=own
        )
        self.releases = Counter("dpveil_releases", "Releases that were drawn and kept.", registry=own)
        self.refused = Counter("dpveil_budget_refused", "Releases that a budget did not allow.", registry=own)
        self.lost = Counter("dpveil_releases_lost", "Releases that were paid for and not made.", registry=own)

    def watch(self, name: str, words: str, read: Callable[[], float]) -> None:
        """Add a figure that is read when it is asked for."""
        Gauge(f"dpveil_{name}", words, registry=self.registry).set_function(read)

    def text(self) -> bytes:
        """Return all figures in Prometheus' text format."""
        return generate_latest(self.registry)


NAME: Final = "dpveil.service"
FIELDS: Final = "told"
_LOGGER: Final = logging.getLogger(NAME)


class OneLine(logging.Formatter):
    """Writes a record as one JSON object; of an exception its type and where it was raised, no values."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        line = _log_record(record.created, record.levelname)
        told = getattr(record, FIELDS, None)
        line |= told if isinstance(told, dict) else {"event": "server", "message": record.getMessage()[:300]}
        if record.exc_info and record.exc_info[0] is not None:
            line |= {"event": "error", "error": record.exc_info[0].__name__, "at": _place(record.exc_info[2])}
            line.pop("message", None)
        return json.dumps(line)


class _ToStderr(logging.Handler):
    """Writes to what is stderr at that moment; a log that cannot be written stops nothing."""

    def emit(self, record: logging.LogRecord) -> None:
        """Write one line."""
        _print(self.format(record))


def _log_record(moment: float, level: str) -> dict[str, Any]:
    whole = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(moment))
    return {"time": f"{whole}.{int(moment % 1 * 1000):03d}Z", "level": level.lower()}


def _print(line: str) -> None:
    with suppress(OSError, ValueError):
        sys.stderr.write(f"{line}\n")
        sys.stderr.flush()


def _place(trace: Any) -> str:
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return "" if trace is None else f"{trace.tb_frame.f_globals.get('__name__', '?')}:{trace.tb_lineno}"


def start() -> None:
    """Send this log, and warnings of uvicorn, to stderr; the form parser's would quote what was sent."""
    logging.getLogger("python_multipart").setLevel(logging.CRITICAL)
    handler = _ToStderr()
    handler.setFormatter(OneLine())
    for name, level in ((NAME, logging.INFO), ("uvicorn", logging.WARNING), ("asyncio", logging.ERROR)):
        logger = logging.getLogger(name)
        logger.handlers, logger.propagate = [handler], False
        logger.setLevel(level)


def write(event: str, **fields: Any) -> None:
    """Write a line, without the detours of `logging`: there are several for each release."""
    if _LOGGER.handlers:
        _print(json.dumps({**_log_record(time.time(), "info"), "event": event, **fields}))


def error(event: str, **fields: Any) -> None:
    """Write a line about an error that is being handled, with its type and place."""
    _LOGGER.error(event, exc_info=True, extra={FIELDS: {"event": event, **fields}})
