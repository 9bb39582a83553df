"""Output of the command line: the answer on stdout, everything else on stderr, at most one JSON document."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Self

from dpveil.errors import DPVeilError, UsageError


def answer(text: str) -> None:
    print(escape_controls(text))  # noqa: T201  the command line's own voice


def table(rows: Iterable[Sequence[str]], *, indent: str = "", numbers: bool = False) -> None:
    """Print rows of cells in columns, all but the first right-aligned if they are `numbers`."""
    every = [*rows]
    widths = [max(map(len, column)) for column in zip(*every, strict=True)]
    for row in every:
        cells = [
            cell.rjust(width) if numbers and place else cell.ljust(width)
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        answer(indent + "  ".join(cells).rstrip())


def document(data: Mapping[str, Any]) -> None:
    print(json.dumps(data, indent=2))  # noqa: T201


def note(text: str) -> None:
    print(escape_controls(text), file=sys.stderr)  # noqa: T201


@dataclass(frozen=True)
class Voice:
    """How much is said beside errors: nothing if `quiet`, all details if `verbose`."""

    quiet: bool = False
    verbose: bool = False

    @classmethod
    def of(cls, *, quiet: bool, verbose: bool) -> Self:
        """Return the voice of these options; raises `UsageError` for both."""
        if quiet and verbose:
            raise UsageError("--quiet and --verbose exclude each other", hint="leave one out")
        return cls(quiet, verbose)

    def note(self, text: str) -> None:
        if not self.quiet:
            note(text)

    def detail(self, text: str) -> None:
        if self.verbose:
            note(text)


PLAIN: Final = Voice()


def escape_controls(text: str) -> str:
    """Return `text` with control characters escaped, and those that turn letters, which names may contain."""
    shown = (c if c.isprintable() or c in "\n\t" else c.encode("unicode_escape").decode() for c in text)
    return text if text.isprintable() else "".join(shown)


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


def first_and_count(names: Sequence[str], most: int = 1) -> str:
    """Return the names of the first, `most` of them, and how many more there are.

    >>> first_and_count(["a.jpg"]), first_and_count(["a.jpg", "b.jpg", "c.jpg"])
    ('a.jpg', 'a.jpg and 2 more')
    """
    more = len(names) - most
    return ", ".join(names[:most]) + (f" and {more} more" if more > 0 else "")
