"""Reading shards that training and evaluation take: .tar files, of which all is read."""

from __future__ import annotations

import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from dpveil.errors import PhotoError
from dpveil.io.names import show_path

SHARD: Final = ".tar"
LARGEST: Final = 1 << 26  # largest file inside a shard, in bytes


@contextmanager
def open_shard(path: Path) -> Iterator[tarfile.TarFile]:
    """Open a .tar to read all of its members; raises `PhotoError` if it is damaged or truncated."""
    try:
        with path.open("rb") as file, tarfile.open(fileobj=file, mode="r:") as shard:
            yield shard
            file.seek(shard.offset)
            if file.read(tarfile.BLOCKSIZE) != bytes(tarfile.BLOCKSIZE):  # tarfile ignores a missing end
                raise tarfile.ReadError("it ends early")
    except (OSError, tarfile.TarError, ValueError) as error:
        reason = " ".join(str(getattr(error, "strerror", None) or error).split())
        raise PhotoError(
            f"{show_path(path)} is not an intact .tar ({reason})", hint="download it again"
        ) from error
