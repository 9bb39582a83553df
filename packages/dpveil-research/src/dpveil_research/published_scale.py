"""Truncated Laplace with the variable scale that the thesis prints, which is private for no ε (errata E1).

It is in no table of mechanisms, so only experiments use it.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final

import numpy as np
from jaxtyping import Float64

from dpveil.core.guarantee import Guarantee, Relation, Scope
from dpveil.core.numbers import Number, exact
from dpveil.errors import InvalidParameter
from dpveil.noise.bits import BitSource
from dpveil.noise.laplace import discrete_laplace
from dpveil_research.published_deviations import variable_scale

STEPS: Final = 1 << 8
"""Points of the lattice per ΔF."""
PARTS: Final = 1 << 20
"""The scale is rounded to a multiple of 1/PARTS steps."""
Floats = Float64[np.ndarray, "..."]


def published_scale(answer: float, epsilon: float, sensitivity: float = 1) -> float:
    """Return the scale for an answer at this distance above the end of the range 0 to infinity.

    Source: Croft thesis 5.35 at the end itself, 5.36 elsewhere; see `variable_scale`.

    >>> [round(published_scale(answer, 1), 3) for answer in (0, 0.9)]
    [1.586, 1.321]
    """
    return float(variable_scale(np.array([float(answer)]), np.array([float(sensitivity)]), epsilon)[0])


@dataclass(frozen=True)
class PublishedTruncatedLaplace:
    """Laplace noise truncated below 0 and normalised, with a scale that falls with the distance from the end.

    Draws are multiples of ΔF/256. `epsilon` and `sensitivity` are those of the formula; no ε holds. Source:
    Croft thesis theorem 1, errata E1.

    >>> str(PublishedTruncatedLaplace(epsilon=1).guarantee())
    'no formal guarantee'
    """

    epsilon: Number
    sensitivity: Number = 1

    def scale(self, answer: Number) -> float:
        """Return the scale for an answer, in its units."""
        return published_scale(float(answer), float(self.epsilon), float(self.sensitivity))

    def guarantee(self) -> Guarantee:
        """Return the heuristic guarantee, with the known attack."""
        return Guarantee(
            kind="heuristic",
            relation=Relation("any-database"),
            scope=Scope("one number, 0 or more"),
            broken_by=("two scales: far responses tell answers apart with no bound (erratum E1)",),
        )

    def log_density(self, response: Any, answer: float) -> Floats:
        """Return the log density at responses of at least 0."""
        scale = self.scale(answer)
        far = np.abs(np.asarray(response, np.float64) - answer)
        found: Floats = -far / scale - np.log(scale * (2 - np.exp(-answer / scale)))
        return found

    def release(self, answer: Number, size: int, bits: BitSource) -> Float64[np.ndarray, " size"]:
        """Return `size` responses to one answer, which is rounded to the lattice, with a scale to a part in
        2^20.

        Raises `InvalidParameter` for an answer below 0.
        """
        if float(answer) < 0:
            raise InvalidParameter("answer", float(answer), "is below 0, the end of the range")
        step = exact(self.sensitivity, "sensitivity") / STEPS
        point = round(exact(answer, "answer") / step)
        scale = Fraction(round(self.scale(answer) / float(step) * PARTS), PARTS)
        out, missing = np.empty(size, np.int64), np.arange(size)
        while len(missing):
            drawn = point + discrete_laplace(scale, len(missing), bits)
            good = drawn >= 0
            out[missing[good]] = drawn[good]
            missing = missing[~good]
        return out * float(step)
