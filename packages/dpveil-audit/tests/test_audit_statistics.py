"""Goodness of fit and divergences: never on the wrong side of the truth, and near it."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from dpveil.core.guarantee import Guarantee, Relation, Scope
from dpveil.noise.bits import SeededBits
from dpveil_audit.distributions import finite_distribution, laplace_distribution
from dpveil_audit.divergence import (
    Part,
    ProductLaw,
    compose,
    hockey_stick,
    loss_distribution,
    renyi_of_masses,
    worst,
)
from dpveil_audit.fit import fit, multinomial

N = 300_000


def uniforms(count, seed):
    return (SeededBits(seed, "fit").words(count) >> np.uint64(11)).astype(np.float64) / 2**53


def geometric_pair(scale, count, seed):
    """A second sampler of the discrete Laplace distribution: the difference of two geometric variables."""
    u = uniforms(2 * count, seed).reshape(2, count)
    first, second = np.floor(-scale * np.log1p(-u)).astype(np.int64)
    return first - second


@pytest.mark.parametrize("scale", [Fraction(1, 50), Fraction(1, 3), 1, 255, 460_000_000])
def test_right_distribution_passes(scale):
    verdict = fit(geometric_pair(float(scale), N, 1), laplace_distribution(scale))
    assert not verdict.is_rejected
    assert set(verdict.parts) == {"coarse bins", "fine bins", "outcomes", "extremes"}


@pytest.mark.parametrize("scale", [Fraction(1, 3), 1, 16, 255, 460_000_000])
def test_scale_two_percent_too_small_is_rejected(scale):
    assert fit(geometric_pair(0.98 * float(scale), 2 * N, 2), laplace_distribution(scale)).is_rejected


@pytest.mark.parametrize("chances", [(0.2, 0.3, 0.5), (0.01, 0.09, 0.9), (1e-6, 0.5, 0.499999)])
def test_a_multinomial_p_value_is_never_too_small(chances):
    """Nothing is drawn: the exact distribution of the p-value over all counts of 60 draws."""
    grid = [(i, j, 60 - i - j) for i in range(61) for j in range(61 - i)]
    p_values = np.array([multinomial(np.array(counts), np.array(chances)) for counts in grid])
    masses = stats.multinomial.pmf(grid, 60, chances)
    order = np.argsort(p_values)
    assert p_values[order[0]] < 1e-9
    assert np.all(np.cumsum(masses[order]) <= p_values[order] + 1e-12)


def test_an_impossible_outcome_is_rejected():
    distribution = finite_distribution([0.5, 0.0, 0.5])
    good = np.arange(1000) % 2 * 2
    assert not fit(good, distribution).is_rejected
    assert fit(np.append(good, 1), distribution).is_rejected
    assert fit(np.append(good, 7), distribution).is_rejected


def joint(parts):
    """Return both joint distributions of independent parts, every combination of outcomes written out."""
    first = second = np.ones(1)
    for a, b in parts:
        first, second = np.outer(first, a).ravel(), np.outer(second, b).ravel()
    return first, second


@pytest.mark.parametrize("epsilon", [0.0, 0.3, 1.0, 1.7, 2.0])
@pytest.mark.parametrize("move", [(5,), (5, 5, 2), (7, 1, 1)])
def test_composed_laplace_noise_has_the_divergence_of_its_joint_distribution(move, epsilon):
    scale, parts = sum(move) / 2, []  # ε = 2 in all
    for gap in move:
        noise = laplace_distribution(scale)
        edges = np.array([-(1 << 60), *range(gap), 1 << 60])  # tails tell nothing more
        parts.append(tuple(noise.between(edges[:-1] - moved, edges[1:] - moved) for moved in (0, gap)))
    first, second = joint(parts)
    due = float(np.sum(np.maximum(0.0, first - math.exp(epsilon) * second)))
    assert compose(parts, 1 / scale).delta(epsilon) == pytest.approx(due, abs=1e-12)


def test_an_outcome_that_only_one_input_gives_is_never_excused():
    loss = loss_distribution(np.array([0.9, 0.1]), np.array([1.0, 0.0]), 0.01)
    assert loss.delta(50.0) == pytest.approx(0.1)
    assert loss.plus(loss).delta(50.0) == pytest.approx(0.19)


def test_renyi_divergences_are_direct_sums():
    rows = np.array([[0.5, 0.3, 0.2], [0.2, 0.3, 0.5], [0.5, 0.5, 0.0]])
    for order in (1.01, 2.0, 7.5):
        table = renyi_of_masses(rows, order)
        assert table[0, 1] == pytest.approx(
            math.log(np.sum(rows[0] ** order * rows[1] ** (1 - order))) / (order - 1)
        )
        assert table[0, 2] == math.inf
        assert 0 < table[2, 0] < math.inf


def test_hockey_sticks_by_hand():
    coin = np.array([Fraction(3, 4), Fraction(1, 4)], object)
    assert hockey_stick([(coin, coin[::-1])] * 2, Fraction(0)) == Fraction(9, 16) - Fraction(1, 16)
    floats = coin.astype(float)
    assert hockey_stick([(floats, floats[::-1])], Fraction(1)) == pytest.approx(0.75 - math.e / 4)
    many = [(floats, floats[::-1])] * 13  # 8 192 outcomes: losses are composed
    terms = [0.75**k * 0.25 ** (13 - k) - math.e * 0.25**k * 0.75 ** (13 - k) for k in range(14)]
    due = sum(math.comb(13, k) * max(0, term) for k, term in enumerate(terms))
    assert due <= hockey_stick(many, Fraction(1)) <= due + 1e-6


PROMISES = {
    "pure": {"epsilon": "2.1974", "relation": Relation("any-image")},
    "zcdp": {"rho": "2.4143", "relation": Relation("any-image")},
    "approximate": {"epsilon": "1.0987", "delta": "0.376", "relation": Relation("any-image")},
}


@pytest.mark.parametrize("kind", PROMISES)
@pytest.mark.parametrize("exact", [True, False])
def test_every_kind_of_promise_is_held_against_the_law(kind, exact):
    """Two answers by randomised response: ε is just above 2·ln 3, and δ just above 9/16 - 3/16."""
    promise = Guarantee(kind=kind, scope=Scope("two answers"), **PROMISES[kind])
    for chance, kept in ((Fraction(3, 4), True), (Fraction(17, 20), False)):
        rows = np.array([[chance, 1 - chance], [1 - chance, chance]], object)
        law = ProductLaw.of([rows if exact else rows.astype(float)] * 2)
        found = worst(promise, law, np.array([[0, 1], [1, 0]]))
        assert found.kept == kept
        assert found.value > 0.4 * float(found.limit)


def test_exact_chances_leave_no_tolerance():
    """ln 3 = 1.09861228866810969139...: what is smaller by 1e-19 is broken, floats would not see it."""
    rows, pairs = np.array([[3, 1], [1, 3]], object), np.array([[0, 1]])
    for digits, kept in (("1.0986122886681096914", True), ("1.0986122886681096913", False)):
        promise = Guarantee(
            kind="pure", epsilon=Fraction(digits), relation=Relation("any-image"), scope=Scope("an answer")
        )
        assert worst(promise, ProductLaw.of([rows]), pairs).kept == kept
        assert not worst(promise, ProductLaw.of([rows]), pairs, np.zeros(1)).kept  # nothing is allowed


def test_a_part_reads_what_its_places_show():
    part = Part(np.array([[0, 0, 0], [0, 1, 0]]), np.array([[0, 0], [9, 9], [0, 9], [9, 9]], np.uint8))
    shown = np.array([[[[9], [9]]], [[[0], [9]]], [[[9], [0]]]], np.uint8)
    assert part.read(shown).tolist() == [1, 2, -1]
    assert part.first.tolist() == [0, 1, 2, 1]
