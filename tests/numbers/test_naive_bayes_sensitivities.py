"""What one record moves, over neighbouring tables, and what a fit shows of it."""

from fractions import Fraction
from itertools import pairwise
from math import isqrt

import numpy as np
import pytest

from dpveil.core.registry import SCALAR
from dpveil.numbers import naive_bayes
from dpveil.numbers.naive_bayes import (
    LEVELS,
    Deviations,
    centred_sums,
    encode,
    root_point,
    square_point,
    squares_about,
)

SEED = 20261121
NAMES = sorted(SCALAR)


def tables(count=300):
    """Yield codes of a class and of the same class with one record more, with codes at the ends too."""
    random = np.random.default_rng(SEED)
    for _ in range(count):
        records = random.integers(0, 9)
        ends = random.choice([0, LEVELS, LEVELS // 2], size=(records + 1, 1))
        inside = random.integers(0, LEVELS + 1, size=(records + 1, 1))
        both = np.where(random.random((records + 1, 1)) < 0.5, ends, inside).astype(np.int64)
        yield both[:-1], both


def reach_of(centre):
    return max(int(centre), LEVELS - int(centre))


# Sensitivities


def test_one_record_moves_a_centred_sum_by_at_most_one_and_by_one():
    moved = [np.abs(np.diff(centred_sums(both), axis=0)).max() for both in tables()]
    assert max(moved) == LEVELS


def moved_roots():
    """Return by how much roots and squares move, over all pairs of tables and many public centres."""
    found = []
    for less, more in tables():
        for centre in (0, 1, LEVELS // 3, LEVELS // 2, LEVELS - 1, LEVELS):
            squares = squares_about((less, more), np.array([[centre]] * 2))[:, 0].tolist()
            wide = reach_of(centre)
            root = (squares[1] ** 0.5 - squares[0] ** 0.5) / wide
            found.append((root, Fraction(squares[1] - squares[0], wide**2)))
    return max(root for root, _ in found), max(square for _, square in found)


def test_one_record_moves_roots_and_squares_about_any_centre_by_at_most_one_and_by_one():
    root, square = moved_roots()
    assert root == pytest.approx(1, abs=1e-12)
    assert square == 1


@pytest.mark.parametrize("epsilon", [Fraction(1, 100), Fraction(1), Fraction(50)])
@pytest.mark.parametrize("squared", [False, True])
@pytest.mark.parametrize("name", NAMES)
def test_points_are_the_nearest_and_stay_within_a_reach(name, squared, epsilon):
    mechanism = Deviations(name, "database-record", epsilon, squared).at(9)
    step, last = mechanism.lattice.step, mechanism.lattice.spans[-1][1]
    nearest = square_point if squared else root_point
    for less, more in tables(40):
        centre = np.array([LEVELS // 3])
        wide = reach_of(centre[0])
        places = []
        for codes in (less, more):
            squares = int(squares_about((codes,), centre[None])[0, 0])
            point = nearest(squares, wide, mechanism)
            places.append(point)
            if last is None or point < last:
                low, high = (max(Fraction(2 * point + sign) * step / 2, 0) for sign in (-1, 1))
                power = 1 if squared else 2
                assert low**power <= Fraction(squares, wide**2) < high**power
        assert abs(places[1] - places[0]) <= mechanism.lattice.reach


def test_finite_mechanisms_end_where_a_class_of_that_size_does():
    for size in (1, 2, 9, 10, 100):
        roots = Deviations("geometric", "database-record", Fraction(1)).at(size)
        assert roots.range.high is None
        top = Deviations("explicit-fair", "database-record", Fraction(1)).at(size).range.high
        assert top == isqrt(size - 1) + 1 >= size**0.5
        assert (
            Deviations("explicit-fair", "database-record", Fraction(1), squared=True).at(size).range.high
            == size
        )


# What the whole fit costs: laws


def log_ratio_of_the_thesis_mean(less, more, output, epsilon):
    """Return the log-ratio of two densities with scales (b - a)/((n + 1)·ε), b - a = 1."""
    logs = []
    for values in (less, more):
        scale = 1 / ((len(values) + 1) * epsilon)
        logs.append(-abs(output - np.mean(values)) / scale - np.log(2 * scale))
    return abs(logs[0] - logs[1])


def test_errata_e13_true_class_sizes_make_ratios_unbounded_even_if_records_agree():
    """A record is added that leaves the mean where it is: only the scale changes, which shows far out."""
    ratios = [log_ratio_of_the_thesis_mean([0.0], [0.0, 0.0], -x, 1.0) for x in (1, 10, 100)]
    assert ratios == pytest.approx([1 - np.log(1.5), 10 - np.log(1.5), 100 - np.log(1.5)])
    snapped = np.log(0.5) - np.log(0.5 * np.exp(-3 * 0.5))  # all that is below the bound becomes the bound
    assert snapped == pytest.approx(1.5)
    assert all(a < b for a, b in pairwise(ratios))


def test_large_classes_get_coarser_steps_and_keep_their_cost():
    for size in (513, 5000, 10**6):
        mechanism = Deviations("explicit-fair", "database-record", Fraction(1), squared=True).at(size)
        assert mechanism.lattice.size <= naive_bayes.MOST_STEPS + 1
        assert size <= mechanism.range.high < size + mechanism.lattice.step
        assert mechanism.lattice.reach == 1
        assert mechanism.certificate.epsilon <= 1


def test_codes_are_of_one_record_each_and_clipped():
    values = np.array([[-5.0, 0.2], [0.5, 7.0], [1.0, 0.3]])
    codes = encode(values, np.zeros(2), np.ones(2))
    assert codes[:, 0].tolist() == [0, LEVELS // 2, LEVELS]
    assert codes[1, 1] == LEVELS
    for row in range(3):
        assert (encode(values[[row]], np.zeros(2), np.ones(2)) == codes[row]).all()
