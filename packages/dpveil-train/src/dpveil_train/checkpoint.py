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
