"""Lists of the JSON document that may have millions of entries: they wait on the disk, not in memory."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from tempfile import SpooledTemporaryFile, gettempdir
from textwrap import indent
from typing import Any, Final, Self

IN_MEMORY: Final = 1 << 22
"""Most characters of a list that are kept in memory."""


class Entries:
    """A list of objects, which only counts them unless they are `kept`; it is a context, which closes it.

    Raises `OutputError`.
    """

    def __init__(self, *, kept: bool) -> None:
        self._count, self._kept = 0, kept
        self._file = SpooledTemporaryFile(IN_MEMORY, "w+", encoding="ascii")  # noqa: SIM115  lives as long

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def __len__(self) -> int:
        return self._count

    def add(self, entry: Mapping[str, Any]) -> None:
        """Add one object."""
        if self._kept:
            text = indent(json.dumps(entry, indent=2), "    ")
            self._write(f"{',' if self._count else ''}\n{text}")
        self._count += 1

    def print(self) -> None:
        """Print the list as `json.dumps` would within an object."""
        self._file.seek(0)
        sys.stdout.write("[")
        while part := self._file.read(1 << 16):
            sys.stdout.write(part)
        sys.stdout.write("\n  ]" if self._count else "]")

    def _write(self, text: str) -> None:
        from dpveil.io.writing import refusal

        try:
            self._file.write(text)
        except OSError as error:
            raise refusal(Path(gettempdir()), error) from error


def print_document(lists: Mapping[str, Entries], more: Mapping[str, Any]) -> None:
    """Print the one JSON document: these lists, then what is more."""
    sys.stdout.write("{")
    for name, entries in lists.items():
        sys.stdout.write(f"\n  {json.dumps(name)}: ")
        entries.print()
        sys.stdout.write(",")
    print(json.dumps(more, indent=2).removeprefix("{"))  # noqa: T201  the command line's own voice
