"""Draws of bounded range: the exact optimum against enumeration, unequal parameters and real mechanisms."""

import itertools
import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from scipy.stats import binom

from dpveil.accounting import zcdp_epsilon
from dpveil.mechanisms.pixel.ssim.method import (
    CDF_ERROR,
    MOST_DRAWS,
    BoundedRangeAccount,
    bounded_range_spread,
    countable,
)

MILLIONTH = Fraction(1, 10**6)


def two_outcomes(t, eta: float) -> tuple[np.ndarray, np.ndarray]:
    """The worst draw with losses t and t - η, or one for each of many t: its law under P and under Q."""
    r = (1 - np.exp(-t)) / (1 - math.exp(-eta))
    q = np.stack([1 - r, r], axis=-1)
    return q * np.exp(np.stack([t, t - eta], axis=-1)), q


def hockey_stick(pairs, epsilon: float) -> np.ndarray:
    """δ(ε) of independent draws, by enumerating all of their outcomes together."""
    p = q = np.ones(1)
    for one, other in pairs:
        p, q = (
            (a[..., :, None] * b[..., None, :]).reshape(*b.shape[:-1], -1) for a, b in ((p, one), (q, other))
        )
    return np.maximum(0, p - math.exp(epsilon) * q).sum(axis=-1)


def delta(eta: float, draws: int, epsilon: float) -> float:
    return BoundedRangeAccount(Fraction(eta), draws).delta(Fraction(epsilon))


@pytest.mark.parametrize("draws", [1, 2, 3, 5])
@pytest.mark.parametrize("eta", [0.1, 1.0, 4.0])
@pytest.mark.parametrize("part", [0.0, 0.1, 0.3, 0.7, 0.95, 1.0])
def test_the_optimum_is_the_worst_of_equal_parameters(draws, eta, part):
    epsilon = part * eta * draws
    worst = hockey_stick([two_outcomes(np.linspace(0, eta, 801), eta)] * draws, epsilon).max()
    said = delta(eta, draws, epsilon)
    assert worst - 1e-12 <= said <= worst + 3e-6 * eta * draws + 3 * CDF_ERROR


@pytest.mark.parametrize("eta", [0.3, 2.0])
@pytest.mark.parametrize("draws", [2, 3])
def test_unequal_parameters_are_never_worse(draws, eta):
    """All vectors of parameters on a grid, 11 a side."""
    laws = [two_outcomes(t, eta) for t in np.linspace(0, eta, 11)]
    for part in (0.0, 0.2, 0.5, 0.8):
        said = delta(eta, draws, part * eta * draws)
        for pairs in itertools.combinations_with_replacement(laws, draws):
            assert hockey_stick(pairs, part * eta * draws) <= said + 1e-12


def test_it_dominates_exponential_mechanisms():
    """Weights e^(ε′q), 3 to 5 outputs, qualities 0, 1 and between: 500 pairs of one to three draws."""
    source = np.random.default_rng(20261121)
    for _ in range(500):
        exponent, outputs = float(source.uniform(0.05, 3)), int(source.integers(3, 6))
        pairs = []
        for _ in range(int(source.integers(1, 4))):
            weights = np.exp(exponent * source.choice([0.0, 1.0, source.uniform()], size=(2, outputs)))
            one, other = weights / weights.sum(axis=1, keepdims=True)
            loss = np.log(one / other)
            assert loss.max() - loss.min() <= 2 * exponent + 1e-12
            pairs.append((one, other))
        for part in (0.0, 0.1, 0.4):
            epsilon = part * 2 * exponent * len(pairs)
            assert hockey_stick(pairs, epsilon) <= delta(2 * exponent, len(pairs), epsilon) + 1e-12


def test_draws_that_wait_for_each_other_cost_more():
    """Why the account is for windows of one region only: a second draw that depends on the first beats it."""
    eta, epsilon = 1.0, 0.2
    grid = np.linspace(0, eta, 201)

    def single(at: float) -> float:
        if at <= -eta:
            return 1 - math.exp(at)
        return max(hockey_stick([two_outcomes(t, eta)], at) for t in grid)

    adaptive = max(
        sum(p * single(epsilon - math.log(p / q)) for p, q in zip(*two_outcomes(t, eta), strict=True) if p)
        for t in grid[::20]
    )
    assert adaptive > delta(eta, 2, epsilon) + 5e-3


@pytest.mark.parametrize(
    ("draws", "eta", "epsilon"), [(60, "1/2", "7"), (150, "1/10", "2"), (150, "1/10", "3")]
)
def test_floating_point_is_as_good_as_it_says(draws, eta, epsilon):
    """The best term again, with the binomial sums in exact rationals at SciPy's own probabilities."""
    account = BoundedRangeAccount(Fraction(eta), draws)
    at, spread = float(Fraction(epsilon)), float(Fraction(eta))
    exact = 0.0
    for i in range(5, draws, 41):
        t = min(max((at + (i + 1) * spread) / (draws + 1), 0.0), spread)
        r = math.expm1(-t) / math.expm1(-spread)
        sums = []
        for chance in (Fraction(r * math.exp(t - spread)), Fraction(r)):
            terms = (math.comb(draws, j) * chance**j * (1 - chance) ** (draws - j) for j in range(i + 1))
            sums.append(float(sum(terms)))
            if sums[-1] > 1e-250:
                assert binom.cdf(i, draws, float(chance)) == pytest.approx(sums[-1], rel=CDF_ERROR / 100)
        exact = max(exact, sums[0] - math.exp(at) * sums[1])
    assert account.delta(Fraction(epsilon)) >= exact * (1 - 1e-12)
    assert exact > 0


def test_the_example_of_the_documentation():
    account = BoundedRangeAccount(Fraction(1, 10), 5292)
    assert account.pure == Fraction(5292, 10)
    assert account.rho == Fraction(5292, 800)
    assert 23.2 < account.epsilon(MILLIONTH) < 23.3 < 24.5 < zcdp_epsilon(account.rho, MILLIONTH)


@pytest.mark.parametrize("draws", [1, 2, 18, 1111, MOST_DRAWS + 1])
@pytest.mark.parametrize(
    ("epsilon", "at"), [("0.1", "1e-6"), ("20", "1e-6"), ("300", "1e-9"), ("5", "1e-12")]
)
def test_calibration_returns_what_the_account_accepts_and_hardly_more(draws, epsilon, at):
    wanted, chance = Fraction(epsilon), Fraction(at)
    spread = bounded_range_spread(wanted, chance, draws)
    assert BoundedRangeAccount(spread, draws).epsilon(chance) <= wanted
    assert BoundedRangeAccount(spread * Fraction(1001, 1000), draws).epsilon(chance) > wanted
    assert spread * draws >= wanted * (1 - Fraction(1, 10**9))  # never worse than ε alone


def test_where_the_optimum_is_not_asked():
    assert countable(MOST_DRAWS, MILLIONTH)
    assert not countable(MOST_DRAWS + 1, MILLIONTH)
    assert not countable(5, Fraction(1, 10**11))
    account = BoundedRangeAccount(Fraction(1, 100), 10**6)
    assert account.epsilon(MILLIONTH) == min(account.pure, zcdp_epsilon(account.rho, MILLIONTH))


def test_wide_draws_do_not_overflow():
    for spread in (Fraction(10**6), Fraction(2000), Fraction(1, 10**9)):
        account = BoundedRangeAccount(spread, 3)
        assert 0 <= account.epsilon(MILLIONTH) <= account.pure


def exactly(draws: int, eta: Fraction, epsilon: Fraction) -> mpmath.mpf:
    """Return the largest G_i with 60 digits."""
    with mpmath.workdps(60):
        spread, at = (mpmath.mpf(n.numerator) / n.denominator for n in (eta, epsilon))
        best = mpmath.mpf(0)
        for i in range(draws):
            t = min(max((at + (i + 1) * spread) / (draws + 1), 0), spread)
            q = mpmath.expm1(-t) / mpmath.expm1(-spread)
            sums = []
            for chance in (q * mpmath.exp(t - spread), q):
                terms = [
                    mpmath.binomial(draws, j) * chance**j * (1 - chance) ** (draws - j) for j in range(i + 1)
                ]
                sums.append(mpmath.fsum(terms))
            best = max(best, sums[0] - mpmath.exp(at) * sums[1])
        return best


@pytest.mark.parametrize(
    ("draws", "eta", "epsilon"),
    [(30, "26", "735"), (30, "26", "650"), (40, "19", "720"), (10, "90", "500"), (3, "300", "755")],
)
def test_delta_of_draws_of_a_large_range_is_rounded_up(draws, eta, epsilon):
    """Chances near 1, and those below 1e-300, lost their digits: δ was up to half a per cent too small."""
    account = BoundedRangeAccount(Fraction(eta), draws)
    assert account.delta(Fraction(epsilon)) >= exactly(draws, Fraction(eta), Fraction(epsilon))


@pytest.mark.parametrize(
    ("draws", "eta", "epsilon"), [(30, "26", "600"), (64, "1e-6", "1e-5"), (12, "2", "9")]
)
def test_delta_is_near_where_chances_can_be_held(draws, eta, epsilon):
    true = float(exactly(draws, Fraction(eta), Fraction(epsilon)))
    assert true < BoundedRangeAccount(Fraction(eta), draws).delta(Fraction(epsilon)) < true + 1e-8
