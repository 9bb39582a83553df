"""What became of the rows of a data set, as the workers write it down: each process in a file of its own."""

from __future__ import annotations

import hashlib
import json
import os
import secrets
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

from dpveil.batch.report import RELEASED
from dpveil.datasets.cache import RELEASES
from dpveil.datasets.releaser import Releaser
from dpveil.io import is_present, make_folder, write_together
from dpveil.io.received import opened
from dpveil.io.refused import Refused
from dpveil.io.writing import OWN, refusal
from dpveil.scale.row import Row

FOLDER: Final = "outcomes"
"""The folder of these files in a store. It names inputs: it is for their owner only."""
FAILED: Final = "failed.jsonl"
"""The table of rows without a release, in a store."""


class Outcomes:
    """What became of the rows of all runs in the folder `store` with the settings of `releaser`.

    Who pays is one of them: what another ledger or subject paid for, or nobody, is not finished. Raises
    `LedgerError` if the ledger cannot be opened.
    """

    def __init__(self, store: Path, releaser: Releaser) -> None:
        chosen = [releaser.settings, releaser.if_none, releaser.at_least, releaser.payer]
        settings = hashlib.sha256(json.dumps(chosen, sort_keys=True).encode()).hexdigest()[:16]
        self.store, self.folder = store, store / FOLDER / settings

    def add(self, run: str) -> Log:
        """Return a new file for what this process does in a `run`, whose name sorts after earlier ones."""
        return Log(self.folder / f"{run}-{secrets.token_hex(8)}.jsonl")

    def rows(self, run: str = "") -> Iterator[Row]:
        """Yield all rows of a run, or of all runs, the earliest first; one that was retried comes again.

        What cannot be read is left out: its photos are met again, and found by their content.
        """
        for path in sorted(self.folder.glob(f"{run}*.jsonl")):
            with suppress(Refused), opened(path) as (file, _):
                for line in file:
                    if (row := Row.parse(line.decode(errors="replace"))) is not None:
                        yield row

    def finished(self) -> set[bytes]:
        """Return the names, by `name`, of all rows whose release is there; about 100 bytes for each."""
        there = self.store / RELEASES
        released = (row for row in self.rows() if row.status == RELEASED and is_present(there / row.release))
        return {name(row.key, row.stamp) for row in released}

    def final(self, run: str) -> Iterator[Row]:
        """Yield one row of a run for each key: the release if there is one, else the last."""
        done: set[bytes] = set()
        others: dict[bytes, Row] = {}
        for row in self.rows(run):
            which = name(row.key, row.stamp)
            if row.status != RELEASED:
                others[which] = row
            elif which not in done:
                done.add(which)
                yield row
        yield from (row for which, row in others.items() if which not in done)

    def write_failed(self, run: str) -> Path:
        """Write the table of the rows of a run without a release, as JSON lines, for their owner only.

        Return its path. Raises `OutputError`.
        """
        path = self.store / FAILED
        lines = (row.to_line() for row in self.final(run) if row.status != RELEASED)
        write_together([(path, "".join(lines).encode())], replace=True, private=True)
        return path


class Log:
    """A file to which one process appends what became of its rows; it is made by the first of them."""

    def __init__(self, path: Path) -> None:
        self._path, self._handle = path, -1

    def add(self, rows: list[Row]) -> None:
        """Append these rows; raises `OutputError`."""
        data = "".join(row.to_line() for row in rows).encode()
        try:
            if self._handle < 0:
                make_folder(self._path.parent)
                flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
                self._handle = os.open(self._path, flags, OWN)
            while data:
                data = data[os.write(self._handle, data) :]
        except OSError as error:
            raise refusal(self._path, error) from error

    def close(self) -> None:
        """Close the file."""
        if self._handle >= 0:
            os.close(self._handle)
            self._handle = -1


def name(key: str, stamp: str) -> bytes:
    """Return 16 bytes that stand for a row: which one it is, and which version of it."""
    return hashlib.blake2b(json.dumps([key, stamp]).encode(), digest_size=16).digest()
