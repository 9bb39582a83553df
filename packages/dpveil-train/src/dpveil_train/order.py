"""What all trainings share: an order, its result, progress, crops that are read again, and checkpoints."""

from __future__ import annotations

import errno
import hashlib
import json
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final, Generic, Protocol, TypeVar

import numpy as np
from jaxtyping import Float32

from dpveil.assets.store import SUFFIX, Stored, Tensors, card_path, tensors_of
from dpveil.codecs.base import Canvas, Crops
from dpveil.core.numbers import Json
from dpveil.errors import DPVeilError, InvalidParameter, ModelError
from dpveil.io import write_together
from dpveil.io.writing import refusal

M = TypeVar("M", bound=Stored)

Progress = Callable[[int, str], AbstractContextManager[Callable[[], None]]]
"""Called with a number of steps and a word for them; the context yields the function to call after each."""


@contextmanager
def silent(total: int, word: str) -> Iterator[Callable[[], None]]:
    """Report no progress."""
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
            raise refusal(self.out, FileNotFoundError(errno.ENOENT, ""))
        for path in (self.out, card_path(self.out)):
            if path.exists() and not self.replace:
                raise refusal(path, FileExistsError(errno.EEXIST, ""))

    def checkpoint(self, about: dict[str, Any]) -> FileCheckpoint:
        """Return the checkpoint file beside the model, for this order and the data described by `about`."""
        told = {**about, "seed": self.seed, **self.settings()}
        key = hashlib.sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()
        return FileCheckpoint(self.out.with_name(f".{self.out.name}.checkpoint"), key)


@dataclass(frozen=True)
class Trained(Generic[M]):
    """The model that was written, its file's hash, the number of images, and the errors of others."""

    model: M
    digest: str
    images: int
    failed: list[DPVeilError]


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


class Checkpoint(Protocol):
    """Storage for the state of one training, with certain images and settings."""

    def read(self) -> Tensors:
        """Return the state written last, or an empty mapping."""

    def write(self, state: Tensors) -> None:
        """Store the state, replacing the one before."""


class Nowhere:
    """A checkpoint that stores nothing."""

    def read(self) -> Tensors:
        """Return an empty mapping."""
        return {}

    def write(self, state: Tensors) -> None:
        """Discard the state."""


NOWHERE: Final = Nowhere()


@dataclass(frozen=True)
class FileCheckpoint:
    """A checkpoint file at `path`, ignored unless it was written with the same `key`."""

    path: Path
    key: str

    def read(self) -> Tensors:
        """Return the state written last with this key; empty for a missing, damaged or other file."""
        try:
            state, key = tensors_of(self.path)
        except ModelError:
            return {}
        return state if key == self.key else {}

    def write(self, state: Tensors) -> None:
        """Replace the file atomically; raises `OutputError`."""
        from safetensors.numpy import save

        kept = {name: np.array(value, order="C") for name, value in state.items()}
        write_together([(self.path, save(kept, metadata={"dpveil": self.key}))], replace=True)

    def remove(self) -> None:
        """Remove the file."""
        self.path.unlink(missing_ok=True)


@dataclass(frozen=True)
class Later:
    """The checkpoint of the part of a training that follows its first `before` steps.

    It is stored in the checkpoint `whole`, beside the state that those steps left there.
    """

    whole: Checkpoint
    before: int

    def read(self) -> Tensors:
        """Return the state of the part, or an empty mapping if it has not started."""
        state = self.whole.read()
        done = int(state["done"]) - self.before if "done" in state else 0
        return {**state, "done": np.array(done)} if done > 0 else {}

    def write(self, state: Tensors) -> None:
        """Store the part's state beside that of the steps before it."""
        done = np.array(int(state["done"]) + self.before)
        self.whole.write({**self.whole.read(), **state, "done": done})
