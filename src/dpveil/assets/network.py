"""A trained network in an ONNX file from anybody: checked before it runs, and run on one thread."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import Final
from weakref import WeakKeyDictionary

import numpy as np
from jaxtyping import Float32

from dpveil.assets.engines import Engine, fastest, needed
from dpveil.assets.onnx_files import constants, operators
from dpveil.errors import ModelError

MOST: Final = 1 << 25
"""Largest network in bytes."""
ROOM: Final = 1 << 29
"""Most memory that all results of a network's layers may take together, in bytes; that which completes heads
takes 121 MB."""
FIXED: Final = 1 << 25
"""Most numbers that do not depend on the input; that which completes heads has 8.2 million, as weights of 16
bits count once as they are and once converted."""
ELSEWHERE: Final = b"location"
"""What an ONNX file has in it if it names other files, which an engine would open."""
ENGINES: Final = threading.local()
"""The engines of each thread, by network."""
OPERATORS: Final = frozenset(
    {
        "Add",
        "Cast",
        "Concat",
        "Constant",
        "Conv",
        "DepthToSpace",
        "Div",
        "Flatten",
        "Gemm",
        "Identity",
        "InstanceNormalization",
        "LeakyRelu",
        "Mul",
        "Reshape",
        "Resize",
        "Shape",
        "Slice",
        "Softmax",
        "Sqrt",
        "Tanh",
    }
)
"""What a network may consist of: `dpveil.training` writes no other operators."""


@dataclass(frozen=True, eq=False)
class Network:
    """The `contents` of an ONNX file with one input and one output of fixed shapes, `takes` and `gives`.

    `job` says what it does, for errors: a network that "completes heads".
    """

    contents: bytes
    takes: tuple[int, ...]
    gives: tuple[int, ...]
    job: str

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

        It is run once, on zeros; the mean absolute value of what it gives is at most `most`. `large` is the
        factor by which its sizes may exceed `MOST`, `FIXED` and `ROOM`.
        """
        if tensor.dtype != np.uint8 or tensor.ndim != 1 or not 0 < len(tensor) <= MOST * large:
            raise ModelError(f"the network is not an ONNX file of at most {MOST * large >> 20} MiB")
        made = cls(tensor.tobytes(), takes, gives, job)
        made.check(most, large)
        return made

    def check(self, most: float, large: int = 1) -> None:
        """Raise `ModelError` for anything but a network of this job; nothing that loops is ever run."""
        if ELSEWHERE in self.contents:
            raise ModelError("the network may have parts in other files")
        try:
            unknown = operators(self.contents) - OPERATORS
            fixed = constants(self.contents)
        except ValueError as error:
            raise ModelError(f"the network is none that {self.job}") from error
        if unknown:
            raise ModelError(f"the network has operators that none needs that {self.job}")
        if fixed > FIXED * large:  # an engine computes them while it reads the file
            raise ModelError(f"the network has more than {FIXED * large >> 20} million constants")
        try:
            room = needed(self.contents, self.takes)
        except Exception as error:  # OpenCV raises errors of its own
            raise ModelError(f"the network is none that {self.job}") from error
        if room > ROOM * large:
            raise ModelError(f"the network takes more than {ROOM * large >> 20} MiB")
        if np.abs(self(np.zeros(self.takes, np.float32))).mean() > most:
            raise ModelError(f"the network is none that {self.job}: its numbers are far off")

    def __call__(self, given: Float32[np.ndarray, ...]) -> Float32[np.ndarray, ...]:
        """Return the output; raises `ModelError` for any other than finite numbers of the shape `gives`."""
        try:
            out = np.asarray(self._engine()(given)[0], np.float32)
        except Exception as error:  # the engines raise errors of their own
            raise ModelError(f"the network is none that {self.job}") from error
        if out.shape != self.gives:
            raise ModelError(f"the network is none that {self.job}: it gives {out.shape}")
        if not np.isfinite(out).all():
            raise ModelError("the network gives numbers that are not finite")
        return out

    def _engine(self) -> Engine:
        """Return this thread's engine with the network loaded."""
        held: WeakKeyDictionary[Network, Engine] | None = getattr(ENGINES, "held", None)
        if held is None:
            held = ENGINES.held = WeakKeyDictionary()
        if self not in held:
            held[self] = fastest(self.contents)(self.contents, threads=1)
        return held[self]
