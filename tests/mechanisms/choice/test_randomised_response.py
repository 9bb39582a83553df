"""Randomised response: the law over all inputs, its draws, and mutants that must fail."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import permutations

import numpy as np
import pytest

from dpveil.audit.distributions import finite_distribution
from dpveil.audit.fit import fit, fit_pairs
from dpveil.errors import InvalidParameter
from dpveil.mechanisms.choice.randomised_response import RandomisedResponse
from dpveil.noise.bits import SeededBits
from dpveil.noise.matrix import log_above

EPSILONS = [Fraction(1, 10**6), Fraction(1, 2), Fraction(2), Fraction(8), Fraction(40)]
TOTAL = 1 << 64
DRAWS = 40_000


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


def draws_of(method, true, seed):
    return method.draw(np.full(DRAWS, true, np.int64), SeededBits(seed))


@pytest.mark.parametrize(("count", "true"), [(2, 1), (3, 0), (5, 4)])
def test_draws_follow_the_written_law_each_anew(count, true):
    """A right sampler fails with probability 1e-9 at most, twice for each case."""
    method = RandomisedResponse(epsilon=Fraction(3, 2), values=count)
    law = finite_distribution(written(1.5, count, true))
    drawn = draws_of(method, true, 5)
    assert not fit(drawn, law).rejected
    assert not fit_pairs(drawn, law).rejected


def test_answers_of_mixed_rows_follow_their_own():
    """A right sampler fails with probability 3e-9 at most."""
    method = RandomisedResponse(epsilon=1, values=3)
    true = np.arange(3 * DRAWS) % 3
    drawn = method.draw(true, SeededBits(2))
    for value in range(3):
        assert not fit(drawn[true == value], finite_distribution(written(1, 3, value))).rejected


# Mutants: each is a way in which randomised response goes wrong.


def test_mutant_that_keeps_as_if_there_were_two_values():
    """e^ε/(1 + e^ε) belongs to two values; with more, the others share what is left."""
    epsilon, count = Fraction(2), 5
    kept = Fraction(math.exp(2) / (1 + math.exp(2)))
    other = (1 - kept) / (count - 1)
    rows = [[kept if y == x else other for y in range(count)] for x in range(count)]
    assert float(worst(rows)) == pytest.approx(float(epsilon) + math.log(count - 1))
    words = SeededBits(1).words(DRAWS)
    others = 1 + (words % np.uint64(count - 1)).astype(np.int64)
    drawn = np.where(words < np.uint64(int(kept * TOTAL)), 0, others)
    assert fit(drawn, finite_distribution(written(2, count, 0))).rejected


def test_mutant_that_draws_among_all_and_counts_the_true_one_out():
    """Kept with the right chance, else any value, the true one too: kept too often, so more is spent."""
    count, epsilon = 4, 1.0
    kept = Fraction(math.exp(epsilon) / (math.exp(epsilon) + count - 1))
    spill = (1 - kept) / count
    rows = [[kept + spill if y == x else spill for y in range(count)] for x in range(count)]
    assert float(worst(rows)) > epsilon + 0.4
    right, again = (np.zeros(DRAWS, np.int64) for _ in range(2))
    method = RandomisedResponse(epsilon=1, values=count)
    drawn = method.draw(right, SeededBits(3))
    uniform = (SeededBits(4).words(DRAWS) % np.uint64(count)).astype(np.int64)
    mutant = np.where(drawn == right, again, uniform)
    law = finite_distribution(written(epsilon, count, 0))
    assert not fit(drawn, law).rejected
    assert fit(mutant, law).rejected


def test_mutant_that_reuses_a_draw():
    method = RandomisedResponse(epsilon=1, values=4)
    law = finite_distribution(written(1, 4, 2))
    once = draws_of(method, 2, 8)
    assert fit_pairs(np.repeat(once[: DRAWS // 2], 2), law).rejected


def test_mutant_weights_rounded_towards_less_noise_do_not_certify():
    """Rounding e^-ε down to a multiple of 2^-8 makes a chance of zero at ε = 8: told apart with certainty."""
    method = RandomisedResponse(epsilon=8, values=3)
    assert all(weight > 0 for row in method.matrix.weights for weight in row)
    assert math.floor(math.exp(-8) * 256) == 0


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
