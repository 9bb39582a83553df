"""A choice by rank: its law over every order of few candidates and its sampler."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import permutations

import numpy as np
import pytest

from dpveil.errors import InvalidParameter, NoiseError
from dpveil.mechanisms.rank_choice import RandomisedResponse, RankChoice, exp_of
from dpveil.noise.bits import SeededBits
from dpveil.noise.integer_matrix import log_above
from dpveil_audit.distributions import finite_distribution
from dpveil_audit.fit import fit
from sources import Scripted

EPSILONS = [Fraction(1, 10), Fraction(1), Fraction(3), Fraction(8)]


def worst(law_of, inputs):
    """The largest log-ratio of any candidate's chance, over every two inputs."""
    laws = np.log([[float(p) for p in law_of(x)] for x in inputs])
    return float((laws.max(axis=0) - laws.min(axis=0)).max())


def given(choice, distances):
    """The chance of every candidate at these distances: ranks by hand, ties by number."""
    order = sorted(range(choice.count), key=lambda y: (distances[y], y))
    return [choice.probabilities[order.index(y)] for y in range(choice.count)]


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_every_order_of_candidates_costs_epsilon_and_no_less(epsilon):
    for count in (2, 3, 4, 5):
        choice = RankChoice(count=count, epsilon=epsilon)
        assert sum(choice.probabilities) == 1
        assert choice.spent <= epsilon
        assert max(choice.weights) == choice.weights[0]
        cost = worst(lambda order, c=choice: given(c, order), list(permutations(range(count))))
        assert cost <= epsilon * (1 + 1e-12)
        assert cost >= epsilon * (1 - 1e-8)  # nothing that was paid for is wasted


def flipped(chances, mine):
    """The chance that `mine` is the first to be taken: over every random order, by enumeration."""
    orders = list(permutations(range(len(chances))))
    found = 0.0
    for order in orders:
        before = order[: order.index(mine)]
        found += chances[mine] * math.prod(1 - chances[y] for y in before)
    return found / len(orders)


def test_the_published_rate_of_permute_and_flip_costs_more_than_it_says():
    """At rate ε over ranks the cost is above ε for every K, and tends to ε only for many candidates."""
    for count, least in ((2, 0.3), (3, 0.1), (5, 0.04)):
        chances = [math.exp(-rank / (count - 1)) for rank in range(count)]
        law = [flipped(chances, rank) for rank in range(count)]
        assert math.log(law[0] / law[-1]) > 1 + least


def test_two_levels_are_e_to_the_epsilon_apart():
    choice = RankChoice(count=10, epsilon=Fraction(5, 2), near=3)
    high, low = choice.weights[0], choice.weights[-1]
    assert choice.weights == (high,) * 3 + (low,) * 7
    assert math.isclose(high / low, math.exp(2.5), rel_tol=1e-12)
    for units in (0, 5, 60):
        exact = math.exp(2.5) * 2**units
        assert exact * (1 - 1e-12) - 1 <= exp_of(Fraction(5, 2), units) <= exact * (1 + 1e-15)


def test_every_word_has_the_rank_that_its_weight_says():
    """The sampler against the law, at both ends of every rank; what is above all weights is redrawn."""
    choice = RankChoice(count=3, epsilon=1, near=1)
    ends = np.cumsum(choice.weights)
    shift = 64 - int(ends[-1]).bit_length()
    starts = [0, *ends[:-1].tolist()]
    words = [
        value << shift for start, end in zip(starts, ends.tolist(), strict=True) for value in (start, end - 1)
    ]
    assert choice.ranks(6, Scripted(*words)).tolist() == [0, 0, 1, 1, 2, 2]
    beyond = int(ends[-1]) << shift
    assert beyond < 1 << 64
    assert choice.ranks(3, Scripted(words[0], beyond, words[4], beyond, words[2])).tolist() == [0, 2, 1]


def test_choice_takes_the_candidate_of_the_drawn_rank():
    choice = RankChoice(count=5, epsilon=30, near=1)
    distances = np.array([[3.0, 1, 2, 5, 4], [1, 1, 1, 1, 1], [9, 8, 7, 6, 0]])
    assert choice.choose(distances, SeededBits(1)).tolist() == [1, 0, 4]  # fails with chance 4e-13
    even = RankChoice(count=5, epsilon=1, near=2)
    rows = np.tile(distances[:1], (20_000, 1))
    counts = np.bincount(even.choose(rows, SeededBits(2)), minlength=5)
    nearest = finite_distribution([float(p) for p in even.probabilities])
    order = np.array([2, 0, 1, 4, 3])  # the rank of every candidate
    assert not fit(np.repeat(order, counts), nearest).is_rejected
    assert even.choose(distances[:0], SeededBits(1)).shape == (0,)


@pytest.mark.parametrize("distances", [np.zeros((2, 4)), np.zeros(5), np.array([[1, 2, np.nan, 4, 5]])])
def test_other_distances_are_refused(distances):
    with pytest.raises(InvalidParameter, match="distances"):
        RankChoice(count=5, epsilon=1).choose(distances, SeededBits(1))


@pytest.mark.parametrize(
    ("more", "name"),
    [
        ({"near": 5}, "near"),
        ({"near": 0}, "near"),
        ({"count": 1}, "count"),
        ({"epsilon": 0}, "epsilon"),
        ({"epsilon": None}, "epsilon"),
    ],
)
def test_bad_parameters_are_refused(more, name):
    with pytest.raises(InvalidParameter, match=f"^{name}"):
        RankChoice(**{"count": 5, "epsilon": 1, **more})


def test_budgets_beyond_the_weights_are_refused():
    with pytest.raises(NoiseError):
        _ = RankChoice(count=5, epsilon=100).weights
    with pytest.raises(NoiseError):
        _ = RankChoice(count=5000, epsilon=60).weights
    assert RankChoice(count=5000, epsilon=30).spent <= 30


# Randomised response: the law over all inputs and its draws.


RESPONSE_EPSILONS = [Fraction(1, 10**6), Fraction(1, 2), Fraction(2), Fraction(8), Fraction(40)]
TOTAL = 1 << 64


def written(epsilon, count, true):
    """The law as it is written in the papers, in floating point."""
    mass = np.full(count, 1 / (math.exp(epsilon) + count - 1))
    mass[true] *= math.exp(epsilon)
    return mass


def worst_ratio(rows):
    """The largest log-ratio of two rows of exact chances, over every outcome."""
    pairs = permutations(rows, 2)
    return max(log_above(max(a / b, b / a)) for x, y in pairs for a, b in zip(x, y, strict=True))


def exact_rows(method):
    return [[Fraction(weight, TOTAL) for weight in row] for row in method.matrix.weights]


@pytest.mark.parametrize("count", [2, 3, 5, 40])
@pytest.mark.parametrize("epsilon", RESPONSE_EPSILONS, ids=float)
def test_every_two_values_keep_epsilon_and_nothing_is_wasted(epsilon, count):
    method = RandomisedResponse(epsilon=epsilon, values=count)
    rows = exact_rows(method)
    assert all(sum(row) == 1 for row in rows)
    assert worst_ratio(rows[:5]) <= epsilon
    assert worst_ratio(rows[:5]) >= epsilon * (1 - Fraction(1, 1000)) - Fraction(1, 2**50)
    for true, row in enumerate(rows):
        assert np.allclose(
            [float(p) for p in row], written(float(epsilon), count, true), rtol=1e-3, atol=1e-17
        )
    assert method.keep_probability == rows[0][0]
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
