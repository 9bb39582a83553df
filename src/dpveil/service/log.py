"""The log: one JSON object a line, on stderr, with nothing of a photo, a caller's address or a subject."""

from __future__ import annotations

import json
import logging
import time
import traceback
from typing import Any, Final

NAME: Final = "dpveil.service"
_LOGGER: Final = logging.getLogger(NAME)


class OneLine(logging.Formatter):
    """Writes a record as one JSON object; of an exception its type and where it was raised, no values."""

    def format(self, record: logging.LogRecord) -> str:
        moment = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
        line = {"time": f"{moment}.{int(record.msecs):03d}Z", "level": record.levelname.lower()}
        told = getattr(record, "told", {"event": "server", "message": record.getMessage()[:300]})
        if record.exc_info and record.exc_info[1] is not None:
            *_, last = traceback.walk_tb(record.exc_info[2])
            at = f"{last[0].f_globals.get('__name__', '?')}:{last[1]}"
            told = {"event": "error", "error": type(record.exc_info[1]).__name__, "at": at}
        return json.dumps({**line, **told})


def start() -> None:
    """Send this log, and warnings of uvicorn, to stderr; the form parser's would quote what was sent."""
    logging.getLogger("python_multipart").setLevel(logging.CRITICAL)
    handler: Any = logging.StreamHandler()
    handler.handleError = lambda _: None  # a log that cannot be written stops nothing
    handler.setFormatter(OneLine())
    for name, level in ((NAME, logging.INFO), ("uvicorn", logging.WARNING), ("asyncio", logging.ERROR)):
        logger = logging.getLogger(name)
        logger.handlers, logger.propagate = [handler], False
        logger.setLevel(level)


def write(event: str, **fields: Any) -> None:
    _LOGGER.info(event, extra={"told": {"event": event, **fields}})


def error(event: str) -> None:
    """Write a line about an error that is being handled, with its type and place."""
    _LOGGER.error(event, exc_info=True, extra={"told": {"event": "error"}})
