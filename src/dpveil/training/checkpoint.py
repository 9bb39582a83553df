"""Checkpoints, so that an interrupted training can resume."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol

import numpy as np

from dpveil.assets.store import Tensors, tensors_of
from dpveil.errors import ModelError
from dpveil.io import write_together


class Checkpoint(Protocol):
    """A place for the state of one training, of these images and settings and no others."""

    def read(self) -> Tensors:
        """Return what was written last, or nothing where nothing was."""

    def write(self, state: Tensors) -> None:
        """Keep the state in place of the one before."""


class Nowhere:
    """A checkpoint that keeps nothing."""

    def read(self) -> Tensors:
        """Return nothing."""
        return {}

    def write(self, state: Tensors) -> None:
        """Keep nothing."""


NOWHERE: Final = Nowhere()


@dataclass(frozen=True)
class FileCheckpoint:
    """A file at `path` that only a training of the same `key` goes on from; any other starts anew."""

    path: Path
    key: str

    def read(self) -> Tensors:
        """Return what was written last under this key."""
        try:
            state, key = tensors_of(self.path)
        except ModelError:
            return {}
        return state if key == self.key else {}

    def write(self, state: Tensors) -> None:
        """Replace the file, whole or not at all."""
        from safetensors.numpy import save

        kept = {name: np.array(value, order="C") for name, value in state.items()}
        write_together([(self.path, save(kept, metadata={"dpveil": self.key}))], replace=True)

    def remove(self) -> None:
        """Remove the file."""
        self.path.unlink(missing_ok=True)


@dataclass(frozen=True)
class Later:
    """The checkpoint of a part of a training, of what comes after its first `before` steps.

    What those left in `whole` is kept beside what the part writes.
    """

    whole: Checkpoint
    before: int

    def read(self) -> Tensors:
        """Return what the part wrote last, or nothing."""
        state = self.whole.read()
        done = int(state["done"]) - self.before if "done" in state else 0
        return {**state, "done": np.array(done)} if done > 0 else {}

    def write(self, state: Tensors) -> None:
        """Keep the part's state beside what was there before it."""
        done = np.array(int(state["done"]) + self.before)
        self.whole.write({**self.whole.read(), **state, "done": done})
