"""Walking folders without following links; unreadable entries are always reported."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

PICTURES: Final = "gif apng heic heif hif avif jp2 j2k jxl jpe jfif pbm pgm ppm pnm psd tga ico"
RAW: Final = "cr2 cr3 nef arw dng orf rw2 raf"
VIDEOS: Final = "mp4 mov m4v avi mkv webm mpg mpeg 3gp mts"
UNWRITTEN: Final = frozenset(f".{name}" for name in f"{PICTURES} {RAW} {VIDEOS}".split())
"""Pictures and videos that dpveil does not write, and of which it reads some: in a folder they are read or
reported, never left out in silence."""


def is_folder(path: Path) -> bool:
    """Whether `path` is a folder; one that cannot even be looked at is none, and fails when it is read."""
    try:
        return path.is_dir()
    except OSError:
        return False


def is_link(path: Path) -> bool:
    """Whether `path` is a symbolic link; what cannot be looked at is none, and fails when it is read."""
    try:
        return path.is_symlink()
    except OSError:
        return False


def real(path: Path) -> Path:
    """Return the path without links, whether anything is there or not."""
    return Path(os.path.realpath(path))


def identity(path: Path) -> object:
    """Return what is equal for two names of one file, on disks that ignore case too."""
    try:
        status = path.stat()
    except OSError:
        return real(path)
    return status.st_dev, status.st_ino


def walk(folder: Path, skipped: Path | None = None, *, hidden: bool = False) -> Iterator[tuple[Path, str]]:
    """Yield the files under `folder`, sorted, each with ""; with `hidden` those that are hidden, too.

    Links are not entered, nor is the folder `skipped`. At last come the folders that cannot be read, each
    with why, so that none is left out in silence.
    """
    unread: list[tuple[Path, str]] = []
    waiting = [folder]
    while waiting:  # a list, as folders may lie deeper in one another than functions can
        here = waiting.pop()
        try:
            with os.scandir(here) as entries:
                seen = sorted(
                    (entry.name, _entered(entry)) for entry in entries if hidden or entry.name[0] != "."
                )
        except OSError as error:
            unread.append((here, f"cannot be read ({error.strerror})"))
            continue
        yield from ((here / name, "") for name, entered in seen if not entered)
        inside = [here / name for name, entered in seen if entered]
        waiting += [path for path in reversed(inside) if skipped is None or real(path) != skipped]
    yield from unread


def _entered(entry: os.DirEntry[str]) -> bool:
    """Whether it is a folder, and no link to one: where a link leads is not even asked."""
    try:
        return entry.is_dir(follow_symlinks=False)
    except OSError:
        return False
