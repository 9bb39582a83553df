"""Training crops from files and WebDataset shards, decoded once into an unnamed temporary file."""

from __future__ import annotations

import hashlib
import tarfile
import tempfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

import cv2
import numpy as np
from jaxtyping import Int64, UInt8

from dpveil.codecs.base import Canvas, Crops
from dpveil.core.photo import Photo
from dpveil.errors import DPVeilError, PhotoError
from dpveil.io import FORMATS, read, read_bytes
from dpveil.io.names import shown
from dpveil.io.writing import refusal
from dpveil.noise.bits import SeededBits
from dpveil.training.source import Source

SHARD: Final = ".tar"
LARGEST: Final = 1 << 26
"""Bytes of the largest picture inside a shard."""
MOST_PIXELS: Final = 100_000_000
BATCH: Final = 512
EVERY: Final = 20
"""One image in this many is held out, to measure with."""

Align = Callable[[Photo, Canvas], UInt8[np.ndarray, "h w c"]]
"""Makes a crop of the canvas of a photo."""


def centred(photo: Photo, canvas: Canvas) -> UInt8[np.ndarray, "h w c"]:
    """Return the largest part of the photo, around its middle, of the canvas's shape, resized to it.

    Grey photos are made colour and colour photos grey (ITU-R BT.601) as the canvas asks.
    """
    height, width, channels = canvas
    scale = min(photo.height / height, photo.width / width)
    rows, columns = max(1, round(scale * height)), max(1, round(scale * width))
    top, left = (photo.height - rows) // 2, (photo.width - columns) // 2
    part = photo.image[top : top + rows, left : left + columns]
    if part.shape[2] != channels:
        code = cv2.COLOR_RGB2GRAY if channels == 1 else cv2.COLOR_GRAY2RGB
        part = cv2.cvtColor(np.ascontiguousarray(part), code).reshape(rows, columns, channels)
    if (rows, columns) != (height, width):
        how = cv2.INTER_AREA if scale > 1 else cv2.INTER_CUBIC
        part = cv2.resize(np.ascontiguousarray(part), (width, height), interpolation=how)
    out: UInt8[np.ndarray, "h w c"] = part.reshape(canvas)
    return out


def photos(paths: Iterable[Path], step: Callable[[], None] = lambda: None) -> Iterator[Photo | PhotoError]:
    """Yield the photo in every file, and in every picture of every .tar shard, or why there is none.

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
    try:
        with path.open("rb") as file, tarfile.open(fileobj=file, mode="r:") as shard:
            for member in shard:
                if Path(member.name).suffix.lower() in FORMATS and not Path(member.name).name.startswith("."):
                    yield _member(shard, member, f"{path}/{member.name}")
            file.seek(shard.offset)
            if file.read(tarfile.BLOCKSIZE) != bytes(tarfile.BLOCKSIZE):  # tarfile stops there in silence
                raise tarfile.ReadError("it ends early")
    except (OSError, tarfile.TarError, ValueError) as error:
        reason = " ".join(str(getattr(error, "strerror", None) or error).split())
        raise PhotoError(
            f"{shown(path)} is not an intact .tar ({reason})", hint="download it again"
        ) from error


def _member(shard: tarfile.TarFile, member: tarfile.TarInfo, name: str) -> Photo | PhotoError:
    if not member.isfile() or member.size > LARGEST:
        return PhotoError(f"{shown(name)} is not a plain file of at most 64 MiB", hint="leave it out")
    opened = shard.extractfile(member)
    try:
        return read_bytes(opened.read() if opened else b"", name, max_pixels=MOST_PIXELS)
    except PhotoError as error:
        return error


@dataclass
class CropFile:
    """Crops on disk, in a file that nobody else sees and that is gone with the process, however it ends.

    `failed` says what was left out, and why; `digest` is the SHA-256 of all crops.
    """

    canvas: Canvas
    count: int
    failed: list[DPVeilError]
    digest: str
    _file: Any
    _digests: list[bytes]

    @classmethod
    def of(
        cls,
        found: Iterable[Photo | PhotoError],
        canvas: Canvas,
        folder: Path,
        *,
        align: Align = centred,
    ) -> Self:
        """Return the crops of photos, written into `folder`. Raises `OutputError` where it is full."""
        try:
            file = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115  `__exit__` lets it go
            crops, seen = cls(canvas, 0, [], "", file, []), hashlib.sha256()
            for photo in found:
                if isinstance(photo, PhotoError):
                    crops.failed.append(photo)
                    continue
                crop = align(photo, canvas).tobytes()
                crops._file.write(crop)
                seen.update(crop)
                crops._digests.append(hashlib.sha256(crop).digest())
                crops.count += 1
            crops._file.flush()
            crops.digest = seen.hexdigest()
        except OSError as error:
            raise refusal(folder, error) from error
        return crops

    def __enter__(self) -> Self:
        """Return the crops."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Let the file go."""
        self._file.close()

    def source(self, seed: int, step: Callable[[], None] = lambda: None) -> Source:
        """Return all crops but those held out, in an order of the seed; `step` is called after each batch."""
        kept = np.setdiff1d(np.arange(self.count), self.held_out)
        order = kept[np.argsort(SeededBits(seed, "order of crops").words(len(kept)), kind="stable")]
        return lambda: self._batches(order, step)

    @property
    def held_out(self) -> Int64[np.ndarray, " k"]:
        """The numbers of every 20th crop."""
        return np.arange(EVERY - 1, self.count, EVERY)

    def batches(self, passes: int) -> int:
        """Return how often `step` is called in this many passes."""
        return passes * -(-(self.count - len(self.held_out)) // BATCH)

    def held_out_crops(self) -> Iterator[Crops]:
        """Yield the crops that training does not see, nor a copy of them."""
        held = self.held_out
        seen = {self._digests[number] for number in np.setdiff1d(np.arange(self.count), held)}
        return self._batches(np.array([n for n in held if self._digests[n] not in seen], int), lambda: None)

    def all_crops(self) -> Iterator[Crops]:
        """Yield every crop, in the order of the files."""
        return self._batches(np.arange(self.count), lambda: None)

    def taken(self, numbers: Int64[np.ndarray, " k"]) -> Crops:
        """Return these crops."""
        return np.concatenate([*self._batches(numbers, lambda: None), np.empty((0, *self.canvas), np.uint8)])

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
