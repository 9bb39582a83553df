"""Many Laplace draws as one (ε, δ): the dominating movement, and the accountant, against enumeration."""

import itertools
from fractions import Fraction
from functools import lru_cache

import mpmath
import numpy as np
import pytest
from dp_accounting.pld import pld_pmf, privacy_loss_distribution
from scipy.stats import binom

from dpveil.accounting import laplace_epsilon, laplace_scale
from dpveil.accounting.zcdp import _one_delta, _places, merge_shifts, pure_epsilon
from dpveil.core.rationals import float_above
from dpveil.mechanisms.pixel.base import fullest_cells


@lru_cache(maxsize=8)
def losses(shifts: tuple[int, ...], scale: float) -> tuple[np.ndarray, np.ndarray]:
    """Return the exact law of the privacy loss, by enumerating every draw clipped to its movement."""
    loss, mass = np.zeros(1), np.ones(1)
    q = np.exp(-1 / scale)
    for t in shifts:
        j = np.arange(t + 1)
        law = (1 - q) / (1 + q) * q**j
        law[0], law[t] = 1 / (1 + q), q**t / (1 + q)
        loss = np.add.outer(loss, (t - 2 * j) / scale).ravel()
        mass = np.multiply.outer(mass, law if t else np.ones(1)).ravel()
        keys, places = np.unique(np.round(loss, 12), return_inverse=True)
        loss, mass = keys, np.bincount(places, mass)
    return loss, mass


def hockey_stick(shifts: tuple[int, ...], scale: float, epsilon: float) -> float:
    loss, mass = losses(shifts, scale)
    return float(np.sum(mass * np.maximum(0, 1 - np.exp(epsilon - loss))))


def test_an_unequal_movement_dominates_a_more_equal_one():
    """16 200 cases: (a + d, b - d, ...) has at least the divergence of (a, b, ...) for a ≥ b, at every ε."""
    worse = 0
    for scale in (0.5, 1.0, 3.0, 10.0, 50.0):
        for a, extra in itertools.product(range(1, 9), ((), (3,), (5, 2))):
            for b in range(1, a + 1):
                for d in range(1, b + 1):
                    for part in np.linspace(0, 0.99, 9):
                        epsilon = part * (a + b + sum(extra)) / scale
                        spread = hockey_stick((a, b, *extra), scale, epsilon)
                        pushed = hockey_stick((a + d, b - d, *extra), scale, epsilon)
                        assert pushed >= spread - 1e-11
                        worse += pushed > spread + 1e-9
    assert worse > 5000


@pytest.mark.parametrize("size", [(3, 3, 2), (2, 5, 2), (4, 4, 3), (1, 7, 2)])
@pytest.mark.parametrize("m", [1, 2, 3, 4, 5, 7])
def test_filling_the_fullest_cells_dominates_every_way_to_change_m_pixels(size, m: int):
    """All integer fills of all cells, levels 0..1 instead of 0..255 (the unit of movement is free)."""
    height, width, block = size
    areas = [
        len(range(top, min(top + block, height))) * len(range(left, min(left + block, width)))
        for top in range(0, height, block)
        for left in range(0, width, block)
    ]
    greedy = fullest_cells(height, width, block, m)
    fill = tuple(moved // 255 for moved, count in greedy.items() for _ in range(count))
    assert sum(fill) == min(m, height * width)
    # In any order of cells, for their draws are independent.
    fills = {tuple(sorted(f)) for f in itertools.product(*(range(a + 1) for a in areas)) if sum(f) <= m}
    assert len(fills) > 1
    for scale, epsilon in itertools.product((1.0, 4.0), (0.0, 0.5, 1.0)):
        most = hockey_stick(fill, scale, epsilon)
        assert max(hockey_stick(f, scale, epsilon) for f in fills) <= most + 1e-11
    assert sum(t**2 for t in fill) == max(sum(t**2 for t in f) for f in fills)


@pytest.mark.parametrize(
    ("scale", "shifts", "delta"),
    [
        (10, ((3, 8),), "1e-3"),
        (10, ((3, 8), (1, 4)), "1e-6"),
        (2, ((1, 16),), "0.05"),
        (30, ((60, 3),), "1e-4"),
    ],
)
def test_the_accountant_is_never_below_enumeration_and_close_to_it(scale: int, shifts, delta: str):
    stated = laplace_epsilon(Fraction(scale), shifts, Fraction(delta))
    each = tuple(t for t, count in shifts for _ in range(count))
    assert hockey_stick(each, scale, float(stated)) <= float(Fraction(delta))
    assert hockey_stick(each, scale, float(stated) * 0.97) > float(Fraction(delta))
    assert stated <= pure_epsilon(Fraction(scale), shifts)


def test_calibration_finds_a_scale_that_the_accountant_accepts_and_hardly_a_smaller_one():
    shifts, delta = ((65280, 144),), Fraction(1, 10**6)
    scale = laplace_scale(Fraction(20), delta, shifts)
    assert (
        laplace_epsilon(scale, shifts, delta)
        <= 20
        < laplace_epsilon(scale * Fraction(999, 1000), shifts, delta)
    )
    assert float(pure_epsilon(Fraction(1), shifts) / 20 / scale) > 2  # what δ buys here


def test_one_moved_draw_gains_next_to_nothing_and_is_never_worse_than_pure():
    shifts = ((65280, 1),)
    scale = laplace_scale(Fraction(5), Fraction(1, 10**6), shifts)
    assert Fraction(9999, 10000) < scale / (Fraction(65280) / 5) <= 1


def test_very_many_draws_and_very_small_deltas_go_through_zcdp():
    many = ((255, 1_000_000),)
    assert 0 < laplace_epsilon(Fraction(255 * 1000), many, Fraction(1, 10**6)) < 10
    assert laplace_epsilon(Fraction(10), ((3, 8),), Fraction(1, 10**15)) <= Fraction(24, 10)


def test_shifts_are_merged_largest_first_without_empty_ones():
    assert merge_shifts({5: 1, 9: 2, 0: 4, 7: 0}) == ((9, 2), (5, 1))


@pytest.mark.parametrize(
    ("draws", "scale", "delta"),
    [(200_000, "568.97", "1e-10"), (50_000, "250.976", "1e-8"), (200_000, "501.95", "1e-8")],
)
def test_rounding_of_many_draws_never_eats_into_delta(draws: int, scale: str, delta: str):
    """Draws that are moved by one tell apart by whether they are positive: a binomial count, known exactly.

    With the same slack for any number of draws, the first two stated an ε whose δ was up to 6 % too large.
    """
    s = Fraction(scale)
    epsilon = float(laplace_epsilon(s, ((1, draws),), Fraction(delta)))
    count = np.arange(draws + 1)
    chance = binom.pmf(count, draws, 1 / (1 + np.exp(1 / float(s))))
    true = np.sum(chance * -np.expm1(np.minimum(0, epsilon - (draws - 2 * count) / float(s))))
    assert float(Fraction(delta)) * 0.1 < true <= float(Fraction(delta))


def test_hardly_any_noise_is_left_to_pure_composition():
    assert laplace_scale(Fraction(10**9), Fraction(1, 10**6), ((255, 4),)) <= Fraction(1020, 10**9)
    assert laplace_epsilon(Fraction(1), ((255, 4),), Fraction(1, 10**400)) == 1020


@pytest.mark.parametrize("scale", [0.5, 3, 57.3, 1000, 16000.5])
@pytest.mark.parametrize("moved", [1, 2, 7, 60, 4080, 65280])
def test_one_draw_is_discretised_as_the_peer_does_it(scale: float, moved: int):
    """`dp_accounting` visits every level of the movement in Python; the closed form does not."""
    if moved / scale > 300:
        return  # the peer overflows
    inverse, loss = float_above(1 / Fraction(scale)), moved / scale
    grid = max(1e-4, loss / 20)
    peer = privacy_loss_distribution.from_discrete_laplace_mechanism(
        inverse, moved, value_discretization_interval=grid, use_connect_dots=True
    )
    places = _places(moved, inverse, grid)
    ours = pld_pmf.create_pmf_pessimistic_connect_dots(
        grid, places, _one_delta(moved, inverse, places * grid)
    )
    for epsilon in np.linspace(-loss, loss, 33):
        assert abs(ours.get_delta_for_epsilon(epsilon) - peer.get_delta_for_epsilon(epsilon)) < 1e-14


@pytest.mark.parametrize("scale", ["0.5", "3", "1000", "1e7"])
@pytest.mark.parametrize("moved", [1, 2, 7, 60])
def test_the_divergence_of_one_draw_keeps_its_digits_however_small_it_is(scale: str, moved: int):
    """Against the table of T in sixty digits: as exact as an ε that is off in its last digit allows."""
    with mpmath.workdps(60):
        inverse = 1 / float(scale)
        q, s = mpmath.exp(-mpmath.mpf(inverse)), 1 / mpmath.mpf(inverse)
        law = [1 / (1 + q), *(q**j * (1 - q) / (1 + q) for j in range(1, moved)), q**moved / (1 + q)]
        for part in (-1.1, -1, -0.6, 0, 0.3, 0.9, 0.999, 1, 1.2):
            epsilon = part * moved * inverse
            true = sum(
                mass * max(0, 1 - mpmath.exp(mpmath.mpf(epsilon) - (moved - 2 * j) / s))
                for j, mass in enumerate(law)
            )
            ours = _one_delta(moved, inverse, np.array([epsilon]))[0]
            assert abs(ours - true) <= 1e-14 * true + 1e-16 * moved * inverse
