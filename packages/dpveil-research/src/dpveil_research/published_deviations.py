"""Non-negative deviations as the thesis compares them: in floating point, and some not private.

For comparison only. Nothing here is drawn exactly, `variable` and `redrawn` keep no promise at all, and no
release uses them.
"""

from __future__ import annotations

from collections.abc import Callable
from math import e
from typing import Any, Final

import numpy as np
from jaxtyping import Float64
from scipy.special import lambertw

from dpveil.noise.bits import BitSource
from dpveil.numbers.naive_bayes import Ints

Floats = Float64[np.ndarray, "..."]
Draw = Callable[[Floats, Floats, float, BitSource], Floats]
"""A function of (answers ≥ 0, sensitivities, ε, bits) that returns responses."""


def uniform(shape: tuple[int, ...], bits: BitSource) -> Floats:
    words = bits.words(int(np.prod(shape))) >> np.uint64(12)
    return ((words + 0.5) / 2.0**52).reshape(shape)


def laplace(shape: tuple[int, ...], bits: BitSource) -> Floats:
    place = uniform(shape, bits) - 0.5
    noise: Floats = -np.sign(place) * np.log1p(-2 * np.abs(place))
    return noise


def variable_scale(answers: Floats, sensitivity: Floats, epsilon: float) -> Floats:
    """Return the thesis's scale, which falls with the answer's distance i·ΔF from 0; not private (errata E1).

    Source: Croft thesis formulas 5.35 and 5.36, with branch 0 of Lambert's W up to i = 1/ε and branch -1
    beyond.

    >>> variable_scale(np.array([0.0, 0.9]), np.ones(2), 1.0).round(3).tolist()
    [1.586, 1.321]
    """
    i = np.asarray(answers / sensitivity, np.float64)
    first = -1 / (e * epsilon * float(lambertw(-1 / (2 * e), 0).real))  # in units of ΔF, at the constraint
    decay = np.exp(-i * epsilon)
    inner = np.maximum(-2 * i * decay * np.exp(-i * decay / first) / first, -1 / e)
    branch = np.where(i * epsilon <= 1, lambertw(inner, 0).real, lambertw(inner, -1).real)
    branch = np.where(inner == -1 / e, -1.0, branch)  # where both meet, SciPy may give nan
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        found = -i * first / (branch * first + i * decay)
    far = ~(np.isfinite(found) & (found > 0))  # powers of e underflow: 1/ε is the limit
    return sensitivity * np.where(i == 0, first, np.where(far, 1 / epsilon, found))


def truncated(answers: Floats, scale: Floats, bits: BitSource) -> Floats:
    """Return Laplace noise of this scale around the answers, conditioned on a response above 0."""
    below = np.exp(-answers / scale) / 2
    place = below + (1 - below) * uniform(answers.shape, bits)
    low = answers + scale * np.log(2 * np.minimum(place, 0.5))
    high = answers - scale * np.log(2 * np.maximum(1 - place, np.finfo(float).tiny))
    drawn: Floats = np.maximum(np.where(place < 0.5, low, high), 0)
    return drawn


def variable(answers: Floats, sensitivity: Floats, epsilon: float, bits: BitSource) -> Floats:
    """Return truncated draws with the thesis's variable scale: NOT private."""
    return truncated(answers, variable_scale(answers, sensitivity, epsilon), bits)


def double(answers: Floats, sensitivity: Floats, epsilon: float, bits: BitSource) -> Floats:
    return truncated(answers, 2 * sensitivity / epsilon, bits)


def one_record(answers: Floats, sensitivity: Floats, epsilon: float, bits: BitSource) -> Floats:
    """Return truncated draws with the least scale for one record: Holohan et al. for an upper end at
    infinity.
    """
    return truncated(answers, sensitivity / (np.logaddexp(0, epsilon) - np.log(2)), bits)


def snapped(answers: Floats, sensitivity: Floats, epsilon: float, bits: BitSource) -> Floats:
    drawn: Floats = np.maximum(answers + laplace(answers.shape, bits) * sensitivity / epsilon, 0)
    return drawn


def redrawn(answers: Floats, sensitivity: Floats, epsilon: float, bits: BitSource) -> Floats:
    """Return Laplace noise redrawn until the response is above 0 (Vaidya et al.): NOT private."""
    return truncated(answers, sensitivity / epsilon, bits)


DRAWS: Final[dict[str, Draw]] = {
    "variable scale": variable,
    "2ΔF/ε": double,
    "one record": one_record,
    "snapped": snapped,
    "redrawn": redrawn,
}


class Unsound:
    """A draw in place of the mechanism of the model's deviations; for experiments."""

    def __init__(self, draw: Draw, epsilon: float) -> None:
        self.draw, self.epsilon = draw, epsilon

    def release(self, squares: Ints, reach: Ints, sizes: list[int], bits: BitSource) -> Any:
        """Return a response for every root √squares / reach, whose sensitivity is 1."""
        return self.draw(np.sqrt(squares) / reach, np.ones(reach.shape), self.epsilon, bits)
