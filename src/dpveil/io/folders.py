"""Walking folders without following links; unreadable folders are always reported."""

from __future__ import annotations

import hashlib
import hmac
import os
import secrets
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Final

PICTURES: Final = "gif apng heic heif hif avif jp2 j2k jxl jpe jfif pbm pgm ppm pnm psd tga ico"
RAW: Final = "cr2 cr3 nef arw dng orf rw2 raf"
VIDEOS: Final = "mp4 mov m4v avi mkv webm mpg mpeg 3gp mts"
UNWRITTEN: Final = frozenset(f".{name}" for name in f"{PICTURES} {RAW} {VIDEOS}".split())
"""Suffixes of pictures and videos that dpveil cannot write. A run over a folder reads them or reports them;
it never leaves them out silently."""
PACKED_SUFFIXES: Final = frozenset({".tar", ".parquet", ".pdf"})  # suffixes of files of many releases
PDF: Final = ".pdf"
DATA_SET: Final = "dataset.certificate.json"  # the certificate of a whole data set, in its folder
STAGE: Final = ".dpveil-shards"  # the hidden folder in which the releases for such a file are gathered


def is_folder(path: Path) -> bool:
    """Whether `path` is a folder; False if it cannot be inspected, so that reading it reports the error."""
    try:
        return path.is_dir()
    except OSError:
        return False


def is_link(path: Path) -> bool:
    """Whether `path` is a symbolic link; False if it cannot be inspected."""
    try:
        return path.is_symlink()
    except OSError:
        return False


def is_data_set(folder: Path) -> bool:
    """Whether a path is the folder of a data set: one with a certificate for all of it."""
    return is_folder(folder) and not is_link(folder) and os.path.lexists(folder / DATA_SET)


def real(path: Path) -> Path:
    """Return the absolute path with links resolved; it need not exist."""
    return Path(os.path.realpath(path))


def state_home() -> Path:
    """Return the folder of what dpveil keeps for a user: $XDG_STATE_HOME/dpveil or ~/.local/state/dpveil.

    On Windows it is in %LOCALAPPDATA%. Raises `OSError` if the user has no home folder.
    """
    given = os.environ.get("LOCALAPPDATA" if os.name == "nt" else "XDG_STATE_HOME", "")
    try:
        home = Path(given) if Path(given).is_absolute() else Path.home() / ".local" / "state"
    except RuntimeError as error:
        raise OSError("there is no home folder") from error
    return home / "dpveil"


SECRET_BYTES: Final = 32


def private_digest(data: bytes) -> str:
    """Return a short digest that is the same for the same user and data, and that nobody else can compute.

    Its key is drawn once, into the user's state folder. Raises `OSError`.
    """
    path = state_home() / "digest.key"
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    if not path.exists():
        with NamedTemporaryFile(dir=path.parent, delete=False) as file:  # readable by the user only
            file.write(secrets.token_bytes(SECRET_BYTES))
        with suppress(FileExistsError):  # another process was first
            path.hardlink_to(file.name)
        Path(file.name).unlink()
    key = path.read_bytes()
    if len(key) != SECRET_BYTES:
        raise OSError(f"{path} is damaged: remove it")
    return hmac.new(key, data, hashlib.sha256).hexdigest()[:16]


def identity(path: Path) -> object:
    """Return an object that is equal for two paths of the same file, also where case is ignored."""
    try:
        status = path.stat()
    except OSError:
        return real(path)
    return status.st_dev, status.st_ino


def walk(folder: Path, skipped: Path | None = None, *, hidden: bool = False) -> Iterator[tuple[Path, str]]:
    """Yield the files under `folder`, sorted, each with an empty string; hidden ones only with `hidden`.

    Links to folders are not followed, and the folder `skipped` is left out. Last come the folders that cannot
    be read, each with the reason.
    """
    unread: list[tuple[Path, str]] = []
    waiting = [folder]
    while waiting:  # no recursion: folders may be nested deeper than Python's limit
        here = waiting.pop()
        try:
            with os.scandir(here) as entries:
                seen = sorted(  # the target of a link is not inspected
                    (entry.name, entry.is_dir(follow_symlinks=False))
                    for entry in entries
                    if hidden or entry.name[0] != "."
                )
        except OSError as error:
            unread.append((here, f"cannot be read ({error.strerror})"))
            continue
        yield from ((here / name, "") for name, entered in seen if not entered)
        inside = [here / name for name, entered in seen if entered]
        waiting += [path for path in reversed(inside) if skipped is None or real(path) != skipped]
    yield from unread
