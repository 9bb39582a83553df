"""A trained network in an ONNX file: our own run here, any other in a process of its own, on one thread."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from typing import TYPE_CHECKING, Final
from weakref import WeakKeyDictionary

import numpy as np

from dpveil.assets.engines import Engine, fastest
from dpveil.core.array_types import Float32
from dpveil.errors import ModelError

if TYPE_CHECKING:
    from dpveil.assets.confined_networks import Confined

MOST_NETWORK_BYTES: Final = 1 << 25  # largest network in bytes
MEMORY_BYTES: Final = 1 << 32  # memory of the process that runs one, in bytes
SECONDS: Final = 60  # time of a run
OURS: Final = frozenset(
    {
        "03a99bdbbff6019d861336f3182c4f5c5c1ce0b240d2df15f475dc0e9396d86e",  # denoiser
        "a189349ad0d4e88276d655177b63cc7872ae7b4cfa97ee2a9fa648aaa3465438",  # gan, which makes faces
        "12e7ff579e3dc62321de26427e121ceb5fb870407d881ab99eb3d19a0eb86960",  # gan, which encodes them
        "54d95954a699b5450bd52f7f3f3eaa07338af35f66f9c98b925e0e54a95e3ea8",  # surroundings
        "ceb0c35b02d5fd154686d8e9e6905340707827417fb2e7d6d2523a3804e5a079",  # surroundings, light
        "cca65a9f799cf444127458d8bb9633084283f7654113e3bf26c53bf7a951bfa4",  # upconv
    }
)
"""SHA-256 of the networks in dpveil-faces."""
ENGINES: Final = threading.local()  # the engines of each thread, by network
AHEAD: Final = ThreadPoolExecutor(2, thread_name_prefix="networks")
"""Threads for what is needed soon, and takes its time; what fails there fails again where it is needed."""


@dataclass(frozen=True, eq=False)
class Network:
    """The `contents` of an ONNX file with one input and one output of fixed shapes, `takes` and `gives`.

    `job` says what it does, for errors: a network that "finds faces". `large` is the factor by which it
    may exceed `MOST_NETWORK_BYTES`, `MEMORY_BYTES` and `SECONDS`.
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

        One that is not ours is run on zeros; the mean absolute value of what it gives is at most `most`.
        """
        if tensor.dtype != np.uint8 or tensor.ndim != 1 or not 0 < len(tensor) <= MOST_NETWORK_BYTES * large:
            raise ModelError(
                f"the network is not an ONNX file of at most {MOST_NETWORK_BYTES * large >> 20} MiB"
            )
        made = cls(tensor.tobytes(), takes, gives, job, large)
        if made.is_ours:
            AHEAD.submit(made._engine)
        else:
            made.check(most)
        return made

    @cached_property
    def is_ours(self) -> bool:
        return sha256(self.contents).hexdigest() in OURS

    @cached_property
    def _process(self) -> Confined:
        from dpveil.assets.confined_networks import Confined

        return Confined(
            "alone", self.contents, memory=MEMORY_BYTES * self.large, seconds=float(SECONDS * self.large)
        )

    def check(self, most: float) -> None:
        """Raise `ModelError` for a network that gives other numbers than this job's, or draws some anew."""
        zeros = np.zeros(self.takes, np.float32)
        first = self(zeros)
        if np.abs(first).mean() > most:
            raise ModelError(f"the network is none that {self.job}: its numbers are far off")
        if not np.allclose(first, self(zeros), rtol=1e-3):
            raise ModelError(f"the network is none that {self.job}: it draws random numbers")

    def __call__(self, given: Float32[np.ndarray, ...]) -> Float32[np.ndarray, ...]:
        """Return the output; raises `ModelError` for any other than finite numbers of the shape `gives`."""
        out = self.raw(given)
        if not np.isfinite(out).all():
            raise ModelError("the network gives numbers that are not finite")
        return out

    def raw(self, given: Float32[np.ndarray, ...]) -> Float32[np.ndarray, ...]:
        """Return the output, finite or not; raises `ModelError` for one of another shape."""
        try:
            out = self._engine()(given)[0] if self.is_ours else self._process(np.asarray(given, np.float32))
        except Exception as error:  # the engines raise errors of their own
            why = f": {error.message}" if isinstance(error, ModelError) else ""
            raise ModelError(f"the network is none that {self.job}{why}") from error
        out = np.asarray(out, np.float32)
        if out.shape != self.gives:
            raise ModelError(f"the network is none that {self.job}: it gives {out.shape}")
        return out

    def _engine(self) -> Engine:
        held: WeakKeyDictionary[Network, Engine] | None = getattr(ENGINES, "held", None)
        if held is None:
            held = ENGINES.held = WeakKeyDictionary()
        if self not in held:
            held[self] = fastest(self.contents, 1)(self.contents, threads=1)
        return held[self]
