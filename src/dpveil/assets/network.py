"""A trained network in an ONNX file from anybody: checked before it runs, and run on one thread."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from functools import cached_property
from typing import Final
from weakref import WeakKeyDictionary

import numpy as np
from jaxtyping import Float32

from dpveil.assets.engines import Engine, fastest
from dpveil.assets.onnx_files import read
from dpveil.assets.shapes import measured
from dpveil.errors import ModelError

MOST: Final = 1 << 25
"""Largest network in bytes."""
ROOM: Final = 1 << 29
"""Most memory that all results of a network's layers may take together, in bytes; that which completes heads
takes 121 MB."""
FIXED: Final = 1 << 25
"""Most numbers that do not depend on the input; that which completes heads has 8.2 million, as weights of 16
bits count once as they are and once converted."""
WORK: Final = 1 << 36
"""Most operations of a run; that which completes heads takes 5 · 10^9, half a second of the slowest core."""
ENGINES: Final = threading.local()
"""The engines of each thread, by network."""


@dataclass(frozen=True, eq=False)
class Network:
    """The `contents` of an ONNX file with one input and one output of fixed shapes, `takes` and `gives`.

    `job` says what it does, for errors: a network that "completes heads". `large` is the factor by which it
    may exceed `MOST`, `FIXED`, `ROOM` and `WORK`.
    """

    contents: bytes
    takes: tuple[int, ...]
    gives: tuple[int, ...]
    job: str
    large: int = 1

    @classmethod
    def of(
        cls,
        tensor: np.ndarray,
        takes: tuple[int, ...],
        gives: tuple[int, ...],
        job: str,
        most: float,
        large: int = 1,
    ) -> Network:
        """Return the network in a file's array of bytes; raises `ModelError` if it is none of this job.

        It is run once, on zeros; the mean absolute value of what it gives is at most `most`.
        """
        if tensor.dtype != np.uint8 or tensor.ndim != 1 or not 0 < len(tensor) <= MOST * large:
            raise ModelError(f"the network is not an ONNX file of at most {MOST * large >> 20} MiB")
        made = cls(tensor.tobytes(), takes, gives, job, large)
        made.check(most)
        return made

    @cached_property
    def runs(self) -> bytes:
        """What engines get: the same network, written anew.

        Raises `ModelError` for contents that are no network of these shapes, or that take too much.
        """
        try:
            graph = read(self.contents)
            takes = measured(graph, self.takes, self.gives)
            runs = graph.written(self.takes, self.gives)
        except ValueError as error:
            raise ModelError(f"the network is none that {self.job}: {error}") from error
        if takes.fixed > FIXED * self.large:  # an engine computes them while it reads the file
            raise ModelError(f"the network has more than {FIXED * self.large >> 20} million constants")
        if 4 * takes.numbers > ROOM * self.large:
            raise ModelError(f"the network takes more than {ROOM * self.large >> 20} MiB")
        if takes.work > WORK * self.large:
            raise ModelError(f"the network takes more than {WORK * self.large:.1g} operations")
        return runs

    def check(self, most: float) -> None:
        """Raise `ModelError` for a network that takes too much, or gives other numbers than this job's."""
        if np.abs(self(np.zeros(self.takes, np.float32))).mean() > most:
            raise ModelError(f"the network is none that {self.job}: its numbers are far off")

    def __call__(self, given: Float32[np.ndarray, ...]) -> Float32[np.ndarray, ...]:
        """Return the output; raises `ModelError` for any other than finite numbers of the shape `gives`."""
        out = self.raw(given)
        if not np.isfinite(out).all():
            raise ModelError("the network gives numbers that are not finite")
        return out

    def raw(self, given: Float32[np.ndarray, ...]) -> Float32[np.ndarray, ...]:
        """Return the output, finite or not; raises `ModelError` for one of another shape."""
        engine = self._engine()
        try:
            out = np.asarray(engine(given)[0], np.float32)
        except Exception as error:  # the engines raise errors of their own
            raise ModelError(f"the network is none that {self.job}") from error
        if out.shape != self.gives:
            raise ModelError(f"the network is none that {self.job}: it gives {out.shape}")
        return out

    def _engine(self) -> Engine:
        """Return this thread's engine with the network loaded."""
        held: WeakKeyDictionary[Network, Engine] | None = getattr(ENGINES, "held", None)
        if held is None:
            held = ENGINES.held = WeakKeyDictionary()
        if self not in held:
            runs = self.runs
            try:
                held[self] = fastest(runs)(runs, threads=1)
            except Exception as error:  # the engines raise errors of their own
                raise ModelError(f"the network is none that {self.job}") from error
        return held[self]
