"""Goodness of fit, divergences and lower bounds: never on the wrong side of the truth, and near it."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import partial

import numpy as np
import pytest
from dp_accounting.pld import privacy_loss_distribution as pld
from scipy import stats

from dpveil.noise.bits import SeededBits
from dpveil_audit.distributions import (
    finite_distribution,
    gaussian_distribution,
    laplace_distribution,
)
from dpveil_audit.divergence import (
    GAUSSIAN,
    LAPLACE,
    loss_distribution,
    move_loss,
    renyi_of_masses,
    renyi_of_shift,
    shifted_masses,
)
from dpveil_audit.fit import ALPHA, fit, fit_pairs, multinomial, power
from dpveil_audit.lower_bound import lower_bound

N = 300_000


def uniforms(count, seed):
    return (SeededBits(seed, "fit").words(count) >> np.uint64(11)).astype(np.float64) / 2**53


def geometric_pair(scale, count, seed):
    """A second sampler of the discrete Laplace distribution: the difference of two geometric variables."""
    u = uniforms(2 * count, seed).reshape(2, count)
    first, second = np.floor(-scale * np.log1p(-u)).astype(np.int64)
    return first - second


@pytest.mark.parametrize("scale", [Fraction(1, 50), Fraction(1, 3), 1, 255, 460_000_000])
def test_right_distribution_passes(scale):
    verdict = fit(geometric_pair(float(scale), N, 1), laplace_distribution(scale))
    assert not verdict.is_rejected
    assert set(verdict.parts) == {"coarse bins", "fine bins", "centre", "tails", "extremes"}


@pytest.mark.parametrize("scale", [Fraction(1, 3), 1, 16, 255, 460_000_000])
def test_scale_two_percent_too_small_is_rejected(scale):
    n = 600_000  # power at α = 1e-9 is above 0.999 by the noncentral chi-square
    assert power(laplace_distribution(scale), laplace_distribution(Fraction(98, 100) * scale), n) > 0.999
    assert fit(geometric_pair(0.98 * float(scale), n, 2), laplace_distribution(scale)).is_rejected


@pytest.mark.parametrize(("chance", "size"), [(0.0025, 20_000), (5e-4, 100_000), (0.1, 1_000)])
def test_two_outcomes_are_rejected_by_chance_as_seldom_as_promised(chance, size):
    """Nothing is drawn: the exact chances of all counts that `fit` rejects, which reach to both ends."""
    distribution = finite_distribution([1 - chance, chance])

    def rejected(count):
        return fit(np.repeat([0, 1], [size - count, count]), distribution).is_rejected

    mean = int(chance * size)
    more = next(count for count in range(mean, size) if rejected(count))
    fewer = next((count for count in range(mean, -1, -1) if rejected(count)), -1)
    false_alarm = stats.binom.sf(more - 1, size, chance) + stats.binom.cdf(fewer, size, chance)
    assert 1e-14 < false_alarm <= ALPHA


@pytest.mark.parametrize("chances", [(0.2, 0.3, 0.5), (0.01, 0.09, 0.9), (1e-6, 0.5, 0.499999)])
def test_a_multinomial_p_value_is_never_too_small(chances):
    """Nothing is drawn: the exact distribution of the p-value over all counts of 60 draws."""
    grid = [(i, j, 60 - i - j) for i in range(61) for j in range(61 - i)]
    p_values = np.array([multinomial(np.array(counts), np.array(chances)) for counts in grid])
    masses = stats.multinomial.pmf(grid, 60, chances)
    order = np.argsort(p_values)
    assert p_values[order[0]] < 1e-9
    assert np.all(np.cumsum(masses[order]) <= p_values[order] + 1e-12)


@pytest.mark.parametrize("lag", [1, 2, 3])
def test_reused_noise_is_seen_in_pairs(lag):
    good = geometric_pair(255.0, N, 6)
    reused = np.repeat(good[: N // (2 * lag) * lag].reshape(-1, lag), 2, axis=0).ravel()
    assert not fit_pairs(good, laplace_distribution(255), lag=lag).is_rejected
    assert fit_pairs(reused, laplace_distribution(255), lag=lag).is_rejected


@pytest.mark.parametrize("variance", [Fraction(1, 4), 3, 400.5])
def test_discrete_gaussian_distribution_is_the_normalised_sum(variance):
    distribution = gaussian_distribution(variance)
    z = np.arange(-400, 401)
    mass = np.exp(-(z**2) / (2 * float(variance)))
    assert np.allclose(distribution.between(z - 1, z), mass / mass.sum(), rtol=1e-9, atol=1e-17)
    tail = mass[z > 40].sum() / mass.sum()
    assert np.isclose(distribution.survival(np.array([40]))[0], tail, rtol=1e-9)


def test_an_impossible_outcome_is_rejected():
    distribution = finite_distribution([0.5, 0.0, 0.5])
    good = np.arange(1000) % 2 * 2
    assert not fit(good, distribution).is_rejected
    assert fit(np.append(good, 1), distribution).is_rejected
    assert fit(np.append(good, 7), distribution).is_rejected


FEW = 20_000


def hockey_stick(first, second, epsilon):
    return float(np.sum(np.maximum(0.0, first - math.exp(epsilon) * second)))


def joint(parts):
    """Return both joint distributions of independent parts, every combination of outcomes written out."""
    first = second = np.ones(1)
    for a, b in parts:
        first, second = np.outer(first, a).ravel(), np.outer(second, b).ravel()
    return first, second


@pytest.mark.parametrize("epsilon", [0.0, 0.3, 1.0, 1.7, 2.0])
@pytest.mark.parametrize("move", [(5,), (5, 5, 2), (7, 1, 1)])
def test_a_laplace_move_has_the_divergence_of_its_joint_distribution(move, epsilon):
    scale = Fraction(sum(move), 2)  # ε = 2 in all
    parts = [shifted_masses(LAPLACE, scale, gap) for gap in move]
    loss = move_loss(LAPLACE, tuple((gap, scale) for gap in move))
    assert loss.delta(epsilon) == pytest.approx(hockey_stick(*joint(parts), epsilon), abs=1e-12)


@pytest.mark.parametrize(("kind", "parameter"), [(LAPLACE, Fraction(6)), (GAUSSIAN, Fraction(25))])
def test_two_accountants_find_the_same_delta(kind, parameter):
    """`dp_accounting`, which the product composes with, against the sums of the audit."""
    moves, step = (7, 5, 2), 1 / 600
    if kind is LAPLACE:
        one = partial(pld.from_discrete_laplace_mechanism, 1 / float(parameter))
    else:
        one = partial(pld.from_discrete_gaussian_mechanism, math.sqrt(parameter))
    parts = [one(sensitivity=gap, value_discretization_interval=step, use_connect_dots=True) for gap in moves]
    theirs = parts[0].compose(parts[1]).compose(parts[2])
    ours = move_loss(kind, tuple((gap, parameter) for gap in moves))
    for epsilon in (0.5, 1.2, 2.0):
        assert ours.delta(epsilon) == pytest.approx(theirs.get_delta_for_epsilon(epsilon), rel=0.02, abs=1e-5)


def test_an_outcome_that_only_one_input_gives_is_never_excused():
    loss = loss_distribution(np.array([0.9, 0.1]), np.array([1.0, 0.0]), 0.01)
    assert loss.delta(50.0) == pytest.approx(0.1)
    assert loss.plus(loss).delta(50.0) == pytest.approx(0.19)


@pytest.mark.parametrize("order", [1.01, 2.0, 3.0, 7.5])
def test_renyi_rates_are_direct_sums(order):
    z = np.arange(-160, 161)  # 16 standard deviations: the summand peaks at -45 or nearer
    own, moved = (np.exp(-((z - t) ** 2) / 200.0) for t in (0, 7))
    own, moved = own / own.sum(), moved / moved.sum()
    direct = math.log(np.sum(own * (own / moved) ** (order - 1))) / (order - 1)
    assert renyi_of_shift(GAUSSIAN, Fraction(100), 7, order) == pytest.approx(direct, rel=1e-9)
    assert renyi_of_shift(GAUSSIAN, Fraction(100), 7, order) <= order * 49 / 200 * (1 + 1e-12)
    rows = np.array([[0.5, 0.3, 0.2], [0.2, 0.3, 0.5], [0.5, 0.5, 0.0]])
    table = renyi_of_masses(rows, order)
    coins = math.log(np.sum(rows[0] ** order * rows[1] ** (1 - order))) / (order - 1)
    assert table[0, 1] == pytest.approx(coins)
    assert table[0, 2] == math.inf
    assert 0 < table[2, 0] < math.inf


def coin(chance, count, seed):
    """Draws of 1 with `chance`, else 0, beside a column that never changes."""
    words = SeededBits(seed, "coin").words(count) >> np.uint64(11)
    hit = words.astype(np.float64) / 2**53 < chance
    return np.stack([hit, np.ones(count)], axis=1).astype(np.uint8)


def bound(first, second, n=FEW, seed=0, **options):
    return lower_bound(coin(first, 2 * n, seed), coin(second, 2 * n, seed + 10), **options)


@pytest.mark.parametrize(
    ("first", "second"), [(0.5, 0.5 / math.e), (0.5 / math.e, 0.5), (0.9, 0.5), (0.5, 0.5)]
)
def test_bound_is_below_the_truth_and_near_it(first, second):
    truth = max(abs(math.log(first / second)), abs(math.log((1 - first) / (1 - second))))
    found = bound(first, second, n=300_000).lower
    assert found <= truth
    assert found >= truth - 0.12


def test_bound_covers_the_truth_as_often_as_promised():
    alpha, runs = 0.2, 60
    missed = sum(bound(0.5, 0.5 / math.e, n=1500, seed=100 * s, alpha=alpha).lower > 1 for s in range(runs))
    assert missed <= stats.binom.isf(1e-9, runs, alpha)
