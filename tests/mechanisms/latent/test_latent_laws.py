"""What is drawn, exactly: every two inputs on small grids, the samplers' fit, and published mistakes."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from latent_spaces import FLAT, UNEVEN, Space, worst

from dpveil.mechanisms.latent import BoxLaplace, CroftMetric
from dpveil.mechanisms.latent.base import STEPS
from dpveil.noise.bits import SeededBits

SMALL = 4


def box_scales(space, epsilon, weights, steps):
    """(high - low)/(w·ε) in steps of (high - low)/steps: Li & Clifton 2021, algorithm 2, with erratum E7."""
    return [Fraction(steps) / (w * epsilon) for w in weights]


# Errata


def test_errata_e7_weights_in_the_numerator_overspend(coarse):
    """Li & Clifton's algorithm 2 prints Lap(S·w/ε): with m equal weights it costs m² times what it says."""
    coarse(SMALL)
    epsilon, m = Fraction(2), 3
    weights = [Fraction(1, m)] * m
    printed, _ = worst(lambda point: [SMALL * w / epsilon for w in weights], SMALL)
    assert math.isclose(printed, m**2 * epsilon, rel_tol=1e-9)
    ours, _ = worst(lambda point: BoxLaplace(epsilon=epsilon, allocation="equal").scales(UNEVEN), SMALL)
    assert ours <= epsilon * (1 + 1e-9)


def test_errata_e4_sensitivities_of_the_pair_itself_are_private():
    """FaceIDP's S_m is the distance of the protected code to an edge: another code, another scale.

    Where scales differ the log-ratio grows without end as the outcome goes out, so no ε holds.
    """
    edge, epsilon = 1000, 1.0

    def log_distribution(at, outcome):
        scale = abs(edge - at) / epsilon
        return -abs(outcome - at) / scale - math.log(scale)

    ratios = [abs(log_distribution(990, far) - log_distribution(0, far)) for far in (2_000, 20_000, 200_000)]
    assert ratios[0] > 50 * epsilon
    assert ratios[2] > 9 * ratios[1] > 80 * ratios[0]
    mechanism = BoxLaplace(epsilon=1)
    assert mechanism.scales(UNEVEN) == mechanism.scales(UNEVEN)  # ours know the space and no code


@pytest.mark.parametrize("share", [0, Fraction(1, 10**6)])
def test_errata_e4_budgets_over_a_part_of_the_coordinates_leave_the_rest_open(share, coarse):
    """FaceIDP divides ε over coordinates that matter for recognition; the others get no noise, or hardly."""
    coarse(SMALL)
    epsilon = Fraction(2)
    weights = [Fraction(2, 3), Fraction(1, 3)]  # sums to 1 over two of three
    if share == 0:
        released = {point: point[2] for point in ((0, 0, 0), (0, 0, 1))}
        assert len(set(released.values())) == 2  # told apart with certainty
        return
    scales = [*box_scales(UNEVEN, epsilon, weights, SMALL), Fraction(1, 3)]
    most, _ = worst(lambda point: scales, SMALL)
    assert most > 6 * epsilon
    shares = BoxLaplace(epsilon=epsilon).shares(UNEVEN)
    assert len(shares) == UNEVEN.length
    assert min(shares) > 0


def test_errata_e9_bounds_taken_from_the_code_lose_everything():
    """A box around the protected code itself: releases pile up at its ends, which are the code's own."""

    class OwnBounds(Space):
        pass

    def mutant(code):
        around = OwnBounds(tuple(code - 1.0), tuple(code + 1.0))
        return CroftMetric(epsilon=1).release(code[None], around, bits=SeededBits(1))[0]

    first, second = np.array([3.0, 40.0]), np.array([-9.0, 4.0])
    assert np.all(np.abs(mutant(first) - first) <= 1)
    assert np.all(np.abs(mutant(second) - second) <= 1)  # the two can never give the same release
    ours = [CroftMetric(epsilon=1).release(c[None], FLAT, bits=SeededBits(1))[0] for c in (first, second)]
    box = FLAT.bounds()
    assert all(np.all((box.low <= one) & (one <= box.high)) for one in ours)


def test_errata_e9_neither_scales_nor_the_box_depend_on_the_code():
    """The same bits at two corners: what is not clipped differs by exactly the distance of the corners."""
    mechanism = CroftMetric(epsilon=STEPS * 2 / 5)
    a, b = np.array([[0.25, -1.0]]), np.array([[0.75, 3.0]])
    first, second = (mechanism.release(c, FLAT, bits=SeededBits(3)) for c in (a, b))
    assert np.allclose(second - first, b - a, atol=1e-9)
