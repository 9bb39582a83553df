"""Two samplers of one law: against enumeration, with ties made frequent, and compiled against plain."""

import itertools
import math
from decimal import Context, Decimal
from fractions import Fraction

import numpy as np
import pytest

from dpveil.errors import NoiseError
from dpveil.mechanisms.pixel.ssim import arithmetic, method, proposals, weights
from dpveil.mechanisms.pixel.ssim.arithmetic import (
    REDRAW,
    SHOWN,
    UNSURE,
    choose,
    cut,
    decide,
    exp_minus,
    find,
)
from dpveil.mechanisms.pixel.ssim.method import WindowSampler, set_up, ways
from dpveil.mechanisms.pixel.ssim.quality import list_sets, number_of_sets, quality, shown_levels, table_cells
from dpveil.noise import backend
from dpveil.noise.bits import SeededBits
from dpveil.noise.gaussian import below_exp
from dpveil_audit.distributions import finite_distribution
from dpveil_audit.fit import fit
from dpveil_audit.pixel.methods.ssim_exponential import clipped_ssim, evenly, log_distribution, outputs, ssim

WAYS = ("rejection", "counts")
WINDOWS = [([141, 73, 73, 0], 2), ([1, 93, 94, 192], 4), ([5], 16), ([0, 0, 0, 0], 3), ([255, 0, 255, 9], 3)]
N = 30_000


@pytest.fixture
def plain(monkeypatch):
    monkeypatch.setattr(backend._State, "plain", True)


@pytest.fixture(autouse=True)
def _compiled():
    backend.compile_now()


def codes(shown, levels):
    """Outputs as the numbers of their rows in `outputs`."""
    digits = np.searchsorted(evenly(levels), shown.astype(np.int64))
    return digits @ (levels ** np.arange(shown.shape[1])[::-1])


def drawn(window, levels, exponent, way, count=N, seed=1, **coarse):
    one = WindowSampler(Fraction(exponent), len(window), levels, way, **coarse)
    return codes(one.draw(np.tile(np.array(window, np.uint8), (count, 1)), SeededBits(seed)), levels)


def law_of(window, levels, exponent, quality=clipped_ssim):
    return finite_distribution(np.exp(log_distribution(window, float(Fraction(exponent)), levels, quality)))


def open_ways(exponent, way):
    return way != "rejection" or Fraction(exponent) <= 6


CASES = [
    (w, k, e, way)
    for (w, k), e, way in itertools.product(WINDOWS, ("1/1000", "6", "10000"), WAYS)
    if open_ways(e, way)
]


@pytest.mark.parametrize(("window", "levels", "exponent", "way"), CASES)
def test_each_sampler_has_the_law(window, levels, exponent, way):
    """α = 1e-9 a fit."""
    assert not fit(drawn(window, levels, exponent, way), law_of(window, levels, exponent)).is_rejected


@pytest.mark.parametrize(
    ("window", "levels", "exponent", "way"), [c for c in CASES if c[1] < 16 and c[2] != "10000"]
)
def test_coarse_words_and_frequent_ties_leave_the_law_alone(window, levels, exponent, way, monkeypatch):
    """12-bit choices that favour unlikely outputs, a third of all comparisons decided exactly: the same law.

    No exact acceptance probability exceeds one.
    """
    asked, near = [], []

    def watched(word, gamma, bits, *, factor, length):
        asked.append(float(factor) * math.exp(-gamma))
        near.append(abs(word / 2**length - asked[-1]))
        return below_exp(word, gamma, bits, factor=factor, length=length)

    monkeypatch.setattr(method, "below_exp", watched)
    sample = drawn(window, levels, exponent, way, 3_000, word_bits=12, margin=0.3)
    assert not fit(sample, law_of(window, levels, exponent)).is_rejected
    assert len(asked) > 100
    assert 0.05 < max(asked) <= 1
    assert max(near) < 0.31  # decided by the word that was too close to tell


def test_weights_beyond_the_farthest_are_decided_exactly(monkeypatch, plain):
    """The exponential is held at e^-690, which is too much for what is farther; here it is held at e^-1."""
    for module in (arithmetic, proposals):
        monkeypatch.setattr(module, "FARTHEST", 1.0)
    assert not fit(drawn([9, 240], 3, "5", "counts", 2_000), law_of([9, 240], 3, "5")).is_rejected


def test_the_law_is_the_same_if_every_multiset_has_a_table(monkeypatch, plain):
    monkeypatch.setattr(weights, "WORTH_A_TABLE", 0.0)
    assert not fit(drawn([9, 240], 3, "5", "counts", 700), law_of([9, 240], 3, "5")).is_rejected


def test_words_too_short_for_the_choices_are_refused():
    with pytest.raises(NoiseError):
        drawn([1, 2, 3, 4], 4, "1", "counts", 4, word_bits=4)


# Compiled and plain


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("exponent", ["1/100", "5", "123456.7"])
@pytest.mark.parametrize(("cells", "levels"), [(1, 2), (1, 16), (4, 4), (4, 3), (9, 2), (9, 3)])
def test_compiled_and_plain_loops_agree(way, exponent, cells, levels, monkeypatch):
    if not open_ways(exponent, way):
        return
    windows = (np.arange(7 * cells) * 83 % 256).astype(np.uint8).reshape(7, cells)
    windows[0], windows[1] = 0, 255
    one = WindowSampler(Fraction(exponent), cells, levels, way)
    compiled = one.draw(windows, SeededBits(4))
    monkeypatch.setattr(backend._State, "plain", True)
    assert np.array_equal(one.draw(windows, SeededBits(4)), compiled)


@pytest.mark.parametrize(
    ("side", "levels"), [(2, 2), (2, 4), (2, 8), (2, 16), (3, 2), (3, 4), (3, 8), (4, 2), (4, 4)]
)
@pytest.mark.parametrize("exponent", ["1e-9", "50", "1e11"])
def test_every_grid_of_the_road_map_runs_at_any_budget(side, levels, exponent):
    windows = (np.arange(2 * side * side) * 83 % 256).astype(np.uint8).reshape(2, -1)
    exponent, cells = Fraction(exponent), side * side
    costs = ways(float(exponent), cells, levels)
    one = WindowSampler(exponent, cells, levels, min(costs, key=lambda name: costs[name]))
    shown = one.draw(windows, SeededBits(6))
    assert set(shown.ravel().tolist()) <= set(evenly(levels))
    if exponent > 10**10:  # nothing but the best outputs is left
        for window, best in zip(windows, shown, strict=True):
            reached = quality(window, best)
            for cell, level in itertools.product(range(cells), shown_levels(levels)):
                other = best.copy()
                other[cell] = level
                assert quality(window, other) <= reached + Fraction(1, 10**8)


# The parts


def test_exp_minus_is_as_exact_as_it_says():
    exact = Context(prec=50)
    for x in [*np.linspace(0, 1, 50), *np.linspace(0, 690, 400), 1e-300, 689.999]:
        error = abs(Decimal(exp_minus(float(x))) / exact.exp(-Decimal(float(x))) - 1)
        assert error < Decimal(2) ** -49
    assert exp_minus(1e9) == exp_minus(690.0) > 0


def test_similarity_is_as_exact_as_it_says():
    rows = (SeededBits(7).words(400 * 18) >> np.uint64(56)).astype(np.uint8).reshape(400, 2, 9)
    for x, y in rows:
        shown = np.searchsorted(shown_levels(256), y).astype(np.uint8)
        x_sum, x_spread = arithmetic.moments(x)
        y_sum, y_spread, cross = proposals.compare(x, x_sum, shown_levels(256), shown)
        near = arithmetic.similarity(9, x_sum, x_spread, y_sum, y_spread, cross)
        assert abs(Fraction(max(0.0, near)) - quality(x, y)) < Fraction(1, 2**51)


@pytest.mark.parametrize("whole", [2.0**62, 2.0**14])
def test_choices_have_the_widths_that_they_say(whole):
    weights = np.array([0.5, 0.0, 1e-200, 3.0, 1e-5])
    ends = np.empty(5, np.int64)
    total = cut(weights, ends, whole)
    assert total == pytest.approx(weights.sum())
    starts = [0, *ends[:-1].tolist()]
    for j, (start, end) in enumerate(zip(starts, ends.tolist(), strict=True)):
        width = end - start
        assert width / whole >= weights[j] / total * (1 - 5 / whole - 2**-31)
        assert (width == 0) == (weights[j] == 0)
        for place in {start, end - 1} if width else ():
            assert find(ends, place) == (j, width)
            outcome, got, deserved, _ = choose(weights, 5, place, whole)
            assert (outcome, got) == (j, width)
            assert deserved == pytest.approx(weights[j] * whole / (total * width))
    assert ends[-1] <= whole
    assert find(ends, int(whole) - 1)[0] == choose(weights, 5, int(whole) - 1, whole)[0] == -1


def test_comparisons_are_left_open_where_rounding_matters():
    level = int(0.3 * 2.0**62)
    assert decide(level - 10**6, 0.3, 1e-15) == SHOWN
    assert decide(level + 10**6, 0.3, 1e-15) == REDRAW
    assert decide(level, 0.3, 1e-15) == UNSURE
    assert decide(int(0.25 * 2.0**62), 0.3, 0.2) == UNSURE


@pytest.mark.parametrize("exponent", [0.5, 12.0, 90.0])
def test_tables_sum_what_enumeration_sums(exponent):
    """Σ e^(ε′(SSIM - best)) over the arrangements of every multiset; steps below 2^-30 are raised to it."""
    levels, window = shown_levels(3).astype(np.int64), np.array([1, 93, 94, 192, 30], np.uint8)
    sets, moments = list_sets(5, 3), arithmetic.moments(window)
    room = set_up(5, len(sets.sums), 3, 2.0**62)
    proposals.rank(window, room)
    proposals.weigh(moments, levels, sets, exponent, room)
    every = outputs(5, 3)
    near = ssim(window.astype(float), every)
    for s in range(len(sets.sums)):
        mine = [
            sorted(row) == sorted(np.repeat(levels, sets.counts[s])) for row in every.astype(int).tolist()
        ]
        assert room.best[s] == pytest.approx(near[mine].max(), abs=1e-13)
        assert sets.orders[s] == pytest.approx(sum(mine))
        exact = np.exp(exponent * (near[mine] - near[mine].max())).sum()
        total = proposals.tabulate(s, moments, levels, sets, exponent, room)
        assert exact * (1 - 1e-12) <= total <= exact + sum(mine) * 2.0**-29


def test_sets_and_costs_by_hand():
    assert number_of_sets(9, 4) == len(list_sets(9, 4).sums) == 220
    assert table_cells(9, 4) == int(np.prod(list_sets(9, 4).counts + 1, axis=1).sum()) == 11440
    assert list_sets(9, 4).orders.sum() == pytest.approx(4**9)
    assert set(ways(1.0, 9, 4)) == set(WAYS)
    assert set(ways(1.0, 9, 16)) == {"rejection"}
    assert set(ways(100.0, 9, 8)) == {"counts"}
    assert ways(100.0, 9, 16) == {}
    cheap, dear = ways(0.1, 9, 4), ways(50.0, 9, 4)
    assert min(cheap, key=cheap.get) == "rejection"
    assert min(dear, key=dear.get) == "counts"


def test_digits_are_uniform_for_numbers_of_levels_that_are_no_power_of_two():
    """At a tiny ε′ the law is uniform but for a part in 10^9."""
    assert not fit(
        drawn([9, 9, 200, 31], 7, "1e-9", "rejection", 200_000), finite_distribution([1 / 7**4] * 7**4)
    ).is_rejected
    edge = (1 << 62) // 7**2 * 7**2
    room = np.zeros(2, np.uint8)
    assert proposals.spell(np.array([edge - 1]), 2, 7, 0, edge, room)
    assert not proposals.spell(np.array([edge]), 2, 7, 0, edge, room)
