"""Output of the command line: the answer on stdout, everything else on stderr, at most one JSON document."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from typing import Any

from dpveil.errors import DPVeilError


def answer(text: str) -> None:
    """Print one line of the human-readable answer."""
    print(still(text))  # noqa: T201  the command line's own voice


def document(data: Mapping[str, Any]) -> None:
    """Print the one JSON document."""
    print(json.dumps(data, indent=2))  # noqa: T201


def note(text: str) -> None:
    """Print one line to stderr."""
    print(still(text), file=sys.stderr)  # noqa: T201


def still(text: str) -> str:
    """Return `text` with control characters escaped, and those that turn letters, which names may contain."""
    shown = (c if c.isprintable() or c in "\n\t" else c.encode("unicode_escape").decode() for c in text)
    return text if text.isprintable() else "".join(shown)


def hash_in_short(sha256: str) -> str:
    """Return the beginning of a file's SHA-256, by which several commands name the same file."""
    return f"sha256 {sha256[:12]}"


def one_line(error: BaseException) -> str:
    """Return an error in one line; unexpected errors are named by their type."""
    if isinstance(error, DPVeilError):
        return " ".join(str(error).split())
    detail = " ".join(str(error).split())
    return f"unexpected {type(error).__name__}" + (f": {detail}" if detail else "")


def never_break_on_letters() -> None:
    """Make stdout and stderr escape characters that their encoding lacks instead of raising an error."""
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="backslashreplace")
