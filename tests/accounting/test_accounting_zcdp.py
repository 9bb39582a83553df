"""The tight conversion between ρ-zCDP and (ε, δ), held against other people's code and a true mechanism."""

import math
from fractions import Fraction

import dp_accounting
import mpmath
import numpy as np
import pytest
from dp_accounting.rdp import RdpAccountant
from scipy.stats import norm

from dpveil.accounting import zcdp_delta, zcdp_epsilon, zcdp_rho
from dpveil.accounting.zcdp import smallest
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
