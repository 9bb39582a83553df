"""The code space that a certificate states, without the codec's file."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float64

from dpveil.assets.reference import Reference
from dpveil.codecs import Bounds, Statistics
from dpveil.core.numbers import Number


@dataclass(frozen=True)
class StatedSpace:
    """A code space of which only the length is known, from a certificate.

    Everything else needs the codec's file, and raises `ModelError` if that is not available.
    """

    codec: Reference

    @property
    def length(self) -> int:
        """The number of coordinates of a code."""
        return int(self.codec.length or 0)

    @property
    def _known(self) -> Statistics:
        known: Statistics = self.codec.held.statistics
        return known

    @property
    def column_energy(self) -> Float64[np.ndarray, " m"]:
        """`Statistics.column_energy` of the codec."""
        return self._known.column_energy

    @property
    def deviations(self) -> Float64[np.ndarray, " m"] | None:
        """`Statistics.deviations` of the codec."""
        return self._known.deviations

    def bounds(self, clip: Number = 0) -> Bounds:
        """Return `Statistics.bounds` of the codec."""
        return self._known.bounds(clip)

    def radius(self, clip: Number = 0) -> float:
        """Return `Statistics.radius` of the codec."""
        return self._known.radius(clip)
