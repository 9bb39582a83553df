"""The log: one JSON object a line, on stderr, with nothing of a photo, a caller's address or a subject."""

from __future__ import annotations

import json
import logging
import sys
import time
from contextlib import suppress
from typing import Any, Final

NAME: Final = "dpveil.service"
FIELDS: Final = "told"


class OneLine(logging.Formatter):
    """Writes a record as one JSON object; of an exception its type and where it was raised, no values."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        moment = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
        line: dict[str, Any] = {
            "time": f"{moment}.{int(record.msecs):03d}Z",
            "level": record.levelname.lower(),
        }
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
        with suppress(OSError, ValueError):
            sys.stderr.write(f"{self.format(record)}\n")
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
    """Write a line."""
    logging.getLogger(NAME).info(event, extra={FIELDS: {"event": event, **fields}})


def error(event: str, **fields: Any) -> None:
    """Write a line about an error that is being handled, with its type and place."""
    logging.getLogger(NAME).error(event, exc_info=True, extra={FIELDS: {"event": event, **fields}})
