"""Sources of bits that tests control."""

from __future__ import annotations

import numpy as np

from dpveil.noise.bits import BitSource


class Keyed(BitSource):
    """A source of its own, with a key of zeros."""

    def _first_key(self) -> bytes:
        return bytes(32)


class NoBits(Keyed):
    """A source that must not be asked."""

    def words(self, count: int) -> np.ndarray:
        raise AssertionError("bits were drawn")

    def fill(self, out: np.ndarray) -> None:
        raise AssertionError("bits were drawn")


class Scripted(Keyed):
    """A source that gives these words and then fails."""

    def __init__(self, *words: int) -> None:
        super().__init__()
        self.left = list(words)

    def words(self, count: int) -> np.ndarray:
        given, self.left = self.left[:count], self.left[count:]
        assert len(given) == count, "more bits were drawn"
        return np.array(given, np.uint64)
