"""What all trainings share: an order, its result, progress, and crops that are read again."""

from __future__ import annotations

import errno
import hashlib
import json
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any, Generic, TypeVar

import numpy as np
from jaxtyping import Float32

from dpveil.assets.trained_files import SUFFIX, TrainedFile, card_path
from dpveil.codecs.base import Canvas, Crops
from dpveil.core.rationals import Json
from dpveil.errors import DPVeilError, InvalidParameter, PhotoError
from dpveil.io.writing import write_error

M = TypeVar("M", bound=TrainedFile)

Progress = Callable[[int, str], AbstractContextManager[Callable[[], None]]]
"""Called with a number of steps and a word for them; the context yields the function to call after each."""


@contextmanager
def silent(total: int, word: str) -> Iterator[Callable[[], None]]:
    yield lambda: None


@dataclass(frozen=True, kw_only=True)
class Order:
    """What is to be trained: from the images in `paths` to the file `out`, reproducibly from `seed`.

    `paths` are image files or WebDataset shards (.tar). `data` and `terms` describe the images and their
    licence on the model card. `replace` allows an existing model to be replaced.
    """

    paths: tuple[Path, ...]
    out: Path
    seed: int = 0
    data: str = "not stated"
    terms: str = "not stated"
    replace: bool = False

    def settings(self) -> dict[str, Json]:
        """Return the settings that determine the model together with the images and the seed."""
        return {"dpveil": version("dpveil")}

    def check(self) -> None:
        """Raise `InvalidParameter` or `OutputError` if `out` cannot be written, before anything is read."""
        if self.out.suffix != SUFFIX:
            problem = f"does not end in {SUFFIX}"
            raise InvalidParameter("out", str(self.out), problem, hint="such as model.safetensors")
        if not self.out.parent.is_dir():
            raise write_error(self.out, FileNotFoundError(errno.ENOENT, ""))
        for path in (self.out, card_path(self.out)):
            if path.exists() and not self.replace:
                raise write_error(path, FileExistsError(errno.EEXIST, ""))

    def key(self, about: dict[str, Any]) -> str:
        """Return what a checkpoint is known by: a hash of this order and of what describes the data."""
        told = {**about, "seed": self.seed, **self.settings()}
        return hashlib.sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()


@dataclass(frozen=True)
class Trained(Generic[M]):
    """The model that was written, its file's hash, the number of images, and the errors of others."""

    model: M
    digest: str
    images: int
    failed: list[DPVeilError]


def refuse_none(count: int, failed: list[DPVeilError], hint: str) -> None:
    """Raise `PhotoError` if none of the images could be read, or there was none, with a hint for shards."""
    if count:
        return
    if len(failed) == 1:
        raise failed[0]
    if failed:
        raise PhotoError(f"none of {len(failed)} images can be read", hint=f"the first one: {failed[0]}")
    raise PhotoError("the shards contain no pictures", hint=hint)


Source = Callable[[], Iterable[Crops]]
"""Returns the training crops in batches, in the same order at every call."""


def mean_of(source: Source, length: int) -> tuple[Float32[np.ndarray, " pixels"], int, Canvas]:
    """Return the mean crop as a row of levels, the number of crops, and their canvas.

    Raises `InvalidParameter` if there are no more than `length` crops, or they differ in shape.
    """
    total, count, canvas = np.zeros(0), 0, (0, 0, 0)
    for crops in source():
        if not count:
            canvas = (crops.shape[1], crops.shape[2], crops.shape[3])
            total = np.zeros(crops[0].size)
        if crops.shape[1:] != canvas:
            raise InvalidParameter("images", None, "are not of one shape", hint="give crops of one canvas")
        total += crops.reshape(len(crops), -1).sum(axis=0, dtype=np.float64)
        count += len(crops)
    if count <= length:
        raise InvalidParameter(
            "length", length, f"is not below the number of training images, {count}", hint="give more images"
        )
    return (total / count).astype(np.float32), count, canvas
