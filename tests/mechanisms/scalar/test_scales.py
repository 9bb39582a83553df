"""The least scale of the truncated Laplace: all pairs of answers and all responses, and the thesis."""

import math
from fractions import Fraction
from itertools import pairwise

import mpmath
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from dpveil.errors import InvalidParameter
from dpveil.mechanisms.scalar import Range
from dpveil.mechanisms.scalar.lattice import Lattice
from dpveil.mechanisms.scalar.scales import least_scale


@st.composite
def queries(draw):
    """Ranges with up to three gaps and any ends, on whole numbers, and a reach that need not fit them."""
    count = 2 * draw(st.integers(0, 3))
    edges = np.cumsum(draw(st.lists(st.integers(1, 9), min_size=count + 2, max_size=count + 2))).tolist()
    low = edges[0] if draw(st.booleans()) else None
    high = edges[-1] if draw(st.booleans()) else None
    allowed = Range(low, high, gaps=list(zip(edges[1:-1:2], edges[2:-1:2], strict=True)))
    return allowed, draw(st.integers(1, 8))


epsilons = st.sampled_from([Fraction(e) for e in ("1/20", "1/2", "1", "5/2", "8")])


def worst(lattice, epsilon, scale, metric):
    """The largest log-ratio less what is allowed, over all pairs of answers near edges, by brute sums."""
    rate = 1 / float(scale)
    edges = [edge for span in lattice.spans for edge in span if edge is not None] or [0]
    span = max(40, 3 * lattice.reach)
    tail = math.ceil(45 / rate) + span  # what is left out is e^-45 of what is there
    outputs = np.arange(min(edges) - tail, max(edges) + tail + 1)
    outputs = outputs[lattice.allowed(outputs)]
    answers = np.arange(min(edges) - span, max(edges) + span + 1)
    answers = answers[lattice.allowed(answers)]
    totals = np.exp(-rate * np.abs(outputs - answers[:, None])).sum(axis=1)
    shown = outputs[(outputs >= answers[0]) & (outputs <= answers[-1])]
    logs = -rate * np.abs(shown - answers[:, None]) - np.log(totals)[:, None]
    most = -math.inf
    for i in range(len(answers)):
        steps = answers[i + 1 :] - answers[i]
        loss = np.abs(logs[i + 1 :] - logs[i]).max(axis=1, initial=0.0)
        promised = steps <= lattice.reach
        excess = (
            loss - float(epsilon) * steps / lattice.reach if metric else (loss - float(epsilon))[promised]
        )
        most = max(most, float(excess.max(initial=-math.inf)))
    return most


@settings(max_examples=40, deadline=None)
@given(queries(), epsilons, st.booleans())
def test_the_least_scale_over_all_pairs(query, epsilon, metric):
    """Valid at the scale; broken a millionth below, unless it is reach/ε, below which it never goes."""
    lattice = Lattice(query[0], Fraction(1), Fraction(query[1]))
    assume(lattice.reach / epsilon <= 30)
    scale = least_scale(lattice, epsilon, metric=metric)
    assert lattice.reach / epsilon <= scale <= 2 * lattice.reach / epsilon
    assert worst(lattice, epsilon, scale, metric) <= 1e-11
    if scale > lattice.reach / epsilon:
        assert worst(lattice, epsilon, scale * (1 - Fraction(1, 10**6)), metric) > 1e-9


@settings(max_examples=20, deadline=None)
@given(queries(), epsilons, st.booleans())
def test_every_larger_scale_is_valid_too(query, epsilon, metric):
    """So that bisection finds the least one."""
    lattice = Lattice(query[0], Fraction(1), Fraction(query[1]))
    assume(lattice.reach / epsilon <= 20)
    scale = least_scale(lattice, epsilon, metric=metric)
    for times in (Fraction(21, 20), Fraction(3, 2), Fraction(4)):
        assert worst(lattice, epsilon, times * scale, metric) <= 1e-11


def continuous(gaps, ends, sensitivity, epsilon):
    """The largest of the 3n + 2 bounds of thesis formulas 5.41 and 5.47, from integrals, by bisection.

    A bound at an edge is (1 + |Z'|/Z·σ)/σ ≤ ε/ΔF; across a gap |ln Z - ln Z'| + gap/σ ≤ ε·gap/ΔF.
    """
    low, high = ends
    pieces = list(pairwise([low, *(edge for gap in gaps for edge in gap), high]))[::2]

    def total(x, s):
        def cdf(z):
            return 1 - mpmath.exp(-(z - x) / s) / 2 if z >= x else mpmath.exp((z - x) / s) / 2

        return mpmath.fsum((1 if b is None else cdf(b)) - (0 if a is None else cdf(a)) for a, b in pieces)

    def slope(x, s):
        def density(z):
            return 0 if z is None else mpmath.exp(-abs(z - x) / s) / (2 * s)

        return abs(mpmath.fsum(density(a) - density(b) for a, b in pieces)) / total(x, s)

    conditions = [
        lambda s, e=e: 1 / s + slope(e, s) - epsilon / sensitivity for p in pieces for e in p if e is not None
    ]
    conditions += [
        lambda s, a=a, b=b: (
            (b - a) / s
            + abs(mpmath.log(total(a, s)) - mpmath.log(total(b, s)))
            - epsilon * (b - a) / sensitivity
        )
        for a, b in gaps
    ]
    least = mpmath.mpf(sensitivity) / epsilon
    found = [least]
    for condition in conditions:
        left, right = least, 2 * least
        for _ in range(60):
            middle = (left + right) / 2
            left, right = (left, middle) if condition(middle) <= 0 else (middle, right)
        found.append(right)
    return max(found)


@pytest.mark.parametrize(
    ("gaps", "ends"),
    [
        ([(0, 1)], (None, None)),
        ([(0, 1), (2, 5)], (None, None)),
        ([(0, 3), (4, 5), (7, 8)], (None, None)),
        ([(1, 2)], (0, None)),
        ([(1, 3), (4, 6)], (0, 8)),
        ([], (0, 5)),
    ],
)
@pytest.mark.parametrize("epsilon", [Fraction(1, 2), Fraction(1), Fraction(3)])
def test_theorem_2_on_fine_lattices(gaps, ends, epsilon):
    """The lattice's scale, in the units of answers, goes to the continuous one of 3n + 2 bounds."""
    right = float(continuous(gaps, ends, 1, epsilon))
    allowed = Range(*ends, gaps=gaps)
    for steps, close in ((64, 0.1), (4096, 0.002)):
        lattice = Lattice(allowed, Fraction(1, steps), Fraction(1))
        assert float(least_scale(lattice, epsilon, metric=True)) / steps == pytest.approx(right, rel=close)


def test_known_scales():
    """2ΔF/ε at an end, ΔF/ln((1 + e^ε)/2) for one record above it, ΔF/ε without any edge."""
    for epsilon in (Fraction(1, 10), Fraction(1), Fraction(4)):
        fine = Fraction(1, 1 << 16)
        for allowed in (Range(0), Range(None, 0)):
            lattice = Lattice(allowed, fine, Fraction(1))
            metric = float(least_scale(lattice, epsilon, metric=True) * fine)
            record = float(least_scale(lattice, epsilon, metric=False) * fine)
            assert metric == pytest.approx(2 / float(epsilon), rel=1e-3)
            assert record == pytest.approx(1 / math.log((1 + math.exp(epsilon)) / 2), rel=1e-3)
            assert record < metric
        whole = Lattice(Range(), Fraction(1, 7), Fraction(1))
        assert least_scale(whole, epsilon, metric=True) == 7 / epsilon
        assert least_scale(whole, epsilon, metric=False) == 7 / epsilon


@pytest.mark.parametrize("width", [1, 2, 7, 40])
@pytest.mark.parametrize("epsilon", [0.2, 1.0, 5.0])
def test_the_fixed_point_of_holohan_et_al(width, epsilon):
    """b = ΔF/(ε - ln ΔC(b)), ΔC = C(low + ΔF)/C(low): The Bounded Laplace Mechanism, theorem 3.5."""
    scale = 1 / epsilon
    for _ in range(2000):
        at_end = 1 - (1 + math.exp(-width / scale)) / 2
        inside = 1 - (math.exp(-1 / scale) + math.exp(-(width - 1) / scale)) / 2
        scale = 1 / (epsilon - math.log(inside / at_end))
    fine = Fraction(1, 1 << 16)
    lattice = Lattice(Range(0, width), fine, Fraction(1))
    found = float(least_scale(lattice, Fraction(str(epsilon)), metric=False) * fine)
    assert found == pytest.approx(scale, rel=1e-3)


def test_one_record_with_gaps_too_far_apart_is_refused():
    lattice = Lattice(Range(0, 10**6, gaps=[(1, 2)]), Fraction(1), Fraction(1))
    with pytest.raises(InvalidParameter, match="points around the gaps"):
        least_scale(lattice, Fraction(1), metric=False)
    assert 1 < least_scale(lattice, Fraction(1), metric=True) < 2
