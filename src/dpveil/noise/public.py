"""Floating-point draws of public things, such as directions and faces of nobody; never noise of a release."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float64

from dpveil.noise.bits import BitSource


def uniforms(count: int, bits: BitSource) -> Float64[np.ndarray, " n"]:
    """Return numbers that are uniform between 0 and 1, neither included.

    53 bits each: 64 would round up to 1.
    """
    return np.asarray(((bits.words(count) >> np.uint64(11)).astype(np.float64) + 0.5) / 2.0**53)


def normals(count: int, bits: BitSource) -> Float64[np.ndarray, " n"]:
    """Return numbers with a standard normal distribution."""
    from scipy.special import ndtri

    return np.asarray(ndtri(uniforms(count, bits)))
