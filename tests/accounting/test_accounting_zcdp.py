"""The tight conversion between ρ-zCDP and (ε, δ), held against other people's code and a true mechanism."""

import decimal
import math
from fractions import Fraction
from itertools import product
from random import Random

import dp_accounting
import mpmath
import numpy as np
import pytest
from dp_accounting.rdp import RdpAccountant
from scipy.stats import norm

from dpveil.accounting import zcdp_delta, zcdp_epsilon, zcdp_rho
from dpveil.accounting.zcdp import smallest
from dpveil.core.rationals import exact
from dpveil.errors import InvalidParameter

CASES = [
    ("0.5", 5),
    ("0.001", "0.18"),
    ("13.23", "38.9"),
    (200, 326),
    ("0.5", "0.1"),
    (3, 3),
    ("1e-6", "1e-3"),
]


def independent_delta(rho: float, epsilon: float) -> float:
    """Return the proposition's infimum over a fine grid of orders, by mpmath."""
    with mpmath.workdps(40):
        rho, epsilon = mpmath.mpf(rho), mpmath.mpf(epsilon)
        gaps = [mpmath.exp(mpmath.mpf(k) / 50) for k in range(-600, 800)]
        logs = [
            g * ((1 + g) * rho - epsilon) + (1 + g) * mpmath.log(g / (1 + g)) - mpmath.log(g) for g in gaps
        ]
        return float(min(1, mpmath.exp(min(logs))))


@pytest.mark.parametrize(("rho", "epsilon"), CASES)
def test_delta_is_the_infimum_of_the_proposition(rho: object, epsilon: object):
    ours, theirs = float(zcdp_delta(rho, epsilon)), independent_delta(float(rho), float(epsilon))
    assert ours == pytest.approx(theirs, rel=2e-3)
    assert ours <= theirs * (1 + 1e-9)


@pytest.mark.parametrize(("rho", "epsilon"), CASES)
def test_delta_is_never_below_that_of_a_gaussian_mechanism_with_this_rho(rho: object, epsilon: object):
    """A Gaussian mechanism is exactly ρ-zCDP, and its own δ is known (Balle & Wang 2018, theorem 8)."""
    mu, e = math.sqrt(2 * float(rho)), float(epsilon)
    true = norm.cdf(mu / 2 - e / mu) - math.exp(e + norm.logcdf(-mu / 2 - e / mu))
    assert float(zcdp_delta(rho, epsilon)) >= true


@pytest.mark.parametrize(
    ("rho", "delta"), [("0.5", "1e-5"), ("0.001", "1e-6"), ("13.23", "1e-6"), (200, "1e-9")]
)
def test_epsilon_is_a_little_better_than_dp_accounting_finds_over_given_orders(rho: object, delta: str):
    orders = 1 + np.exp(np.linspace(-6, 12, 3000))
    accountant = RdpAccountant(orders=orders)
    accountant.compose(dp_accounting.ZCDpEvent(rho=float(rho)))
    peer = accountant.get_epsilon(float(delta))
    assert peer * (1 - 1e-5) < float(zcdp_epsilon(rho, delta)) < peer * (1 + 1e-9)


@pytest.mark.parametrize(("epsilon", "delta"), [(1, "1e-6"), (20, "1e-6"), ("0.01", "1e-10"), (300, "1e-3")])
def test_calibration_goes_both_ways_and_lands_on_the_private_side(epsilon: object, delta: str):
    rho = zcdp_rho(epsilon, delta)
    assert zcdp_delta(rho, epsilon) <= Fraction(delta) < zcdp_delta(rho * (1 + Fraction(1, 10**9)), epsilon)
    back = zcdp_epsilon(rho, delta)
    assert back <= Fraction(str(epsilon)) * (1 + Fraction(1, 10**9))
    assert zcdp_delta(rho, back) <= Fraction(delta)


def test_no_loss_costs_nothing_and_a_loss_without_epsilon_costs_at_most_one():
    assert zcdp_epsilon(0, "1e-6") == 0
    assert zcdp_delta(0, 0) == 0
    assert zcdp_delta(1000, 0) == 1


@pytest.mark.parametrize(
    ("call", "values"), [(zcdp_delta, (-1, 1)), (zcdp_delta, (1, -1)), (zcdp_rho, (0, "0.1"))]
)
def test_impossible_budgets_are_refused(call, values):
    with pytest.raises(InvalidParameter):
        call(*values)


@pytest.mark.parametrize("delta", [0, 1, -1, "nan", 2])
def test_impossible_deltas_are_refused(delta: object):
    for call in (zcdp_epsilon, zcdp_rho):
        with pytest.raises(InvalidParameter, match="delta"):
            call(1, delta)


def test_the_smallest_valid_value_was_itself_tried():
    tried = []

    def valid(value: Fraction) -> bool:
        tried.append(value)
        return value * 3 >= 1

    found = smallest(valid, Fraction(7))
    assert valid(found)
    assert found in tried
    assert 0 <= found - Fraction(1, 3) < Fraction(1, 10**13)
    assert smallest(lambda value: value == 7, Fraction(7)) == 7


@pytest.mark.parametrize("epsilon", ["1e6", "1e9", "1e12"])
def test_a_tiny_delta_is_bounded_without_writing_out_its_digits(epsilon: str):
    """Its exact value may have a billion digits: this used to fill the memory."""
    assert 0 < zcdp_delta("1e-3", epsilon) < Fraction(1, 10**2000)
    assert zcdp_rho(epsilon, "0.5") > 0


def test_budgets_far_below_what_floats_hold_are_answered():
    assert 91 < zcdp_epsilon(1, "1e-900") < 93
    assert zcdp_delta("1e-400", 1) < Fraction(1, 10**2000)
    with pytest.raises(InvalidParameter, match="delta"):
        zcdp_epsilon(1, Fraction(1, 10**3000))


def infimum(rho: Fraction, epsilon: Fraction) -> mpmath.mpf:
    """Return the proposition's infimum over all orders, with 700 digits; α is near enough at 1e-27."""
    with mpmath.workdps(700):
        rho, epsilon = (mpmath.mpf(n.numerator) / n.denominator for n in (rho, epsilon))
        low, high = mpmath.mpf(-1500), mpmath.mpf(1500)
        for _ in range(100):
            gap = mpmath.exp((low + high) / 2)
            falls = (1 + 2 * gap) * rho - epsilon < mpmath.log1p(1 / gap)
            low, high = ((low + high) / 2, high) if falls else (low, (low + high) / 2)
        log = gap * ((1 + gap) * rho - epsilon) - (1 + gap) * mpmath.log1p(1 / gap) - mpmath.log(gap)
        return min(mpmath.mpf(1), mpmath.exp(log))


def extreme(random: Random) -> tuple[Fraction, Fraction]:
    """Return a ρ from 1e-300 to 1e300, and an ε near it, near its root, or far from both."""
    rho = Fraction(10) ** random.choice((random.randint(-300, 300), random.randint(-130, 6)))
    rho *= Fraction(random.randint(1, 999), 1000)
    ways = (
        Fraction(0),
        rho * Fraction(random.randint(0, 2000), 1000),
        Fraction(math.sqrt(rho) * 30 * random.random()),
        rho + Fraction(2 * math.sqrt(rho) * 30 * random.random()),
        Fraction(10) ** random.randint(-12, 12),
    )
    return rho, random.choice(ways)


def test_delta_is_never_below_its_infimum_however_extreme_the_budget():
    """Without digits for the cancellation in α·ln(1 - 1/α), δ was up to 5e-5 too small."""
    random = Random(12)  # noqa: S311
    for _ in range(60):
        rho, epsilon = extreme(random)
        found, true = zcdp_delta(rho, epsilon), infimum(rho, epsilon)
        with mpmath.workdps(700):
            assert mpmath.mpf(found.numerator) / found.denominator >= true, (rho, epsilon)


@pytest.mark.parametrize(("rho", "epsilon"), [("6.45e-111", "1.6e-54"), ("6.06e-67", "1.19e-33"), (0.5, 5)])
def test_delta_is_above_the_infimum_by_its_margin(rho: object, epsilon: object):
    rho, epsilon = exact(rho), exact(epsilon)
    found, true = zcdp_delta(rho, epsilon), infimum(rho, epsilon)
    with mpmath.workdps(700):
        above = mpmath.mpf(found.numerator) / found.denominator / true - 1
        assert mpmath.mpf("9e-31") < above < mpmath.mpf("1e-12")


def test_epsilon_and_rho_of_extreme_budgets_are_valid_by_the_infimum():
    for rho, delta in product(("1e-300", "1e6", "1e300"), ("1e-900", "0.999")):
        epsilon = zcdp_epsilon(rho, delta)
        assert infimum(exact(rho), epsilon) <= mpmath.mpf(delta)
    for epsilon, delta in product(("1e-100", "1e12", "1e300"), ("1e-900", "0.999")):
        assert infimum(zcdp_rho(epsilon, delta), exact(epsilon)) <= mpmath.mpf(delta)


def test_the_margin_does_not_depend_on_the_caller_s_decimal_context():
    known = zcdp_delta("0.5", 5)
    with decimal.localcontext(prec=3, rounding=decimal.ROUND_FLOOR):
        assert zcdp_delta("0.5", 5) == known


@pytest.mark.parametrize(
    ("call", "values", "words"),
    [
        (zcdp_delta, (Fraction(10) ** 301, 1), "rho is above 1e300"),
        (zcdp_delta, (1, Fraction(10) ** 301), "epsilon is above 1e300"),
        (zcdp_epsilon, (Fraction(10) ** 400, "0.1"), "rho is above 1e300"),
        (zcdp_rho, (Fraction(10) ** 400, "0.1"), "epsilon is above 1e300"),
        (zcdp_rho, ("1e-101", "0.1"), "epsilon = '1e-101' is below 1e-100"),
    ],
)
def test_budgets_beyond_all_floats_are_refused_in_words(call, values, words):
    with pytest.raises(InvalidParameter, match=words):
        call(*values)
