"""The laws of scalar mechanisms, codes, faces and tables, against other definitions and by hand."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from dpveil.mechanisms.scalar import ExplicitFair, Geometric
from dpveil_audit.distributions import laplace_distribution
from dpveil_audit.faces import gallery
from dpveil_audit.pixel.case import extreme_images
from dpveil_audit.scalar.case import INTACT, ScalarCase, exact_gate, one_sided, released_law, table
from dpveil_audit.scalar.mutants import raised_weight


def broken(findings):
    return [finding for finding in findings if not finding.passed]


@pytest.mark.parametrize("excess", [1e-3, 1e-9, 1e-12])
def test_an_unrepaired_matrix_dies_of_the_smallest_violation(excess):
    """Linear programs leave violations of 1e-9 and less: integers are compared without tolerance."""
    case = ScalarCase(ExplicitFair(range=(0, 4), sensitivity=1, epsilon=1, relation="database-record"))
    version = replace(INTACT, law=table(lambda method, count: raised_weight(method, excess)))
    found, *_ = broken(exact_gate(version, case))
    assert found.value - 1 <= 4 * excess + 1e-9  # what is added is taken elsewhere
    assert not broken(exact_gate(INTACT, case))


def test_laws_and_images_by_hand():
    half = Fraction(1, 2)
    assert gallery.by_rank((half, half / 2, half / 2), (5, 0, 5)) == (half / 2, half, half / 2)
    first, middle, last = gallery.flips(3, 2.0)  # the last is given where it comes before the first
    assert (6 * last, first + middle + last) == pytest.approx((math.exp(-2) * (3 - math.exp(-1)), 1))
    coins = [(half, half), (half / 2, 3 * half / 2)]
    assert gallery.independent_draws(coins)[0, 1] == Fraction(3, 8)
    assert gallery.single_draw(coins) == {(0, 0): half / 2, (0, 1): half / 2, (1, 0): 0, (1, 1): half}
    whole, at = laplace_distribution(Fraction(2)), np.array([-1, 0])
    assert np.isclose(one_sided(whole).survival(at)[1], np.divide(*whole.survival(at)[::-1]))
    assert extreme_images((2, 3, 1), 1, 2)[:, :, 2].all(axis=1).any()  # one of them has a white last column


def test_numbers_that_are_drawn_apart_cost_their_sum():
    mechanism = Geometric(range=(0, 3), sensitivity=1, epsilon="0.5")

    def losses(*tables):
        law = released_law([tuple(((mechanism, point),) for point in points) for points in tables])
        return [float(loss) for loss in law.losses(np.array([[0, 1], [1, 0]]))]

    assert losses([0, 1, 3], [1, 1, 2]) == pytest.approx([1, 1], abs=1e-9)
    assert max(losses([0, 1, 3], [1, 1, 2])) <= 1
    assert (losses([0, 1, 3], [0, 1, 3]), losses([0, 1, 3], [0, 1])) == ([0, 0], [math.inf, math.inf])
    assert [ScalarCase(replace(mechanism, epsilon=epsilon)).length for epsilon in (2, "0.1")] == [1, 10]
