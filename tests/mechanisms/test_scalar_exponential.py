"""The exponential mechanism and permute-and-flip, against brute force over all orders and all rates."""

import math
from fractions import Fraction
from itertools import permutations

import numpy as np
import pytest

from dpveil.mechanisms.scalar import Exponential, PermuteAndFlip, Range, TruncatedLaplace
from dpveil.mechanisms.scalar.exponential import BITS, law, log_law

RELATIONS = ("any-database", "database-record")
QUERIES = [
    {"range": (0, 1), "sensitivity": 1},
    {"range": (0, 4), "sensitivity": 1},
    {"range": (0, 9), "sensitivity": 3},
    {"range": Range(0, 9, gaps=[(3, 7)]), "sensitivity": 2},
]


def brute(answer, points, rate):
    """The law by its definition: every order of the responses, every coin."""
    chance = [math.exp(-rate * abs(y - answer)) for y in points]
    found = [0.0] * len(points)
    for order in permutations(range(len(points))):
        left = 1.0
        for y in order:
            found[y] += left * chance[y]
            left *= 1 - chance[y]
    return [value / math.factorial(len(points)) for value in found]


def cost(logs, points, reach, relation):
    """Log-ratios of all pairs, by a double loop."""
    worst = 0.0
    for i, x in enumerate(points):
        for j, z in enumerate(points[:i]):
            apart = x - z
            ratio = np.abs(logs[i] - logs[j]).max()
            if relation == "any-database":
                worst = max(worst, ratio * reach / apart)
            elif apart <= reach:
                worst = max(worst, ratio)
    return worst


def exponential_logs(points, rate):
    weights = np.exp(-rate * np.abs(np.subtract.outer(points, points)))
    return np.log(weights / weights.sum(axis=1, keepdims=True))


@pytest.mark.parametrize("points", [[0, 1], [0, 1, 2, 3, 4], [0, 1, 2, 3, 4, 5], [0, 2, 3, 7]])
@pytest.mark.parametrize("rate", [0.05, 0.6, 3.0])
def test_permute_and_flip_is_its_definition(points, rate):
    points = np.array(points)
    wanted = np.array([brute(x, points, rate) for x in points])
    assert np.allclose(np.exp(log_law(points, rate)), wanted, rtol=1e-12, atol=0)
    for row, x in enumerate(points):
        chances = [round(Fraction(math.exp(-rate * abs(int(y - x)))) * (1 << BITS)) for y in points]
        exact = [value / (1 << BITS) for value in law(chances)]
        assert np.allclose(exact, wanted[row], rtol=1e-12, atol=0)
        assert sum(exact) == pytest.approx(1, abs=1e-15)


@pytest.mark.parametrize("rate", [0.01, 0.3, 2.5])
def test_integers_and_floating_point_agree_on_many_responses(rate):
    points = np.arange(60)
    chances = [round(Fraction(math.exp(-rate * abs(int(y) - 17))) * (1 << BITS)) for y in points]
    exact = np.array([value / (1 << BITS) for value in law(chances)])
    assert np.allclose(exact, np.exp(log_law(points, rate)[17]), rtol=1e-11, atol=0)


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("query", QUERIES)
@pytest.mark.parametrize("epsilon", ["0.3", "2"])
def test_rates_are_the_largest_that_hold(query, epsilon, relation):
    """A thousandth more breaks the promise, and the integers keep it, both by a double loop."""
    for kind, logs in ((Exponential, exponential_logs), (PermuteAndFlip, log_law)):
        method = kind(**query, epsilon=epsilon, relation=relation)
        points, reach = method.lattice.points, method.lattice.reach
        rate = float(method.rate * method.lattice.step)
        budget = float(epsilon)
        assert budget * (1 - 1e-6) <= cost(logs(points, rate), points, reach, relation) <= budget
        assert cost(logs(points, 1.001 * rate), points, reach, relation) > budget
        held = np.log(np.array(method.integers.weights, dtype=object).astype(float))
        assert cost(held, points, reach, relation) <= budget
        assert np.allclose(np.exp(held) / 2.0**64, np.exp(logs(points, rate)), rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("relation", RELATIONS)
def test_exponential_is_truncated_laplace_on_the_lattice_of_answers(relation):
    query = {"range": (0, 10), "sensitivity": 2, "epsilon": 1, "relation": relation, "step": 1}
    assert Exponential(**query).integers == TruncatedLaplace(**query).integers
