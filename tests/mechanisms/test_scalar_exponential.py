"""The exponential mechanism and permute-and-flip, against brute force over all orders and all rates."""

import math
from fractions import Fraction
from itertools import permutations

import numpy as np
import pytest
from scipy import integrate

from dpveil.mechanisms.scalar import (
    ExplicitFair,
    Exponential,
    Geometric,
    PermuteAndFlip,
    Range,
    TruncatedLaplace,
)
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


# Errata E11: formulas 5.71, 5.72 and 5.74 of Croft's thesis as printed are no distributions; ours are.


def printed_fair(size, epsilon):
    """The column of the answer 0 by 5.73 with y of 5.74, `size` being |D|."""
    a = math.exp(-epsilon)
    y = (1 - a) / (1 + a - 2 * a ** (size / 2 + 1))
    return [y * a ** math.ceil(d / 2) for d in range(size + 1)]


@pytest.mark.parametrize("size", range(2, 13))
def test_errata_e11_explicit_fair_of_odd_sizes_does_not_sum_to_one(size):
    total = sum(printed_fair(size, 0.5))
    assert (abs(total - 1) < 1e-12) == (size % 2 == 0)
    ours = ExplicitFair(range=(0, size), sensitivity=1, epsilon="0.5").matrix()
    assert np.allclose(ours.sum(axis=0), 1, atol=1e-15)
    assert np.allclose(ours.diagonal(), ours[0, 0], rtol=1e-7)
    if size % 2 == 0:
        assert np.allclose(ours[:, 0], printed_fair(size, 0.5), rtol=1e-6)


def test_errata_e11_explicit_fair_of_five_records_sums_to_0_9913():
    assert sum(printed_fair(5, 0.5)) == pytest.approx(0.9913, abs=5e-5)
    a = math.exp(-0.5)
    mended = (1 - a) / ((1 + a) * (1 - a**3))
    ours = ExplicitFair(range=(0, 5), sensitivity=1, epsilon="0.5").matrix()
    assert ours[0, 0] == pytest.approx(mended, rel=1e-7)


def test_errata_e11_geometric_law_needs_all_whole_numbers():
    def printed(answer, z):
        return (math.e - 1) / (math.e + 1) * math.exp(-abs(answer - z))

    for answer in (0, 2):
        natural = sum(printed(answer, z) for z in range(200))
        assert natural == pytest.approx(1 - math.exp(-answer) / (1 + math.e), rel=1e-12)
        assert natural + sum(printed(answer, z) for z in range(-200, 0)) == pytest.approx(1, rel=1e-12)
    ours = Geometric(range=(0, 4), sensitivity=1, epsilon=1).matrix()
    assert np.allclose(ours.sum(axis=0), 1, atol=1e-15)
    assert ours[0, 0] == pytest.approx(sum(printed(0, z) for z in range(-200, 1)), rel=1e-4)


def test_errata_e11_normalised_laplace_has_a_sign_too_few():
    low, high, answer, scale = 0, 4, 2, 1.6

    def printed(x, sign):
        whole = 2 - math.exp(-(answer - low) / scale) - math.exp(sign * (high - answer) / scale)
        return math.exp(-abs(x - answer) / scale) / scale / whole

    as_printed = integrate.quad(printed, low, high, args=(1,), points=[answer])[0]
    mended = integrate.quad(printed, low, high, args=(-1,), points=[answer])[0]
    assert as_printed < 0, "a density below zero"
    assert mended == pytest.approx(1, rel=1e-9)
    ours = TruncatedLaplace(range=(0, 4), sensitivity="0.4", epsilon="0.5", step="1/90")
    found = ours.matrix([1, 3], [2])
    assert found.sum() == pytest.approx(1, abs=1e-12)
    assert float(ours.scale) == pytest.approx(scale, rel=0.01)
