"""Why files cannot be written, and what to do: errors of the operating system as `OutputError`."""

from __future__ import annotations

import errno
from pathlib import Path
from typing import Final

from dpveil.errors import OutputError
from dpveil.io.names import shown

REASONS: Final[dict[int, tuple[str, str]]] = {
    errno.EACCES: ("permission denied", "choose a folder that you may write to"),
    errno.EPERM: ("permission denied", "choose a folder that you may write to"),
    errno.EROFS: ("the disk is read-only", "choose a folder that you may write to"),
    errno.ENOSPC: ("the disk is full", "make room or choose another disk"),
    errno.EDQUOT: ("the disk quota is used up", "make room or choose another disk"),
    errno.EIO: ("the disk does not answer", "check that it is connected and healthy"),
    errno.ENODEV: ("the disk is gone", "connect it again"),
    errno.ENXIO: ("the disk is gone", "connect it again"),
    errno.ESTALE: ("the network disk is gone", "connect it again"),
    errno.EFBIG: ("the file is too large for this disk", "choose another disk"),
    errno.ENAMETOOLONG: ("the name is too long", "choose a shorter one"),
    errno.ENOENT: ("there is no such folder", "make the folder first"),
    errno.ENOTDIR: ("part of its path is not a folder", "choose another folder"),
    errno.EEXIST: ("it exists already", "choose another name, or replace it with {replace}"),
    errno.EISDIR: ("it is a folder", "choose another name"),
    errno.EBUSY: ("another process is writing there", "wait until it is done"),
    errno.ELOOP: ("its path is a loop of links", "choose another folder"),
}
"""Problem and remedy for errors of the operating system."""


def refusal(path: str | Path, error: OSError | ValueError) -> OutputError:
    """Return an operating system's `error` in writing `path` as an `OutputError`."""
    number = error.errno if isinstance(error, OSError) else None
    problem, remedy = REASONS.get(number or 0, ("", "choose another folder or name"))
    problem = problem or getattr(error, "strerror", None) or "not a valid file name"
    text = f"cannot write {shown(path)}: {problem}"
    return OutputError(text, hint=remedy, arguments={"replace": "replace=True"})
