"""Shared by all trainings: an order, its result, and progress reporting."""

from __future__ import annotations

import errno
import hashlib
import json
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any, Generic, TypeVar

from dpveil.assets.store import SUFFIX, Stored, card_path
from dpveil.core.numbers import Json
from dpveil.errors import DPVeilError, InvalidParameter
from dpveil.io.writing import refusal
from dpveil_train.checkpoint import FileCheckpoint

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
