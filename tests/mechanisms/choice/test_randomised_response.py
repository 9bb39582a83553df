"""Randomised response: the law over all inputs and its draws."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import permutations

import numpy as np
import pytest

from dpveil.errors import InvalidParameter
from dpveil.mechanisms.choice.rank_choice import RandomisedResponse
from dpveil.noise.bits import SeededBits
from dpveil.noise.matrix import log_above

EPSILONS = [Fraction(1, 10**6), Fraction(1, 2), Fraction(2), Fraction(8), Fraction(40)]
TOTAL = 1 << 64


def written(epsilon, count, true):
    """The law as it is written in the papers, in floating point."""
    mass = np.full(count, 1 / (math.exp(epsilon) + count - 1))
    mass[true] *= math.exp(epsilon)
    return mass


def worst(rows):
    """The largest log-ratio of two rows of exact chances, over every outcome."""
    pairs = permutations(rows, 2)
    return max(log_above(max(a / b, b / a)) for x, y in pairs for a, b in zip(x, y, strict=True))


def exact_rows(method):
    return [[Fraction(weight, TOTAL) for weight in row] for row in method.matrix.weights]


@pytest.mark.parametrize("count", [2, 3, 5, 40])
@pytest.mark.parametrize("epsilon", EPSILONS, ids=float)
def test_every_two_values_keep_epsilon_and_nothing_is_wasted(epsilon, count):
    method = RandomisedResponse(epsilon=epsilon, values=count)
    rows = exact_rows(method)
    assert all(sum(row) == 1 for row in rows)
    assert worst(rows[:5]) <= epsilon
    assert worst(rows[:5]) >= epsilon * (1 - Fraction(1, 1000)) - Fraction(1, 2**50)
    for true, row in enumerate(rows):
        assert np.allclose(
            [float(p) for p in row], written(float(epsilon), count, true), rtol=1e-3, atol=1e-17
        )
    assert method.kept == rows[0][0]
    assert method.guarantee().epsilon == epsilon
    assert method.guarantee().relation.name == "any-image"


def test_what_is_refused():
    for values in (1, 257):
        with pytest.raises(InvalidParameter, match="values"):
            RandomisedResponse(epsilon=1, values=values)
    with pytest.raises(InvalidParameter, match="epsilon"):
        RandomisedResponse(epsilon=0, values=2)
    method = RandomisedResponse(epsilon=1, values=3)
    for wrong in (np.array([3]), np.array([-1]), np.array([1.0]), np.array([[1]])):
        with pytest.raises(InvalidParameter, match="true"):
            method.draw(wrong, SeededBits(1))
    assert min(map(min, RandomisedResponse(epsilon=60, values=2).matrix.weights)) == 1
    assert len(method.draw(np.zeros(0, np.int64), SeededBits(1))) == 0
