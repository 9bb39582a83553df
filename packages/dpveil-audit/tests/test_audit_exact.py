"""Exact distributions of pixelisation on small images: every neighbour, every output, by a second hand."""

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from dpveil.accounting import zcdp_rho
from dpveil.errors import InvalidParameter
from dpveil.mechanisms.pixel import DPPix, DPPixGaussian
from dpveil.noise.bits import SeededBits
from dpveil_audit.divergence import LAPLACE, move_loss
from dpveil_audit.pixel.case import Case
from dpveil_audit.pixel.gates import exact_gate, pld_gate, same_gate
from dpveil_audit.pixel.images import all_images, cells, neighbours
from dpveil_audit.pixel.laws import ProductLaw
from dpveil_audit.pixel.methods.dp_pix import INTACT
from dpveil_audit.pixel.methods.dp_pix_gaussian import INTACT as INTACT_GAUSSIAN
from dpveil_audit.pixel.methods.pixelisation import (
    Sensitivity,
    filled,
    gaussian_level_distribution,
    largest_rho,
    level_distribution,
    pixelisation_distribution,
    totals,
)
from dpveil_audit.pixel.table import TABLE

SHAPES = [(2, 3, 1, 2, 1), (2, 3, 1, 2, 2), (3, 3, 1, 2, 1), (3, 3, 1, 2, 4), (2, 2, 3, 2, 1)]
SHAPES += [(1, 3, 3, 2, 2), (2, 3, 1, 2, None), (2, 2, 1, 5, None), (1, 1, 3, 1, None)]


def case_of(shape, method=DPPix, levels=(0, 255), **budget):
    height, width, channels, block, m = shape
    return Case(height, width, channels, method(block=block, neighbourhood=m, **budget), levels)


def gate(name, case):
    """Return what is spent on sums and on levels, after all gates that compute have passed."""
    found = list(exact_gate(TABLE[name].intact, case, TABLE[name]))
    assert len(found) == 3
    assert all(finding.passed for finding in found)
    return found[0].value, found[1].value


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_budgets_are_kept_and_spent(shape):
    """ε in full; ρ in full by Gaussian noise, as at orders where (1 - α)·t is an integer its Rényi rate is
    exactly t²/2σ²; by Laplace noise a little less, as ε-DP is at most ε²/2-zCDP; δ not by far too little.
    """
    case = case_of(shape, epsilon="0.3" if shape[4] is None else 3)
    sums, levels = gate("dp-pix", case)
    assert sums == float(case.method.epsilon)
    assert levels > (1 - 1e-5) * float(case.method.epsilon)
    assert gate("dp-pix-gaussian", case_of(shape, DPPixGaussian, rho="0.7"))[0] == pytest.approx(
        0.7, rel=1e-9
    )
    assert 0.2 < gate("dp-pix", case_of(shape, rho="0.3"))[0] < 0.3
    for method in (DPPix, DPPixGaussian):
        case, entry = case_of(shape, method, epsilon=2, delta="0.01"), TABLE[method.name]
        assert all(finding.passed for finding in pld_gate(entry.intact, case, entry))
        assert gate(method.name, case)[0] > 0.001


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_filling_the_largest_cells_is_the_brute_force_sensitivity(shape):
    case = case_of(shape, epsilon=1)
    images = all_images(*case.size, case.levels)
    pairs = neighbours(images, case.method.neighbourhood)
    sums = np.array([totals(image, case.method.block) for image in images])
    moved = sums[pairs[:, 0]] - sums[pairs[:, 1]]
    found = Sensitivity(np.abs(moved).sum(axis=1).max(), (moved**2).sum(axis=1).max())
    assert found == filled(case.method, case.size)


@pytest.mark.parametrize(("epsilon", "delta"), [(1, "1e-6"), (2, "0.01"), (20, "1e-9"), ("0.1", "0.05")])
def test_the_second_conversion_agrees_with_the_first(epsilon, delta):
    ours = largest_rho(float(Fraction(epsilon)), float(Fraction(delta)))
    assert ours == pytest.approx(float(zcdp_rho(epsilon, delta)), rel=1e-6)


def test_neighbours_are_counted_in_pixels_not_values():
    images = all_images(2, 1, 3, (0, 255))
    one = neighbours(images, 1)
    assert len(one) == 64 * 2 * 7  # either pixel takes one of its seven other colours
    assert len(neighbours(images, 2)) == len(neighbours(images, None)) == 64 * 63


def direct(total, area, weights):
    """Return the chances of the levels by adding up every noisy sum."""
    noisy = np.arange(total - len(weights) // 2, total + len(weights) // 2 + 1)
    shown = np.zeros(256)
    for value, chance in zip(noisy, weights / weights.sum(), strict=True):
        shown[min(255, max(0, math.floor(value / area + 0.5)))] += chance
    return shown


@pytest.mark.parametrize(("total", "area"), [(300, 6), (0, 1), (255, 1), (1020, 4), (7, 3)])
def test_level_distributions_are_direct_sums(total, area):
    noise = np.arange(-6000, 6001)
    assert np.allclose(
        level_distribution(total, area, Fraction(40)),
        direct(total, area, np.exp(-np.abs(noise) / 40)),
        1e-9,
        1e-16,
    )
    assert np.allclose(
        gaussian_level_distribution(total, area, Fraction(1600)),
        direct(total, area, np.exp(-(noise**2) / 3200)),
        1e-9,
        1e-16,
    )


def test_cells_by_hand():
    assert cells(2, 3, 2) == [[(0, 0), (0, 1), (1, 0), (1, 1)], [(0, 2), (1, 2)]]
    image = np.arange(12, dtype=np.uint8).reshape(2, 3, 2)
    assert totals(image, 2) == [0 + 2 + 6 + 8, 1 + 3 + 7 + 9, 4 + 10, 5 + 11]


def test_an_outcome_that_only_one_input_gives_is_an_infinite_loss():
    distribution = ProductLaw(np.array([[0], [1]]), [np.array([[0.5, 0.5], [1.0, 0.0]])])
    assert distribution.losses(np.array([[0, 1], [1, 0]])).tolist() == [math.inf, math.log(2)]


def test_losses_of_parts_add():
    distribution = ProductLaw(np.array([[0, 0], [1, 1]]), [np.array([[0.5, 0.5], [0.2, 0.8]])] * 2)
    assert distribution.largest_loss(np.array([[0, 1]])) == pytest.approx(2 * math.log(2.5))


def test_steps_distribution_follows_the_method_at_uneven_images():
    first, second = [[[7], [200], [31]], [[90], [3], [255]]], [[[0], [0], [255]], [[1], [0], [254]]]
    images = np.array([first, second], np.uint8)
    method = DPPix(epsilon=9, block=2, neighbourhood=1)
    right = pixelisation_distribution(images, 2, Fraction(255, 9), level_distribution)
    assert INTACT.distribution(method, images).distance(right) < 1e-12
    assert (
        INTACT.distribution(method, images).distance(
            pixelisation_distribution(images, 2, Fraction(256, 9), level_distribution)
        )
        > 1e-4
    )


@pytest.mark.parametrize("size", [(1, 1, 1), (3, 5, 3), (17, 17, 1), (2, 9, 3), (33, 16, 1)])
@pytest.mark.parametrize("block", [1, 2, 16, 40])
@pytest.mark.parametrize(
    ("steps", "method"),
    [
        (INTACT, DPPix(epsilon=20, neighbourhood=4)),
        (INTACT, DPPix(epsilon=20, delta="0.01")),
        (INTACT, DPPix(rho=2, neighbourhood=4)),
        (INTACT_GAUSSIAN, DPPixGaussian(rho=20)),
        (INTACT_GAUSSIAN, DPPixGaussian(epsilon=2, delta="1e-5", neighbourhood=4)),
    ],
    ids=["pure", "laplace δ", "laplace ρ", "zcdp", "gaussian δ"],
)
def test_steps_are_the_method_bit_for_bit(size, block, steps, method):
    case = Case(*size, replace(method, block=block))
    assert next(same_gate(steps.version(), case)).passed
    image = (np.arange(np.prod(size)) * 41 % 256).astype(np.uint8).reshape(size)
    released = case.method.release(image, bits=SeededBits(3))
    assert np.array_equal(steps.releases(case.method, image, 1, SeededBits(3))[0], released)


def test_the_first_gate_sees_steps_that_are_not_the_method():
    case = Case(3, 5, 1, DPPix(epsilon=9, block=2, neighbourhood=1))
    assert not next(same_gate(TABLE["dp-pix"].mutant("noise ×0.8"), case)).passed


def test_too_many_images_are_refused():
    with pytest.raises(InvalidParameter, match="make 65536 images"):
        all_images(4, 4, 1, (0, 255))


def test_an_excess_over_a_small_delta_is_seen_by_both_accountants():
    """Nothing is left to chance: δ = 1e-10 is promised, and 9e-10 spent."""
    case = Case(1, 3, 1, DPPix(epsilon=6, delta="1e-10", block=1))
    scale = Fraction(3 * 255, 6) / (1 + Fraction("1.2e-9"))
    narrow = INTACT.with_parameters("narrow", lambda method, size: [scale] * 3).version()
    assert 8e-10 < move_loss(LAPLACE, ((255, scale),) * 3).delta(6.0) < 1e-9
    entry = TABLE["dp-pix"]
    for gate in (exact_gate, pld_gate):
        for version, kept in ((INTACT.version(), True), (narrow, False)):
            found = [f for f in gate(version, case, entry) if f.unit == "δ"]
            assert found
            assert all(f.passed == kept for f in found), found
            assert all(f.sees == "δ above 1e-10 by 1e-13" for f in found)
