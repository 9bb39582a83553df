"""Numbers as they arrive: what floats are read as, and how far apart neighbours' end up."""

import array
import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from dpveil.core.registry import SCALAR
from dpveil.errors import InvalidParameter, NoiseError
from dpveil.mechanisms.scalar import Geometric, Laplace, Range
from dpveil.mechanisms.scalar.lattice import OFF, Lattice, coarsest
from dpveil.mechanisms.scalar.matrix_cost import log_ratio
from dpveil.noise.integer_matrix import ROW_SUM, IntegerMatrix
from dpveil_audit.scalar.case import INTACT, ScalarCase, exact_gate
from dpveil_audit.scalar.mutants import READINGS, shortest_decimal


def counting_thirds(**more):
    return Geometric(range=(0, 1), sensitivity=Fraction(1, 3), epsilon=1, relation="database-record", **more)


def test_errata_e21_float_means_of_neighbours_cost_epsilon_and_no_more():
    """1/6 and 1/2 as floats: halves up took them to points 0 and 2, and noise for one step then cost 2."""
    method = counting_thirds()
    means = [np.mean([0, 0, 0.5]), np.mean([1, 0, 0.5])]
    rows = [method.integers.weights[point] for point in method.lattice.index(means)]
    cost = max(abs(math.log(a / b)) for a, b in zip(*rows, strict=True))
    assert cost <= 1
    published = [shortest_decimal(method.lattice, mean) for mean in means]
    assert published == [0, 2]
    rows = [method.integers.weights[point] for point in published]
    assert max(abs(math.log(a / b)) for a, b in zip(*rows, strict=True)) > 1.9


@pytest.mark.parametrize("mutant", READINGS[:2], ids=lambda mutant: mutant.name)
def test_errata_e21_numbers_beside_turns_show_the_published_reading(mutant):
    case = ScalarCase(counting_thirds())
    assert all(found.passed for found in exact_gate(INTACT, case))
    found = next(exact_gate(mutant, case))
    assert found.value > 1.05 * found.limit


lengths = st.fractions(min_value="1/30", max_value=9, max_denominator=30)


@st.composite
def lattices(draw):
    """What lattices are made of: any ends, steps that divide ΔF or do not, coarse and fine."""
    step = draw(lengths) / draw(st.sampled_from([1, 1, 10, 1000]))
    low = step * draw(st.integers(-400, 400))
    ends = draw(st.sampled_from(["both", "low", "high", "none"]))
    high = low + step * draw(st.integers(1, 4000))
    allowed = Range(low if ends in ("both", "low") else None, high if ends in ("both", "high") else None)
    return allowed, step, draw(lengths)


def away(value, ulps):
    for _ in range(abs(ulps)):
        value = math.nextafter(value, math.copysign(math.inf, ulps))
    return value


@settings(max_examples=200, deadline=None)
@given(
    lattices(),
    st.integers(-3000, 3000),
    st.integers(-3, 3),
    st.integers(-3, 3),
    st.sampled_from([0, 1, -1]),
    st.booleans(),
)
def test_neighbours_floats_are_never_read_further_apart_than_reach(made, point, first, second, off, up):
    """From where points turn, and from halves, ΔF on: floats a few last places off, or as far as may be."""
    lattice = Lattice(*made)
    reading, point = lattice.reading, point * (1 if lattice.range.finite else 211)  # beyond the pull as well
    start = reading.threshold_of(point) if up else lattice.origin + (point + Fraction(1, 2)) * lattice.step
    end = start + lattice.sensitivity + off * 2 * OFF * max(abs(start), abs(start + lattice.sensitivity))
    numbers = away(float(start), first), away(float(end), second)
    assume(all(Fraction(number) in lattice.range for number in numbers))
    assume(all(reading.takes(Fraction(number)) for number in numbers))
    first, second = map(Fraction, numbers)
    assume(abs(second - first) <= lattice.sensitivity + 2 * OFF * max(abs(first), abs(second)))
    one, other = lattice.index(list(numbers)).tolist()
    assert abs(one - other) <= lattice.reach
    exact = [start, start + lattice.sensitivity]
    if all(number in lattice.range for number in exact):
        one, other = lattice.index(exact).tolist()
        assert abs(one - other) <= lattice.reach
        assert lattice.reach <= -(-lattice.sensitivity // lattice.step) + (0 if reading.pull else 1)


@settings(max_examples=80, deadline=None)
@given(lattices(), st.integers(-(10**7), 10**7))
def test_points_are_read_as_themselves_and_turns_are_where_they_are_said_to_be(made, point):
    lattice = Lattice(*made)
    value = lattice.origin + point * lattice.step
    assume(value in lattice.range)
    assert lattice.index(value).tolist() == [point]
    turn = lattice.reading.threshold_of(point)
    before = turn - lattice.step / 10**15
    assert lattice.reading.point(turn) == point
    assert lattice.reading.point(before) == point - 1


@settings(max_examples=30, deadline=None)
@given(lattices())
def test_reach_is_the_furthest_of_all_pairs_that_can_meet(made):
    """`furthest` looks at turns alone, and `reach` at the formula."""
    assume(made[0].finite)
    lattice = Lattice(*made)
    assert lattice.furthest == min(lattice.reach, len(lattice.points) - 1)


def test_the_furthest_pair_looks_at_points_and_not_at_what_lies_in_gaps():
    """A gap of 10^15 steps is passed over; across a narrow one neighbours still meet."""
    wide = Lattice(Range(0, 10**15 + 4, gaps=[(2, 10**15)]), Fraction(1), Fraction(1))
    assert (wide.size, wide.furthest, wide.reach) == (8, 1, 1)
    assert Lattice(Range(0, 9, gaps=[(2, 4)]), Fraction(1), Fraction(5, 2)).furthest == 3


@pytest.mark.parametrize("name", ["explicit-fair", "linear-program-1"])
def test_a_sensitivity_wider_than_the_range_counts_whole(name):
    """Two points, ΔF of ten: e^(ε/10) is all that is promised between them, which is ε for ΔF."""
    method = SCALAR[name](range=(0, 1), sensitivity=10, epsilon=1, relation="any-database", step=1)
    assert (method.lattice.furthest, method.lattice.record) == (1, 10)
    assert 0.9 < method.certificate.per_distance <= 1
    assert method.certificate.epsilon <= Fraction(1, 10)
    e = IntegerMatrix(((ROW_SUM - ROW_SUM // 4, ROW_SUM // 4), (ROW_SUM // 4, ROW_SUM - ROW_SUM // 4)))
    assert method._cost(e) > 1


def test_integers_are_certified_against_what_arrives_and_not_against_reach(monkeypatch):
    """With `reach` rounded down the integers cost too much, so none are drawn."""
    right = Laplace(range=(0, 6), sensitivity="2.5", epsilon=1, step=1, relation="database-record")
    assert right.lattice.reach == right.lattice.furthest == 3
    assert log_ratio(right.integers, right.lattice.points, 3) <= 1
    monkeypatch.setattr(Lattice, "reach", property(lambda self: int(self.sensitivity // self.step)))
    wrong = Laplace(range=(0, 6), sensitivity="2.5", epsilon=1, step=1, relation="database-record")
    with pytest.raises(NoiseError):
        wrong.prepare()


def test_whole_floats_are_taken_far_out_and_others_are_not():
    """Beyond where the pull reaches a float between points could be on either side of a half."""
    counts = Geometric(range="0:", sensitivity=1, epsilon=1).lattice
    assert counts.reach == 1
    assert counts.index([4.0e9, np.float64(12), 3, Decimal(7), "5"]).tolist() == [4 * 10**9, 12, 3, 7, 5]
    assert counts.index([0.4, 1000.25, Fraction(10**12 + 1, 2)]).tolist() == [0, 1000, 5 * 10**11]
    assert counts.index(["4000000000.75", "1/3"]).tolist() == [4 * 10**9 + 1, 0]  # as it is written
    for answer in (4.0e9 + 0.5, 2.0**39, 1e12, Decimal("4e9") + Decimal("0.1")):
        with pytest.raises(InvalidParameter, match="too large to be told apart"):
            counts.index(answer)


@pytest.mark.parametrize(
    "answers",
    [
        np.float32(0.5),
        [np.float32(0.5)],
        np.array([0.5], np.float32),
        np.float16(0.5),
        np.array([0.5], ">f4"),
        np.array([0.5, 1], ">f2"),
        [np.array([0.5], np.float32), np.array([1.0], np.float32)],
        array.array("f", [0.5]),
        memoryview(np.array([0.5], np.float32)),
        np.array([np.float32(0.5), 1], object),
        (0.5, [1, np.array(0.5, np.float32)]),
        np.array([0.5], complex),
    ],
)
def test_floats_of_few_digits_are_refused(answers):
    with pytest.raises(InvalidParameter, match=r"rounded too much or unknown.*float64"):
        counting_thirds().lattice.index(answers)


def test_a_guarantee_says_that_floats_may_be_refused():
    """A refusal tells of the answer: where it can happen, it stands in the clear."""
    words = "that the answer is no float too large for the step"
    told = {}
    for end in (120, 2**20, 2**40, None):
        for method in (Laplace, Geometric):
            made = method(range=(0, end), sensitivity=1, epsilon=1)
            numbers = [Fraction(k, 8) for k in (1, 2**22 + 1, 2**35 + 1) if Fraction(k, 8) in made.range]
            told[method, end] = any(words in text for text in made.guarantee().scope.in_the_clear)
            assert told[method, end] or all(made.lattice.reading.takes(number) for number in numbers)
    stated = {(Geometric, 2**20), (Geometric, 2**40), (Laplace, 2**40), (Geometric, None), (Laplace, None)}
    assert {key for key, value in told.items() if value} == stated


def test_what_is_masked_is_no_answer():
    with pytest.raises(InvalidParameter, match="is masked in part"):
        counting_thirds().lattice.index(np.ma.array([0.5, 1], mask=[0, 1]))
    assert counting_thirds().lattice.index(np.ma.array([0, 1])).tolist() == [0, 3]


def test_a_float_that_rounding_took_past_an_end_is_taken_for_the_end():
    """The mean of three tenths is 0.10000000000000002; a number that is really outside is refused."""
    lattice = Laplace(range=("0.1", "0.2"), sensitivity="0.05", epsilon=1).lattice
    mean = np.mean([0.1, 0.1, 0.1])
    assert Fraction(float(mean)) > Fraction(1, 10)
    assert lattice.index([sum([0.1] * 3) / 3, mean, 0.1])[0] == 0
    assert lattice.index(math.nextafter(0.1, 0)) == 0
    for outside in (0.0999999, Fraction(1, 10) - Fraction(1, 10**30)):
        with pytest.raises(InvalidParameter, match="is not in the range"):
            lattice.index(outside)
    gap = Laplace(range=Range(gaps=[(1, 2)]), sensitivity=1, epsilon=1).lattice
    assert gap.index([math.nextafter(1, 2), math.nextafter(2, 1)]).tolist() == [0, round(1 / gap.step)]


def test_minus_zero_is_zero_and_what_is_no_number_is_refused():
    lattice = counting_thirds().lattice
    assert lattice.index(-0.0).tolist() == lattice.index(0).tolist() == [0]
    for wrong in (math.nan, math.inf, -math.inf, np.nan, Decimal("NaN"), "nan", True, np.True_, 1j):
        with pytest.raises(InvalidParameter, match="answer"):
            lattice.index(wrong)


# Ranges: what is in them, what they refuse, and how users write them.


@pytest.mark.parametrize(
    ("text", "low", "high"),
    [("0:5", 0, 5), ("0:", 0, None), (":5", None, 5), (":", None, None), (" -1.5 : 1/3 ", "-3/2", "1/3")],
)
def test_what_users_write(text, low, high):
    read = Range.parse(text)
    assert (read.low, read.high) == tuple(None if end is None else Fraction(end) for end in (low, high))
    assert Range.of(text) == read
    assert Range.of((low, high)) == read
    assert Range.of(read) is read


def test_gaps_are_open_and_ends_belong():
    odd = Range.parse("0:10", ["1:2", "4:5.5"])
    inside = [0, 1, 2, 3, 4, 5.5, 10, Fraction(1, 3)]
    outside = [-1, Fraction(11, 10), Fraction(3, 2), 5, 10.5]
    assert all(Fraction(str(value)) in odd for value in inside)
    assert not any(Fraction(str(value)) in odd for value in outside)
    assert str(odd) == "0:10 without 1:2 and 4:5.5"
    assert (odd.finite, odd.width) == (True, 10)
    assert (Range(0).finite, Range(0).width, Range(None, 3).width) == (False, None, None)


def test_floats_are_their_shortest_decimals():
    assert Range(0.1, Decimal("0.3")) == Range("1/10", "3/10")


@pytest.mark.parametrize(
    ("low", "high", "gaps"),
    [
        (5, 5, ()),
        (5, 0, ()),
        (0, 5, [(0, 1)]),
        (0, 5, [(4, 5)]),
        (0, 5, [(2, 2)]),
        (0, 5, [(1, 3), (2, 4)]),
        (0, 5, [(1, 2), (2, 3)]),
        (0, 5, [(3, 4), (1, 2)]),
        (None, 5, [(6, 7)]),
        (0, "1e301", ()),
        ("nan", 1, ()),
        (0, float("inf"), ()),
        (0, True, ()),
    ],
)
def test_what_is_no_range_is_refused(low, high, gaps):
    with pytest.raises(InvalidParameter, match=r"range|gap"):
        Range(low, high, gaps=gaps)


@pytest.mark.parametrize("value", ["5", "1:2:3", "a:b", 5, None, (1, 2, 3), "0:1:"])
def test_what_does_not_read_as_one_is_refused(value):
    with pytest.raises(InvalidParameter, match="range"):
        Range.of(value)
    with pytest.raises(InvalidParameter, match="range"):
        Range.parse("0:5", ["3"])


# The lattice: numbering, rounding, snapping, and how far one record can move a rounded answer.


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


@settings(max_examples=80, deadline=None)
@given(ranges(), positive, st.integers(1, 4), st.lists(rationals, min_size=1, max_size=8))
def test_answers_round_to_the_nearest_point_of_the_range(allowed, sensitivity, parts, answers):
    lattice = Lattice(allowed, coarsest(allowed, sensitivity) / parts, sensitivity)
    inside = [answer for answer in answers if answer in allowed]
    points = lattice.index(inside) if inside else np.zeros(0, np.int64)
    assert lattice.is_allowed(points).all()
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
    assert lattice.is_allowed(snapped).all()
    window = np.arange(start - 1500, start + 1550)
    choices = window[lattice.is_allowed(window)]
    if len(choices) and choices[0] <= points[0] and choices[-1] >= points[-1]:
        for point, found in zip(points, snapped, strict=True):
            assert found == choices[np.abs(choices - point).argmin()]  # the first of two
    kept = lattice.is_allowed(points)
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
