"""The lattice: numbering, rounding, snapping, and how far one record can move a rounded answer."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpveil.errors import InvalidParameter
from dpveil.mechanisms.scalar import Range
from dpveil.mechanisms.scalar.lattice import Lattice, coarsest

rationals = st.fractions(min_value=-50, max_value=50, max_denominator=60)
positive = st.fractions(min_value="1/40", max_value=20, max_denominator=40)


@st.composite
def ranges(draw, ends=(True, True), most_gaps=3):
    count = 2 * draw(st.integers(0, most_gaps))
    edges = sorted(draw(st.sets(st.integers(-40, 40), min_size=count + 2, max_size=count + 2)))
    unit = draw(st.sampled_from([Fraction(1), Fraction(1, 2), Fraction(3, 10)]))
    edges = [edge * unit for edge in edges]
    low = edges[0] if ends[0] and draw(st.booleans()) else None
    high = edges[-1] if ends[1] and draw(st.booleans()) else None
    return Range(low, high, gaps=list(zip(edges[1:-1:2], edges[2:-1:2], strict=True)))


@settings(max_examples=80, deadline=None)
@given(ranges(), positive, st.integers(1, 7))
def test_the_coarsest_step_and_its_parts_fit(allowed, sensitivity, parts):
    step = coarsest(allowed, sensitivity)
    lattice = Lattice(allowed, step / parts, sensitivity)
    floats = 0 if lattice.reading.pull else 1  # without a pull, floats may end half a step further apart
    assert lattice.reach == sensitivity / step * parts + floats
    for first, last in lattice.spans:
        for point in (first, last):
            assert point is None or lattice.origin + point * lattice.step in allowed
    edges = [
        e for e in (allowed.low, *(e for gap in allowed.gaps for e in gap), allowed.high) if e is not None
    ]
    for larger in (2, 3, 5):  # nothing larger fits
        lengths = [sensitivity, *(edge - edges[0] for edge in edges)]
        assert any(length % (larger * step) for length in lengths)


@settings(max_examples=150, deadline=None)
@given(positive, positive, st.lists(rationals, min_size=2, max_size=2))
def test_one_record_moves_a_rounded_answer_by_reach_at_most(sensitivity, step, answers):
    """For any step, whether ΔF is a multiple of it or not: the second answer is ΔF from the first at most."""
    lattice = Lattice(Range(), step, sensitivity)
    first, way = answers
    second = first + sensitivity * max(Fraction(-1), min(Fraction(1), way / 50))
    rounded = lattice.index([first, second])
    assert abs(rounded[0] - rounded[1]) <= lattice.reach
    floats = 0 if lattice.reading.pull else Fraction(1, 2)
    assert lattice.reach == -(-(sensitivity / step + floats) // 1)
    edges = lattice.index([step / 2 - sensitivity, step / 2])  # halves go up
    assert abs(edges[0] - edges[1]) <= lattice.reach


@settings(max_examples=80, deadline=None)
@given(ranges(), positive, st.integers(1, 4), st.lists(rationals, min_size=1, max_size=8))
def test_answers_round_to_the_nearest_point_of_the_range(allowed, sensitivity, parts, answers):
    lattice = Lattice(allowed, coarsest(allowed, sensitivity) / parts, sensitivity)
    inside = [answer for answer in answers if answer in allowed]
    points = lattice.index(inside) if inside else np.zeros(0, np.int64)
    assert lattice.allowed(points).all()
    for answer, point in zip(inside, points.tolist(), strict=True):
        offset = answer - lattice.origin - point * lattice.step
        assert abs(offset) <= lattice.step * (Fraction(3, 4) if lattice.reading.pull else Fraction(1, 2))
        assert offset % lattice.step or not offset  # a point is read as itself
    for answer in set(answers) - set(inside):
        with pytest.raises(InvalidParameter, match="is not in the range"):
            lattice.index(answer)


@settings(max_examples=80, deadline=None)
@given(ranges(), st.integers(-200, 200), st.integers(1, 3))
def test_snapping_goes_to_the_nearest_allowed_point_the_lower_of_two(allowed, start, parts):
    lattice = Lattice(allowed, coarsest(allowed, Fraction(1)) / parts, Fraction(1))
    points = np.arange(start, start + 50)
    snapped = lattice.snap(points)
    assert lattice.allowed(snapped).all()
    window = np.arange(start - 1500, start + 1550)
    choices = window[lattice.allowed(window)]
    if len(choices) and choices[0] <= points[0] and choices[-1] >= points[-1]:
        for point, found in zip(points, snapped, strict=True):
            assert found == min(choices, key=lambda choice: (abs(choice - point), choice))
    kept = lattice.allowed(points)
    assert (snapped[kept] == points[kept]).all()


def test_points_and_size_of_a_finite_lattice():
    lattice = Lattice(Range(0, 3, gaps=[(1, 2)]), Fraction(1, 2), Fraction(1))
    assert lattice.points.tolist() == [0, 1, 2, 4, 5, 6]
    assert lattice.size == 6
    assert lattice.gaps == ((2, 4),)
    assert lattice.spans == ((0, 2), (4, 6))
    assert Lattice(Range(0), Fraction(1), Fraction(1)).size is None


def test_an_end_that_is_a_float_is_never_exceeded():
    """-1 + 11/10 is 0.10000000000000009 where both are rounded first; the end is 0.1."""
    lattice = Lattice(Range(-1, "0.1"), Fraction(1, 10), Fraction(1))
    assert lattice.value(np.array([11])).item() == 0.1
    assert lattice.index(lattice.value(lattice.points)).tolist() == lattice.points.tolist()


@settings(max_examples=100, deadline=None)
@given(
    st.integers(-(10**6), 10**6), st.integers(1, 2000), st.integers(1, 2000), st.integers(-(10**14), 10**14)
)
def test_values_are_rounded_once(low, numerator, denominator, point):
    lattice = Lattice(Range(Fraction(low, 16)), Fraction(numerator, denominator), Fraction(1))
    exact = lattice.origin + point * lattice.step
    assert lattice.value(np.array([point, 0])).tolist() == [float(exact), float(lattice.origin)]


def test_values_of_nothing_and_of_wide_steps():
    assert Lattice(Range(0), Fraction(1), Fraction(1)).value(np.zeros(0, np.int64)).tolist() == []
    wide = Lattice(Range(0, 10**20), Fraction(10**20), Fraction(1))
    assert wide.value(np.array([0, 1])).tolist() == [0, 1e20]


def test_gaps_without_ends_start_at_a_gap():
    """0 need not be a point: the gaps have to be."""
    lattice = Lattice(
        Range(gaps=[("1/3", "4/3")]), coarsest(Range(gaps=[("1/3", "4/3")]), Fraction(1)), Fraction(1)
    )
    assert lattice.origin == Fraction(1, 3)
    assert lattice.step == 1


def test_what_does_not_fit_is_refused():
    with pytest.raises(InvalidParameter, match="does not divide the range at 1"):
        Lattice(Range(0, 1), Fraction(3, 10), Fraction(1))
    with pytest.raises(InvalidParameter, match=r"does not divide the range at 0\.35"):
        Lattice(Range(0, 1, gaps=[("0.3", "0.35")]), Fraction(1, 10), Fraction(1))
    lattice = Lattice(Range(0), Fraction(1, 1024), Fraction(1))
    with pytest.raises(InvalidParameter, match="too many steps"):
        lattice.index(10**17)
    with pytest.raises(InvalidParameter, match="too large to be told apart"):
        lattice.index(1e17)
    for wrong in (True, "many", float("nan"), None, [1, None]):
        with pytest.raises(InvalidParameter, match="answer"):
            lattice.index(wrong)
