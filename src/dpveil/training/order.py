"""What all trainings share: an order, its result, and progress reporting."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

from dpveil import __version__
from dpveil.assets.store import SUFFIX, Stored, card_path
from dpveil.core.numbers import Json
from dpveil.errors import DPVeilError, InvalidParameter, OutputError
from dpveil.io.names import shown
from dpveil.training.checkpoint import FileCheckpoint

M = TypeVar("M", bound=Stored)

Progress = Callable[[int, str], AbstractContextManager[Callable[[], None]]]
"""Given a number of parts and a word for them, a block to work in; it yields what to call after each part."""


@contextmanager
def silent(total: int, word: str) -> Iterator[Callable[[], None]]:
    """Tell nobody."""
    yield lambda: None


@dataclass(frozen=True, kw_only=True)
class Order:
    """What is to be trained: from the pictures in `paths` into the file `out`, the same for the same `seed`.

    `paths` are files, or .tar shards of WebDataset. `data` and `terms` say on the model card what the
    pictures are and what their licence allows. `replace` allows a model that exists to be replaced.
    """

    paths: tuple[Path, ...]
    out: Path
    seed: int = 0
    data: str = "not stated"
    terms: str = "not stated"
    replace: bool = False

    def settings(self) -> dict[str, Json]:
        """Return what, beside the pictures and the seed, decides what is learned."""
        return {"dpveil": __version__}

    def check(self) -> None:
        """Raise what can be known to be wrong before anything is read: `InvalidParameter`, `OutputError`."""
        if self.out.suffix != SUFFIX:
            problem = f"does not end in {SUFFIX}"
            raise InvalidParameter("--out", str(self.out), problem, hint="such as model.safetensors")
        if not self.out.parent.is_dir():
            problem = f"cannot write {shown(self.out)}: there is no such folder"
            raise OutputError(problem, hint="make the folder first")
        for path in (self.out, card_path(self.out)):
            if path.exists() and not self.replace:
                problem = f"cannot write {shown(path)}: it exists already"
                raise OutputError(problem, hint="choose another name, or use --force")

    def checkpoint(self, about: dict[str, Any]) -> FileCheckpoint:
        """Return the file beside the model that keeps what is finished of this very training."""
        told = {**about, "seed": self.seed, **self.settings()}
        key = hashlib.sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()
        return FileCheckpoint(self.out.with_name(f".{self.out.name}.checkpoint"), key)


@dataclass(frozen=True)
class Trained(Generic[M]):
    """What was trained and written, its hash, from how many images, and which were left out and why."""

    model: M
    digest: str
    images: int
    failed: list[DPVeilError]
