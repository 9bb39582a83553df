"""Releases that were gathered for a shard or document, and how a whole file takes its place."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

from dpveil.batch.tasks import RunSettings
from dpveil.core.envelope import MOST_BYTES
from dpveil.errors import OutputError
from dpveil.io import is_present, most_bytes, read_untrusted
from dpveil.io.names import show_path
from dpveil.io.unreadable import Refused
from dpveil.io.writing import flush_folder, temporary_path
from dpveil.release.saving import SUFFIX, certificate_path


def is_whole(place: Path) -> bool:
    """Whether an image and its certificate are both there."""
    return is_present(place) and is_present(certificate_path(place))


def read_gathered(path: Path, choices: RunSettings) -> bytes:
    """Return the contents of a file that was gathered; raises `OutputError`."""
    most = MOST_BYTES if path.name.endswith(SUFFIX) else most_bytes(choices.max_pixels)
    try:
        return read_untrusted(path, most)
    except Refused as reason:
        hint = "remove it, or raise {max_pixels} if it was released with more"
        problem = f"{show_path(path)} {reason.problem}"
        raise OutputError(problem, hint=hint, arguments={"max_pixels": "max_pixels"}) from reason


def write(
    folder: Path, target: Path, data: bytes | Callable[[BinaryIO], object], *, flush: bool = True
) -> None:
    """Write a file under a temporary name in `folder`, and then give it its name; raises `OSError`.

    `data` may be what writes them.
    """
    temporary = temporary_path(folder)
    try:
        with temporary.open("xb") as file:
            file.write(data) if isinstance(data, bytes) else data(file)
            file.flush()
            if flush:
                os.fsync(file.fileno())
        if target.is_dir():
            raise OSError(errno.EISDIR, "is a folder")
        temporary.replace(target)
        if flush:  # what was gathered is removed next, and its only other copy must not be
            flush_folder(target.parent)
    finally:
        temporary.unlink(missing_ok=True)
