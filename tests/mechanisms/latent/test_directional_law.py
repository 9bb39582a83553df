"""Directions in more than two coordinates, which the audit's circle does not see."""

import math

import numpy as np
import pytest
from scipy import integrate, stats

from dpveil.mechanisms.latent import Directional
from dpveil.noise.bits import SeededBits
from dpveil_audit.latent.case import AuditSpace

ALPHA = 1e-9
"""The test fails for a right mechanism with at most this probability; its seed is fixed."""


def along_law(kappa, dimension):
    """The distribution of ⟨x, μ⟩, whose density is ∝ e^(κw)·(1 - w²)^((i - 3)/2), by quadrature."""
    angles = np.linspace(0, math.pi, 20_001)
    density = np.exp(kappa * (np.cos(angles) - 1)) * np.sin(angles) ** (dimension - 2)
    below = integrate.cumulative_simpson(density, x=angles, initial=0)
    return lambda w: 1 - np.interp(np.arccos(np.clip(w, -1, 1)), angles, below / below[-1])


@pytest.mark.parametrize(("dimension", "epsilon"), [(3, 2), (8, 6)])
def test_concentration_is_epsilon_in_any_number_of_coordinates(dimension, epsilon):
    low, high = (-1.0,) * dimension, (1.0,) * dimension
    space = AuditSpace(low, high, (1.0,) * dimension, far=0.5)
    code = np.linspace(-0.5, 1, dimension)
    released = Directional(epsilon=epsilon).release(np.tile(code, (600, 1)), space, bits=SeededBits(4))
    along = released / 0.5 @ (code / np.linalg.norm(code))
    assert np.allclose(np.linalg.norm(released, axis=1), 0.5, atol=1e-3)
    assert stats.kstest(along, along_law(epsilon, dimension)).pvalue > ALPHA
    assert stats.kstest(along, along_law(2 * epsilon, dimension)).pvalue < ALPHA
