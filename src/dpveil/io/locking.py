"""One writer per folder, and temporary files that are locked as long as their writer lives.

Files are filled and flushed, which takes long, while others write to the same folder: its lock is held to
make them, and to give them their names. A file's own lock ends once the folder's is held: of a process that
dies while it names files, nothing else is locked for a moment longer. No kept library does this: filelock
locks a file of its own, which is made beside, and not the folder or file that is in use.
"""

from __future__ import annotations

import errno
import os
import re
import time
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Final

try:
    import fcntl

    LOCKS = True
except ImportError:  # no such locks on this system: writers do without, and leftovers are not removed
    LOCKS = False

PATIENCE: Final = 120.0
"""Seconds to wait for another writer, which locks a folder only while it names the files of one photo."""
PAUSE: Final = 0.001  # seconds between two attempts to lock a folder
HELD_ERRORS: Final = (errno.EWOULDBLOCK, errno.EAGAIN, errno.EACCES)  # another one holds a lock
PLAIN: Final = sum(getattr(os, name, 0) for name in ("O_CLOEXEC", "O_NONBLOCK", "O_NOFOLLOW"))
"""How a file is opened that may be anything."""
TEMPORARY: Final = re.compile(r"\.dpveil-[0-9a-f]{16}\.tmp")  # names of temporary files


@contextmanager
def sole_writer(folders: Iterable[Path]) -> Iterator[bool]:
    """Hold the advisory locks of `folders` during the context; yield whether all of them are held.

    The operating system releases the locks when the process ends, however it ends. Folders that cannot be
    locked, because they are missing or the disk has no locks, are skipped. Raises `OSError` (EBUSY) after
    `PATIENCE` seconds.
    """
    with ExitStack() as stack:
        held = True
        for folder in sorted(set(folders)):
            try:
                handle = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
            except OSError:
                held = False
            else:
                stack.callback(os.close, handle)
                held &= stack.enter_context(in_use(handle))
        yield held


@contextmanager
def in_use(handle: int) -> Iterator[bool]:
    """Lock an open folder, or temporary file, so that it is no leftover; yield whether it is locked.

    Where the disk has no locks, none is held, and nobody removes leftovers there. Raises `OSError` (EBUSY)
    after `PATIENCE` seconds: of a file, somebody may be looking just now whether it is a leftover.
    """
    held, until = not LOCKS, time.monotonic() + PATIENCE
    while not held:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            held = True
        except OSError as error:
            if error.errno not in HELD_ERRORS:
                break
            if time.monotonic() > until:
                raise OSError(errno.EBUSY, "another process is writing there") from error
            time.sleep(PAUSE)
    try:
        yield held and LOCKS
    finally:
        if LOCKS:
            with suppress(OSError):
                fcntl.flock(handle, fcntl.LOCK_UN)  # a child process may have inherited the handle


@contextmanager
def hold_lock(path: Path) -> Iterator[None]:
    """Hold the lock file `path`, made with its folders if missing and removed at the end.

    Raises `OSError`: EBUSY at once if another process, or thread, holds it. A disk without locks holds none.
    """
    held = False
    while not held:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | getattr(os, "O_NOFOLLOW", 0)
        with suppress(FileNotFoundError):  # the process before has just removed its folder, or the file
            handle = os.open(path, flags, 0o600)
            try:
                if LOCKS:
                    fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:  # else the disk has no locks
                if error.errno in HELD_ERRORS:
                    os.close(handle)
                    raise OSError(errno.EBUSY, "another process is writing there") from error
            try:
                held = os.path.samestat(os.fstat(handle), path.lstat())
            finally:
                if not held:
                    os.close(handle)
    try:
        yield
    finally:
        try:
            with suppress(OSError):
                if os.path.samestat(os.fstat(handle), path.lstat()):
                    path.unlink()  # else it is removed, or another's by now
        finally:
            os.close(handle)


def leftovers(folder: Path) -> list[Path]:
    """Return the temporary files in `folder` that no living process writes, sorted.

    Only its `sole_writer` may remove them.
    """
    try:
        with os.scandir(folder) as entries:
            named = [entry for entry in entries if TEMPORARY.fullmatch(entry.name)]
            return sorted(Path(entry.path) for entry in named if not _may_be_written(entry))
    except OSError:
        return []


def _may_be_written(entry: os.DirEntry[str]) -> bool:
    if not entry.is_file(follow_symlinks=False):
        return False
    try:
        handle = os.open(entry.path, os.O_RDONLY | PLAIN)
    except OSError as error:
        return error.errno != errno.ELOOP  # a link is nobody's work
    try:
        if LOCKS:  # shared, so that nobody who looks takes another who looks for a writer
            fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
            fcntl.flock(handle, fcntl.LOCK_UN)  # a child process may have inherited the handle
    except OSError as error:
        return error.errno in HELD_ERRORS
    finally:
        os.close(handle)
    return False
