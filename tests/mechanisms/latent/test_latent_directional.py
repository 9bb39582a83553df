"""Directional: what a code's direction is, where draws are put, and what neither of them reads."""

from __future__ import annotations

import math

import numpy as np
import pytest
from latent_spaces import Space

from dpveil.errors import NoiseError
from dpveil.mechanisms.latent import Directional
from dpveil.noise.bits import SeededBits

SPACE = Space((-1.0, 2.0, 0.0), (1.0, 12.0, 0.25), far=0.75)
MIDDLE = np.array([0.0, 7.0, 0.125])
HALF = np.array([1.0, 5.0, 0.125])
SIDEWAYS = np.array([0.5, 0.0, 0.0])


def released(code, epsilon=5, seed=3, space=SPACE):
    return Directional(epsilon=epsilon).release(np.array([code]), space, bits=SeededBits(seed))[0]


def test_the_distance_from_the_middle_is_not_read():
    """Codes in one direction, in half sides, give one release of the same bits: their d is 0."""
    direction = np.array([0.25, -0.5, 0.125])
    outs = [released(MIDDLE + length * direction * HALF) for length in (0.5, 1, 2)]
    assert np.array_equal(outs[0], outs[1])
    assert np.array_equal(outs[0], outs[2])
    assert not np.array_equal(outs[0], released(MIDDLE + np.array([0.25, -0.5, 0.25]) * HALF))


def test_the_very_middle_has_the_direction_of_the_first_coordinate():
    assert np.array_equal(released(MIDDLE), released(MIDDLE + SIDEWAYS))
    assert not np.array_equal(released(MIDDLE), released(MIDDLE - SIDEWAYS))


def test_draws_lie_at_the_usual_distance():
    places = (np.array([released(MIDDLE + HALF, seed=seed) for seed in range(20)]) - MIDDLE) / HALF
    assert np.allclose(np.linalg.norm(places, axis=1), 0.75, atol=1e-4)
    tiny = Space(SPACE.low, SPACE.high, far=0.0)  # at least a step, so that something is shown
    assert np.abs((released(MIDDLE, space=tiny) - MIDDLE) / HALF).max() <= 1.01 / 2**15


def test_a_large_budget_shows_the_direction():
    code = MIDDLE + np.array([0.6, 0.3, -0.2]) * HALF
    found = (released(code, epsilon=10**8) - MIDDLE) / HALF
    assert np.allclose(found, 0.75 * np.array([0.6, 0.3, -0.2]) / 0.7, atol=1e-3)
    assert math.isclose(Directional(epsilon=1).guarantee(SPACE).diameter, 2)


def test_what_cannot_be_drawn_is_refused_before():
    with pytest.raises(NoiseError, match="in 1 dimensions"):
        Directional(epsilon=1).prepare(Space((0.0,), (1.0,)))
    with pytest.raises(NoiseError, match="concentration"):
        Directional(epsilon=10**10).prepare(SPACE)
