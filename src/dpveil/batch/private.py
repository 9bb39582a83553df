"""Files about a run that are for the owner of the originals alone: may they be written where he says?"""

from __future__ import annotations

import errno
import os
from collections.abc import Sequence
from pathlib import Path

from dpveil.batch.tasks import Task
from dpveil.errors import OutputError, UsageError
from dpveil.io.folders import identity, real
from dpveil.io.names import shown
from dpveil.io.writing import refusal
from dpveil.release.saving import certificate_path


def check_private(path: Path, tasks: Sequence[Task], *, what: str, start: bytes, replace: bool) -> None:
    """Raise what would keep a file about a run from being written after it, before anything is drawn.

    `what` is its name in messages, `start` how such a file begins: without `replace` no other file is
    replaced. Raises `UsageError` where it would replace an input or a release, and `OutputError` where there
    is no such folder or it may not be written.
    """
    taken = [place for task in tasks for place in (task.source, task.output, certificate_path(task.output))]
    if identity(path) in set(map(identity, taken)):
        raise UsageError(f"the {what} {shown(path)} is an input or an output", hint="choose another name")
    if not path.parent.is_dir():
        raise refusal(path, FileNotFoundError(errno.ENOENT, ""))
    if not os.access(path.parent, os.W_OK | os.X_OK):
        raise refusal(path, PermissionError(errno.EACCES, ""))
    if path.exists() and (not path.is_file() or not (replace or _begins(path, start))):
        raise OutputError(
            f"cannot write {shown(path)}: it exists and is not a {what}",
            hint="choose another name, or replace it with {replace}",
            arguments={"replace": "replace=True"},
        )


def within(path: Path, task: Task) -> bool:
    """Return whether a file would lie in the folder of a release, or in one below."""
    return real(path).is_relative_to(real(task.output.parent))


def _begins(path: Path, start: bytes) -> bool:
    try:
        with path.open("rb") as file:
            found = file.read(len(start))
    except OSError:
        return False
    return found in (b"", start)
