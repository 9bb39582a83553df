"""Checks of the paths of files about a run that only the owner of the originals may see."""

from __future__ import annotations

import errno
import os
from collections.abc import Sequence
from pathlib import Path

from dpveil.batch.task import Task
from dpveil.errors import OutputError, UsageError
from dpveil.io.folders import identity, real
from dpveil.io.names import shown
from dpveil.io.writing import refusal
from dpveil.release.saving import certificate_path


def check_private(
    path: Path, tasks: Sequence[Task], *, what: str, start: bytes | None, replace: bool
) -> None:
    """Raise any error that would prevent writing a file about a run, before anything is drawn.

    `what` is its name in messages and `start` its first bytes: without `replace` an existing file must start
    with them, and with None no file may exist. Raises `UsageError` if the path is an input or an output of
    the run, and `OutputError` if the folder is missing or not writable, or another file exists.
    """
    taken = [place for task in tasks for place in (task.source, task.output, certificate_path(task.output))]
    if identity(path) in set(map(identity, taken)):
        raise UsageError(f"the {what} {shown(path)} is an input or an output", hint="choose another name")
    if not path.parent.is_dir():
        raise refusal(path, FileNotFoundError(errno.ENOENT, ""))
    if not os.access(path.parent, os.W_OK | os.X_OK):
        raise refusal(path, PermissionError(errno.EACCES, ""))
    if path.exists() and (
        not path.is_file() or not (replace or (start is not None and _begins(path, start)))
    ):
        raise OutputError(
            f"cannot write {shown(path)}: it exists" + ("" if start is None else f" and is not a {what}"),
            hint="choose another name, as {replace} releases every photo anew",
            arguments={"replace": "replace=True"},
        )


def check_apart(files: Sequence[Path], paths: Sequence[Path]) -> None:
    """Raise `UsageError` if one of the `paths` of a run is one of a ledger's `files`.

    Opening and closing such a file by another way takes the database's locks from this process, and a debit
    may be lost.
    """
    taken = set(map(identity, files))
    for path in paths:
        if identity(path) in taken:
            raise UsageError(f"{shown(path)} belongs to the ledger", hint="name another file")


def within(path: Path, task: Task) -> bool:
    """Whether `path` is in the folder of a task's output, or in one below it."""
    return real(path).is_relative_to(real(task.output.parent))


def _begins(path: Path, start: bytes) -> bool:
    try:
        with path.open("rb") as file:
            found = file.read(len(start))
    except OSError:
        return False
    return found in (b"", start)
