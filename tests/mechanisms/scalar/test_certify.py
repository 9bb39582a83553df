"""Certificates against all pairs in whole numbers, and what mixing and rounding may do to a law."""

from fractions import Fraction
from itertools import combinations

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpveil.errors import NoiseError
from dpveil.mechanisms.scalar.lattice import (
    ROUNDING,
    certificate,
    certified,
    log_ratio,
    mixed,
    steepest,
)
from dpveil.noise.matrix import TOTAL, IntegerMatrix, log_above, quantise


@st.composite
def matrices(draw):
    """Rows of positive whole weights over wide magnitudes, with answers on a lattice with gaps."""
    size = draw(st.integers(2, 9))
    exponents = st.integers(0, 50)
    rows = [[draw(st.integers(1, 1000)) << draw(exponents) for _ in range(size)] for _ in range(size)]
    steps = draw(st.lists(st.sampled_from([1, 1, 1, 2, 5]), min_size=size - 1, max_size=size - 1))
    return rows, [draw(st.integers(-5, 5)), *steps]


def brute(matrix, points, allowed):
    """The largest log-ratio over all pairs of answers and all responses, from fractions."""
    found = [Fraction(0)]
    for i, j in combinations(range(len(points)), 2):
        if allowed(int(points[j] - points[i])):
            for a, b in zip(matrix.weights[i], matrix.weights[j], strict=True):
                found.append(log_above(Fraction(max(a, b), min(a, b))) / allowed(int(points[j] - points[i])))
    return max(found)


@settings(max_examples=60, deadline=None)
@given(matrices(), st.integers(1, 12))
def test_certificates_are_all_pairs_rounded_up(given_matrix, reach):
    rows, steps = given_matrix
    matrix, points = quantise(rows), np.cumsum(steps)
    seen = certificate(matrix, points, reach, Fraction(reach))
    for value, allowed in (
        (seen.epsilon, lambda d: 1 if d <= reach else 0),
        (seen.overall, lambda d: 1),
        (seen.per_distance, lambda d: Fraction(d, reach)),
    ):
        right = brute(matrix, points, allowed)
        assert right <= value <= right + 2 * reach * ROUNDING
    assert seen.epsilon == log_ratio(matrix, points, reach)
    assert seen.per_distance == reach * steepest(matrix, points)


def test_equal_rows_cost_nothing_and_zeros_that_differ_have_no_bound():
    half = TOTAL // 2
    points = np.array([0, 1])
    same = IntegerMatrix(((half, half, 0), (half, half, 0)))
    assert certificate(same, points, 1, Fraction(1)).overall == 0
    with pytest.raises(NoiseError, match="response 0 never follows answer 1"):
        log_ratio(IntegerMatrix(((half, half), (0, TOTAL))), points, 1)
    with pytest.raises(NoiseError, match="never follows"):
        steepest(IntegerMatrix(((half, half), (0, TOTAL))), points)


@settings(max_examples=60, deadline=None)
@given(
    st.integers(2, 6).flatmap(
        lambda n: st.lists(st.lists(st.integers(0, 10**6), min_size=n, max_size=n), min_size=2, max_size=5)
    ),
    st.integers(1, 1 << 58),
)
def test_mixing_keeps_every_bound_and_raises_what_is_small(rows, least):
    rows = [[weight + (j == 0) for j, weight in enumerate(row)] for row in rows]  # no empty row
    found = mixed(rows, Fraction(least))
    shown = [any(column) for column in zip(*rows, strict=True)]

    def laws(given_rows):
        return [[Fraction(weight, sum(row)) for weight in row] for row in given_rows]

    before, after = laws(rows), laws(found)
    floor = Fraction(min(least, TOTAL // (2 * sum(shown))), TOTAL) / 2
    for i, row in enumerate(after):
        for y, chance in enumerate(row):
            assert (chance > 0) == shown[y]
            assert not shown[y] or chance >= min(floor, before[i][y])
            if found is not rows and shown[y]:
                assert chance >= floor
    for a, b in combinations(range(len(rows)), 2):
        for y in range(len(shown)):
            for one, other in ((a, b), (b, a)):
                if before[other][y]:
                    bound = max(Fraction(1), before[one][y] / before[other][y])
                    assert after[one][y] <= bound * after[other][y]


def test_nothing_is_mixed_in_where_weights_are_large():
    rows = [[3, 5], [5, 3]]
    assert certified(lambda _: rows, Fraction(1), Fraction(1), lambda _: Fraction(0)) == quantise(rows)


def geometric(size):
    def rows(epsilon):
        ratio = mpmath.exp(-mpmath.mpf(epsilon.numerator) / epsilon.denominator / 2)
        return [[int(ratio ** abs(x - y) * (1 << 200)) for y in range(size)] for x in range(size)]

    return rows


@pytest.mark.parametrize("epsilon", ["1e-6", "0.01", "1", "20", "300", "1e5"])
@pytest.mark.parametrize("size", [2, 9, 60])
def test_what_is_certified_keeps_the_budget_and_nearly_spends_it(epsilon, size):
    budget, points = Fraction(epsilon), np.arange(size)
    matrix = certified(geometric(size), budget, budget, lambda m: log_ratio(m, points, 1))
    exact = brute(matrix, points, lambda d: 1 if d <= 1 else 0)
    assert exact <= budget
    if 0.01 <= budget <= 20 and size < 10:
        with mpmath.workdps(30):
            law = quantise(geometric(size)(budget))
        assert exact >= Fraction(99, 100) * brute(law, points, lambda d: 1 if d <= 1 else 0)


def test_what_64_bits_cannot_carry_is_refused():
    with pytest.raises(NoiseError, match="cannot carry a budget"):
        certified(geometric(3), Fraction(1, 10**11), Fraction(1, 10**11), lambda m: Fraction(0))
    with pytest.raises(NoiseError, match="cannot carry a budget"):
        certified(geometric(3), Fraction(1), Fraction(1), lambda m: Fraction(2))
