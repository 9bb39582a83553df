"""Errata E11: formulas 5.71, 5.72 and 5.74 of Croft's thesis as printed are no distributions; ours are."""

import math

import numpy as np
import pytest
from scipy import integrate

from dpveil.mechanisms.scalar import ExplicitFair, Geometric, TruncatedLaplace


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
