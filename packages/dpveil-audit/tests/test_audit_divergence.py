"""Divergences against direct sums, and lower bounds on ρ against a distribution that is known."""

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from dpveil.noise.bits import SeededBits
from dpveil_audit.divergence import (
    GAUSSIAN,
    LAPLACE,
    compose,
    loss_distribution,
    move_loss,
    renyi_of_masses,
    renyi_of_shift,
    shifted_masses,
)
from dpveil_audit.lower_bound import (
    epsilon_at,
    epsilon_event,
    gaussian_events,
    lower_bound,
    rho_seen,
    smallest_detectable,
)

N = 20_000


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
    assert loss.above(epsilon) == pytest.approx(
        sum(p for p, q in zip(*joint(parts), strict=True) if p > q * math.exp(epsilon + 1e-9)), abs=1e-12
    )


@pytest.mark.parametrize("epsilon", [0.0, 0.5, 1.5, 3.0])
def test_a_gaussian_move_is_never_below_its_joint_distribution_and_close(epsilon):
    variance = Fraction(9)
    parts = [shifted_masses(GAUSSIAN, variance, gap) for gap in (3, 2)]
    true = hockey_stick(*joint(parts), epsilon)
    found = move_loss(GAUSSIAN, ((3, variance), (2, variance))).delta(epsilon)
    assert true - 1e-13 <= found <= true * (1 + 1e-3) + 1e-9


def test_uneven_losses_are_rounded_to_the_private_side():
    rng = SeededBits(1).words(60).astype(np.float64).reshape(3, 2, 10)
    parts = [tuple(row / row.sum() for row in part) for part in rng]
    for epsilon in np.linspace(0, 2, 9):
        true = hockey_stick(*joint(parts), epsilon)
        assert true - 1e-13 <= compose(parts).delta(epsilon) <= true + 1e-4


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


def gaussian(rho, count, seed, moved):
    """Standard normal draws moved by √(2ρ), shown as levels of a tenth of a deviation."""
    uniform = (SeededBits(seed, "normal").words(count) >> np.uint64(11)).astype(np.float64) / 2**53
    values = stats.norm.ppf(uniform.clip(1e-12, 1 - 1e-12)) + moved * math.sqrt(2 * rho)
    return (100 + 10 * values).clip(0, 255).astype(np.uint8)[:, None]


def rho_bound(rho, count):
    first, second = ([gaussian(rho, count, k + 7 * m, m) for k in (0, 1)] for m in (0, 1))
    return lower_bound((first[0], second[0]), (first[1], second[1]), measure=rho_seen).lower


def test_a_lower_bound_on_rho_is_below_the_truth_and_half_of_it():
    """An event tells less than the whole: at ρ = 2 about six tenths of it."""
    assert 1.0 < rho_bound(2.0, 60_000) <= 2.0
    least = smallest_detectable(60_000, 2.0, gaussian_events, rho_seen, alpha=1e-9, missed=1e-9)
    assert 3 < least < 4.5
    assert rho_bound(least, 60_000) > 2.0


@pytest.mark.parametrize(("p", "q"), [(0.5, 0.1), (0.9, 0.5), (0.2, 1e-6), (1.0, 0.3)])
def test_rho_seen_is_the_largest_rate_of_two_coins(p, q):
    def rate(order):
        total = p**order * q ** (1 - order) + (1 - p) ** order * (1 - q) ** (1 - order)
        return math.log(total) / (order - 1) / order

    seen = float(rho_seen(np.array([p]), np.array([q]))[0])
    best = max(rate(1 + 10 ** (k / 20 - 3)) for k in range(80))
    assert best * 0.97 <= seen <= best * 1.01
    assert float(rho_seen(np.array([q]), np.array([p]))[0]) == 0


def test_too_few_draws_detect_nothing_and_delta_costs_power():
    event, measure = epsilon_event(0.01, 0.0), epsilon_at(0.0)
    assert smallest_detectable(100, 1.0, event, measure, alpha=1e-9, missed=1e-9) == math.inf
    least = [
        smallest_detectable(60_000, 2.0, epsilon_event(0.3, d), epsilon_at(d), alpha=1e-9, missed=1e-9)
        for d in (0.0, 0.05)
    ]
    assert 2 < least[0] < least[1]


def test_small_leans_of_two_values_add_up_in_the_learned_ratio():
    def coins(chance, seed):
        words = SeededBits(seed, "coins").words(2 * N).reshape(N, 2) >> np.uint64(11)
        return (words.astype(np.float64) / 2**53 < chance).astype(np.uint8)

    train, test = (tuple(coins(c, s + k) for k, c in enumerate((0.6, 0.4))) for s in (1, 5))
    found = lower_bound(train, test)
    assert found.lower > 1.2 * math.log(0.6 / 0.4)  # one value alone gives ln 1.5; both give ln 2.25
    assert found.lower <= 2 * math.log(0.6 / 0.4)
