"""Dominating pairs of integer laws: certified from the integers, and held to enumeration."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import binom

from dpveil.accounting.dominating_pairs import DrawsAccount, MirrorPair, extremes, randomised_response, rate
from dpveil.errors import NoiseError
from dpveil.mechanisms.pixel.mse_exponential import law
from dpveil.noise.integer_matrix import ROW_SUM, IntegerMatrix, quantise

RATES = ("1e-3", "0.1", "1", "3", "10", "30")


def exponential(budget, rows=6, columns=5):
    """A small matrix of the same family: rows x, columns y, weights ∝ exp(-budget·(x/5 - y/4)²)."""
    half = [
        [Fraction(math.exp(-budget * (x / (rows - 1) - y / (columns - 1)) ** 2)) for y in range(columns)]
        for x in range(rows // 2)
    ]
    upper = quantise(half).weights
    return IntegerMatrix((*upper, *(row[::-1] for row in reversed(upper))))


def hockey_stick(p, q, epsilon):
    return float(np.maximum(0, p - math.exp(epsilon) * q).sum())


def joint(laws):
    found = np.ones(1)
    for law_ in laws:
        found = np.multiply.outer(found, law_).ravel()
    return found


@pytest.mark.parametrize("budget", [0.2, 1.0, 4.0])
def test_extreme_rows_dominate_every_pair_of_rows_and_every_composition(budget):
    """All 36² pairs of inputs of two draws, at nine ε: none is easier to tell apart than the extremes."""
    matrix = exponential(budget)
    assert extremes(matrix).masses == matrix.weights[0]
    rows = [np.array(row) / ROW_SUM for row in matrix.weights]
    most = {
        e: hockey_stick(joint([rows[0]] * 2), joint([rows[-1]] * 2), e) for e in np.linspace(0, 2 * budget, 9)
    }
    inputs = list(itertools.product(range(len(rows)), repeat=2))
    laws = {one: joint([rows[x] for x in one]) for one in inputs}
    reached = 0
    for one, other in itertools.product(inputs, inputs):
        for epsilon, bound in most.items():
            found = hockey_stick(laws[one], laws[other], epsilon)
            assert found <= bound + 1e-12
            reached += found > bound - 1e-12
    assert reached >= 2 * len(most)


def test_any_other_pair_of_rows_does_not_dominate():
    rows = [np.array(row) / ROW_SUM for row in exponential(1.0).weights]
    assert hockey_stick(rows[0], rows[-1], 0.3) > hockey_stick(rows[0], rows[-2], 0.3) + 1e-3


@pytest.mark.parametrize(
    "spoilt",
    [
        ((5, 3, 2), (3, 4, 3), (2, 4, 4)),  # not read backwards
        ((5, 3, 2), (5, 3, 2), (2, 3, 5)),
        ((5, 1, 4), (2, 6, 2), (4, 1, 5)),  # ratios are not monotone
    ],
)
def test_without_the_certificate_randomised_response_stands_in(spoilt):
    unit = ROW_SUM // 10
    rows = [[unit * w for w in row] for row in spoilt]
    for row in rows:
        row[1] += ROW_SUM - sum(row)
    matrix = IntegerMatrix(tuple(map(tuple, rows)))
    found = extremes(matrix)
    assert len(found.masses) == 2
    assert found.pure >= matrix.log_ratio()
    pair = [np.array(m) / ROW_SUM for m in (found.masses, found.masses[::-1])]
    laws = [np.array(row) / ROW_SUM for row in matrix.weights]
    for one, other, epsilon in itertools.product(laws, laws, np.linspace(0, 1.2, 7)):
        assert hockey_stick(one, other, epsilon) <= hockey_stick(*pair, epsilon) + 1e-12


@pytest.mark.parametrize("epsilon", ["1e-9", "1e-4", "0.01", "0.5", "1", "3", "10", "30"])
def test_rho_of_randomised_response_is_known(epsilon):
    """The supremum is reached at α → 1: the Kullback-Leibler divergence ε·tanh(ε/2)."""
    pair = randomised_response(Fraction(epsilon))
    e = float(pair.pure)
    known = e * math.tanh(e / 2)
    assert known * (1 - 1e-9) <= float(pair.rho) <= known * 1.0011
    assert pair.pure >= Fraction(epsilon)
    assert pair.rho <= pair.pure**2 / 2


@pytest.mark.parametrize("budget", RATES)
@pytest.mark.parametrize("levels", [2, 7, 256])
def test_rho_is_never_below_any_order_of_any_pair_of_rows(budget, levels):
    """Orders from 1.001 to 10^4 by plain formulas in long floats, over pairs of rows."""
    matrix = law(Fraction(budget), levels)
    rho = extremes(matrix).rho
    rows = [np.array([w / ROW_SUM for w in matrix.weights[x]], np.longdouble) for x in (0, 1, 100, 200, 255)]
    most = 0.0
    for p, q in itertools.permutations(rows, 2):
        for order in (1.001, 1.1, 1.5, 2, 3, 5, 10, 30, 100, 1000, 10_000):
            if order * float(budget) > 300:
                continue
            total = np.log1p(np.sum(q * (np.exp(order * np.log(p / q)) - 1)))
            most = max(most, float(total) / (order * (order - 1)))
    tolerance = 1e-5 if budget == "1e-3" else 1e-9  # the plain formula itself cancels
    assert most <= float(rho) * (1 + tolerance)
    if float(budget) <= 10:
        assert most >= float(rho) * 0.99


def test_small_costs_have_the_rho_of_a_uniform_variance():
    """ε′ → 0: the loss is linear over k even places, of variance ε′²·(k + 1)/(3(k - 1)); half of it is ρ."""
    for levels in (2, 3, 16, 256):
        pair = extremes(law(Fraction(1, 10**6), levels))
        assert float(pair.rho) == pytest.approx(1e-12 * (levels + 1) / (6 * (levels - 1)), rel=2e-3)


def test_taylor_bound_and_direct_sum_agree():
    """Around the switch from one to the other, at several orders, and against integers of any length."""
    for size in (0.9e-5, 1.1e-5, 1e-3):
        losses, masses = np.array([size, -size]), np.array([1, math.exp(size)]) / (1 + math.exp(size))
        for order in (1, 1.5, 2, 20):
            q = [Fraction(1, 1) * Fraction(m) for m in masses]
            gain = [Fraction(math.expm1(loss)) for loss in losses]
            found = rate(order, losses, masses)
            known = float(sum(w * g**2 for w, g in zip(q, gain, strict=True))) / 2
            assert found == pytest.approx(known, rel=0.03 * max(1, size * 1000))


@pytest.mark.parametrize("delta", ["1e-3", "1e-6"])
@pytest.mark.parametrize(("budget", "draws"), [(0.5, 6), (2.0, 4)])
def test_the_accountant_is_never_below_enumeration_and_close_to_it(budget, draws, delta):
    matrix = exponential(budget, 6, 5)
    pair = extremes(matrix)
    stated = float(DrawsAccount(((pair, draws),)).epsilon(Fraction(delta)))
    p, q = (joint([np.array(m) / ROW_SUM] * draws) for m in (pair.masses, pair.masses[::-1]))
    assert hockey_stick(p, q, stated) <= float(delta)
    assert hockey_stick(p, q, stated * 0.99) > float(delta)


def test_different_draws_compose_together():
    first, second = extremes(exponential(1.0)), randomised_response(Fraction("0.7"))
    account = DrawsAccount(((first, 3), (second, 4)))
    assert account.pure == 3 * first.pure + 4 * second.pure
    assert account.rho == 3 * first.rho + 4 * second.rho
    stated = float(account.epsilon(Fraction(1, 1000)))
    p, q = (
        joint([np.array(m) / ROW_SUM for m in masses])
        for masses in (
            [first.masses] * 3 + [second.masses] * 4,
            [first.masses[::-1]] * 3 + [second.masses[::-1]] * 4,
        )
    )
    assert hockey_stick(p, q, stated) <= 1e-3 < hockey_stick(p, q, stated * 0.98)


@pytest.mark.parametrize(
    ("draws", "epsilon", "delta"),
    [(200_000, "0.01", "1e-8"), (50_000, "0.004", "1e-8"), (100, "0.3", "1e-6"), (20_000, "1e-4", "1e-3")],
)
def test_many_draws_of_randomised_response_are_a_binomial_count(draws, epsilon, delta):
    pair = randomised_response(Fraction(epsilon))
    stated = float(DrawsAccount(((pair, draws),)).epsilon(Fraction(delta)))
    e = float(pair.pure)
    flips = np.arange(draws + 1)
    chance = binom.pmf(flips, draws, 1 / (1 + math.exp(e)))
    true = np.sum(chance * -np.expm1(np.minimum(0, stated - (draws - 2 * flips) * e)))
    assert float(delta) * 0.1 < true <= float(delta)


def test_nothing_costs_nothing():
    even = MirrorPair((1 << 63, 1 << 63))
    account = DrawsAccount(((even, 10),))
    assert (account.pure, account.rho, account.epsilon(Fraction(1, 10**6))) == (0, 0, 0)


def test_a_budget_that_64_bits_do_not_carry_has_no_pair():
    """Its pair would be that of a smaller budget, and so dominate nothing."""
    assert randomised_response(Fraction(44)).pure >= 44
    for epsilon in (45, 100):
        with pytest.raises(NoiseError):
            randomised_response(Fraction(epsilon))
