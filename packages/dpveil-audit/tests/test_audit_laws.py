"""The laws of scalar mechanisms, codes, faces, votes and queries, against other definitions and by hand."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from scipy import integrate

from dpveil.mechanisms.latent import BoxGaussian, CroftMetric, PCABasis
from dpveil.mechanisms.scalar import ExplicitFair, Geometric, Range, TruncatedLaplace
from dpveil.mechanisms.scalar.lattice import Lattice
from dpveil.mechanisms.scalar.scales import least_scale
from dpveil.noise.matrix import TOTAL, IntegerMatrix
from dpveil_audit import latent as latent_distributions
from dpveil_audit.divergence import ProductLaw, worst
from dpveil_audit.faces import gallery as distributions
from dpveil_audit.faces.gallery import _heads
from dpveil_audit.latent import SIDE, THREE, TWO, Circle, LatentCase, Recipe, codes_of, wrong
from dpveil_audit.scalar.case import INTACT, ScalarCase, exact_gate, worst_integers
from dpveil_audit.scalar.laws import UNBOUNDED, cost, distribution_of, release_points
from dpveil_audit.scalar.mutants import PUBLISHED, bounds, published_law, raised_weight


def broken(findings):
    return [finding for finding in findings if not finding.passed]


@pytest.mark.parametrize("excess", [1e-3, 1e-9, 1e-12, 1e-15])
def test_an_unrepaired_matrix_dies_of_the_smallest_violation(excess):
    """Linear programs leave violations of 1e-9 and less: integers are compared without tolerance."""
    case = ScalarCase(ExplicitFair(range=(0, 4), sensitivity=1, epsilon=1, relation="database-record"))
    loss, limit, pairs = worst_integers(raised_weight(case.method, excess), case)
    assert limit == 1
    assert pairs == 4
    assert 0 < loss - limit <= 4 * Fraction(excess) + Fraction(1, 1 << 32)
    assert loss - limit >= Fraction(9, 10) * Fraction(excess)
    version = replace(INTACT, integers=lambda method: raised_weight(method, excess))
    assert broken(exact_gate(version, case))
    assert not broken(exact_gate(INTACT, case))


def test_worst_integers_by_hand():
    """Rows (1/2, 1/2), (1/4, 3/4), (1/8, 7/8): ln 2 a step, 2 ln 2 over two, in fractions."""
    rows = tuple((TOTAL // part, TOTAL - TOTAL // part) for part in (2, 4, 8))
    for relation, answer in (("any-database", math.log(2)), ("database-record", 2 * math.log(2))):
        method = ExplicitFair(range=(0, 2), sensitivity=2, step=1, epsilon=1, relation=relation)
        loss, limit, _ = worst_integers(IntegerMatrix(rows), ScalarCase(method))
        assert float(loss) == pytest.approx(answer)
        assert limit == (Fraction(1, 2) if relation == "any-database" else 1)
    never = IntegerMatrix(((TOTAL, 0), (TOTAL // 2, TOTAL // 2), (1, TOTAL - 1)))
    assert worst_integers(never, ScalarCase(method))[0] > 1000


def test_errata_e1_the_published_variable_scale():
    """Scales 1.586 and 1.321 at answers 0 and 0.9: a log-ratio of 12.2 at x = 100 where 0.9 is allowed."""
    method = TruncatedLaplace(range="0:", sensitivity=1, epsilon=1, step="1/200")
    distribution = published_law(method)
    assert 1 / float(distribution._rate(0)) / 200 == pytest.approx(1.586, abs=1e-3)
    assert 1 / float(distribution._rate(180)) / 200 == pytest.approx(1.321, abs=1e-3)
    for x, most in ((20, 2.07), (100, 12.2), (1000, 126)):
        seen = abs(distribution.log(0, 200 * x) - distribution.log(180, 200 * x))
        assert float(seen) == pytest.approx(most, rel=0.01)
        sound = distribution_of(method)
        assert abs(sound.log(0, 200 * x) - sound.log(180, 200 * x)) <= 0.9
    tenth = TruncatedLaplace(range="0:", sensitivity=1, epsilon=1, step="0.1")
    [worst, *_] = broken(exact_gate(PUBLISHED, ScalarCase(tenth)))
    assert worst.value > 2 * worst.limit


@pytest.mark.parametrize("gap", [(0, 1), (0, 3)])
def test_the_bounds_of_theorem_2_are_those_of_the_mechanism(gap):
    """3n + 2 conditions, each bisected by the audit alone: the largest is the mechanism's scale."""
    lattice = Lattice(Range(None, None, gaps=[gap]), Fraction(1, 8), Fraction(1))
    case = TruncatedLaplace(range=lattice.range, sensitivity=1, epsilon=2, step="1/8")
    found = bounds(distribution_of(case).spans, Fraction(2), 8)
    assert len(found) == 3
    assert float(max(found)) == pytest.approx(float(least_scale(lattice, Fraction(2), metric=True)), rel=1e-8)


@pytest.mark.parametrize("name", ["clipped_laplace", "clipped_gaussian"])
def test_clipped_distributions_are_sums_of_the_noise_beyond_the_ends(name, monkeypatch):
    """On a small box, by summing each formula over all places from far below to far above."""
    monkeypatch.setattr(latent_distributions, "SIDE", 6)
    for centre, amount in product((-3, 0, 2, 6, 11), (Fraction(1, 3), Fraction(7, 2))):
        distribution = getattr(latent_distributions, name).__wrapped__(centre, amount)
        places = np.arange(-400, 401)
        size = np.abs(places - centre)
        noise = np.exp(-size / float(amount) if "laplace" in name else -(size**2) / (2 * float(amount)))
        noise /= noise.sum()
        expected = [noise[np.clip(places, 0, 6) == place].sum() for place in range(7)]
        assert np.allclose(distribution, expected, rtol=1e-9, atol=0)


def test_circle_against_quadrature_and_against_rounding():
    circle = Circle(5)
    angles = np.linspace(0, 2 * math.pi, 100_001)
    points = np.rint(5 * np.stack([np.cos(angles), np.sin(angles)], axis=1)).astype(int)
    assert set(map(tuple, points.tolist())) == set(map(tuple, circle.cells.tolist()))
    assert circle.cells_of(np.array([[0, 0], [9, 0], [6, -11]])).tolist() == [-1, -1, -1]
    assert np.array_equal(circle.cells[circle.cells_of(points)], points)
    chances = circle.chances(lambda angle: np.exp(3 * np.cos(angle - 1)))
    cell = circle.cells_of(np.array([[5, 0]]))[0]
    half = math.asin(0.1)  # both coordinates: |5·sin| below 1/2 comes before 5·cos below 4.5
    density = lambda angle: math.exp(3 * math.cos(angle - 1))  # noqa: E731
    share = integrate.quad(density, -half, half)[0] / integrate.quad(density, -math.pi, math.pi)[0]
    assert math.isclose(chances[cell], share, rel_tol=1e-9)


def test_worst_pairs_by_hand():
    rows = np.array([[0.5, 0.5], [0.25, 0.75], [1.0, 0.0]])
    law, pairs = ProductLaw.of([rows, rows]), np.array([[0, 1], [1, 0]])
    promise = CroftMetric(epsilon=1).guarantee(TWO)
    found = worst(promise, law, pairs, np.array([2.0, 2.0]))
    assert math.isclose(found.value, 2 * math.log(2))
    assert (found.limit, found.kept, found.pair) == (2, True, (0, 1))
    assert not worst(promise, law, pairs, np.array([1.0, 2.0])).kept
    assert worst(promise, law, np.array([[0, 2]]), np.ones(1)).value == math.inf
    assert not worst(promise, law, pairs, np.zeros(2)).kept
    rho = worst(BoxGaussian(rho=1).guarantee(TWO), law, pairs)
    orders = [
        2 * math.log(0.5**a * 0.25 ** (1 - a) + 0.5**a * 0.75 ** (1 - a)) / (a - 1) / a for a in (1.01, 2, 64)
    ]
    assert rho.value >= max(orders) - 1e-12
    assert worst(BoxGaussian(rho=1).guarantee(TWO), law, np.array([[0, 2]])).value == math.inf


def test_one_component_too_many_keeps_the_promise_of_its_own_distance():
    """Errata E6 is about noise and not about privacy: noise for c + 1, in the mean over c + 1."""
    case = LatentCase(PCABasis(epsilon=6), THREE, codes_of(THREE))
    amounts = (Fraction(3 * SIDE, 6),) * 3  # what algorithm 1 keeps as printed
    published = wrong("published", Recipe("laplace", lambda case: amounts))
    assert not all(
        finding.passed for finding in latent_distributions.exact_gate(published, case)
    )  # d over c does not see it...
    own = LatentCase(PCABasis(epsilon=6), THREE, codes_of(THREE))
    own.__dict__["coordinates_read"] = 3
    assert all(
        finding.passed for finding in latent_distributions.exact_gate(published, own)
    )  # ...and its own d does


def test_distributions_by_hand():
    half = Fraction(1, 2)
    assert distributions.by_rank([half, half / 2, half / 2], (5, 0, 5)) == (half / 2, half, half / 2)
    first, last = distributions.flips(2, 1.0)  # the second is only given when it comes first and is taken
    assert math.isclose(last, math.exp(-1) / 2)
    assert math.isclose(first + last, 1)
    coins = [(half, half), (Fraction(1, 4), Fraction(3, 4))]
    assert distributions.independent_draws(coins)[0, 1] == Fraction(3, 8)
    assert distributions.single_draw(coins) == {
        (0, 0): Fraction(1, 4),
        (0, 1): Fraction(1, 4),
        (1, 0): 0,
        (1, 1): half,
    }
    thirds = distributions.kept_with(2.0, 3, 1)
    assert thirds == (Fraction(1, 4), half, Fraction(1, 4))


def test_what_may_be_seen_of_heads_by_hand():
    """Two heads of which every one has every pose: 0 and 1 look left, 2 and 3 ahead, 4 and 5 right."""
    case = _heads("gender=1,pose=2", each=1)
    assert [look[0] for look in case.looks] == [0, 1]
    assert distributions.shown_for(case, (1, 2)) == (5,)
    assert case.outcomes == 6
    true = distributions.written_answers(case, (0, 1, 0))
    both = [math.e, 1.0], [1.0, math.e**2, 1.0]
    chances = [head * pose / ((1 + math.e) * (2 + math.e**2)) for pose in both[1] for head in both[0]]
    assert [float(chance) for chance in true] == pytest.approx(chances)


def test_costs_of_numbers_that_are_drawn_apart_add_up():
    mechanism = Geometric(range=(0, 3), sensitivity=1, epsilon="0.5")
    one, other = release_points(mechanism, [0, 1, 3]), release_points(mechanism, [1, 1, 2])
    assert float(cost(one, other)) == pytest.approx(1, abs=1e-9)
    assert cost(one, other) <= 1
    assert cost(one, one) == cost(None, None) == 0
    assert cost(one, None) == cost(one, one[:2]) == UNBOUNDED
