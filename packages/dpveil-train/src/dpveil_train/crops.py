"""Training crops from files and WebDataset shards, decoded once into an unnamed temporary file."""

from __future__ import annotations

import tarfile
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

import numpy as np
from jaxtyping import Int64, UInt8

from dpveil.codecs.base import Canvas, Crops
from dpveil.core.photo import Photo
from dpveil.errors import DPVeilError, PhotoError
from dpveil.faces.portrait_placement import centred
from dpveil.io.names import FORMATS, show_path
from dpveil.io.reading import read, read_bytes
from dpveil.io.writing import write_error
from dpveil.noise.bits import SeededBits
from dpveil_train.order import Source

SHARD: Final = ".tar"
LARGEST: Final = 1 << 26  # largest file inside a shard, in bytes
MOST_PIXELS: Final = 100_000_000  # most pixels of an image inside a shard
BATCH: Final = 512  # crops in memory at a time
EVERY: Final = 20  # one image in this many is held out for evaluation

Align = Callable[[Photo, Canvas], UInt8[np.ndarray, "h w c"]]
"""Returns a photo's crop of the size of the canvas."""


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


def photos(paths: Iterable[Path], step: Callable[[], None] = lambda: None) -> Iterator[Photo | PhotoError]:
    """Yield the photo, or an error, for every file and for every image in .tar shards.

    `step` is called after each file.
    """
    for path in paths:
        try:
            if path.suffix.lower() == SHARD:
                yield from _members(path)
            else:
                yield read(path)
        except PhotoError as error:
            yield error
        step()


def _members(path: Path) -> Iterator[Photo | PhotoError]:
    with open_shard(path) as shard:
        for member in shard:
            if Path(member.name).suffix.lower() in FORMATS and not Path(member.name).name.startswith("."):
                yield _member(shard, member, f"{path}/{member.name}")


def _member(shard: tarfile.TarFile, member: tarfile.TarInfo, name: str) -> Photo | PhotoError:
    if not member.isfile() or member.size > LARGEST:
        return PhotoError(f"{show_path(name)} is not a plain file of at most 64 MiB", hint="leave it out")
    opened = shard.extractfile(member)
    try:
        return read_bytes(opened.read() if opened else b"", name, max_pixels=MOST_PIXELS)
    except PhotoError as error:
        return error


@dataclass
class CropFile:
    """Crops in an unnamed temporary file, which the operating system deletes when the process ends.

    `failed` are the errors of images that were left out.
    """

    canvas: Canvas
    count: int
    failed: list[DPVeilError]
    _file: Any

    @classmethod
    def of(
        cls,
        found: Iterable[Photo | PhotoError],
        canvas: Canvas,
        folder: Path,
        *,
        align: Align = centred,
    ) -> Self:
        """Return the crops of photos, stored in `folder`; raises `OutputError` if they cannot be written."""
        try:
            file = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115  `__exit__` closes it
            crops = cls(canvas, 0, [], file)
            for photo in found:
                if isinstance(photo, PhotoError):
                    crops.failed.append(photo)
                    continue
                crops._file.write(align(photo, canvas).tobytes())
                crops.count += 1
            crops._file.flush()
        except OSError as error:
            raise write_error(folder, error) from error
        return crops

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()

    def source(self, seed: int, step: Callable[[], None] = lambda: None) -> Source:
        """Return the crops that are not held out, in a random order given by `seed`.

        `step` is called after each batch.
        """
        kept = np.setdiff1d(np.arange(self.count), self.held_out)
        order = kept[np.argsort(SeededBits(seed, "order of crops").words(len(kept)), kind="stable")]
        return lambda: self._batches(order, step)

    @property
    def held_out(self) -> Int64[np.ndarray, " k"]:
        return np.arange(EVERY - 1, self.count, EVERY)

    def batches(self, passes: int) -> int:
        """Return how often `step` of `source` is called in this many passes."""
        return passes * -(-(self.count - len(self.held_out)) // BATCH)

    def held_out_crops(self) -> Iterator[Crops]:
        return self._batches(self.held_out, lambda: None)

    def _batches(self, numbers: Int64[np.ndarray, " k"], step: Callable[[], None]) -> Iterator[Crops]:
        size = int(np.prod(self.canvas))
        for start in range(0, len(numbers), BATCH):
            part = numbers[start : start + BATCH]
            out = np.empty((len(part), *self.canvas), np.uint8)
            for row in np.argsort(part):
                self._file.seek(int(part[row]) * size)
                out[row] = np.frombuffer(self._file.read(size), np.uint8).reshape(self.canvas)
            yield out
            step()
