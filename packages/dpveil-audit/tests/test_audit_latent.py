"""Audits of latent mechanisms: nothing is left out, what is right passes, faults in the code are seen."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from scipy import integrate

from dpveil.mechanisms.latent import BoxGaussian, CroftMetric, Directional, PCABasis
from dpveil.noise import SeededBits
from dpveil_audit.latent import mutants as latent_distributions
from dpveil_audit.latent.case import SIDE, Circle, CodeDistribution, LatentCase
from dpveil_audit.latent.mutants import Recipe, around, wrong
from dpveil_audit.latent.table import AUDITS, PLANE, THREE, TWO, codes_of, exact_gate, fit_gate

SEED = 20261121


def broken(name):
    """Return the gates that reject a mechanism as it is, at its quick settings."""
    entry = AUDITS[name]
    checks = entry.checks(entry.levels["quick"], lambda stream: SeededBits(SEED, stream))
    return set(entry.killers(entry.intact, checks))


@pytest.mark.parametrize("name", ["clipped_laplace", "clipped_gaussian"])
def test_clipped_distributions_are_sums_of_the_noise_beyond_the_ends(name, monkeypatch):
    """On a small box, by summing each formula over all places from far below to far above."""
    monkeypatch.setattr(latent_distributions, "SIDE", 6)
    for centre, amount in product((-3, 0, 2, 6, 11), (Fraction(1, 3), Fraction(7, 2))):
        distribution = np.exp(getattr(latent_distributions, name).__wrapped__(centre, amount))
        places = np.arange(-400, 401)
        size = np.abs(places - centre)
        noise = np.exp(-size / float(amount) if "laplace" in name else -(size**2) / (2 * float(amount)))
        noise /= noise.sum()
        expected = [noise[np.clip(places, 0, 6) == place].sum() for place in range(7)]
        assert np.allclose(distribution, expected, rtol=1e-9, atol=0)


def test_truncated_distribution_of_a_place_outside_is_that_of_the_end():
    scale = Fraction(20_000)
    ends = [latent_distributions.truncated_laplace(centre, scale) for centre in (SIDE, 4 * SIDE)]
    assert np.allclose(*ends, atol=1e-9)
    assert math.isclose(ends[0][0] - ends[0][-1], -SIDE / 20_000)


def test_circle_against_quadrature_and_against_rounding():
    circle = Circle(5)
    angles = np.linspace(0, 2 * math.pi, 100_001)
    points = np.rint(5 * np.stack([np.cos(angles), np.sin(angles)], axis=1)).astype(int)
    assert set(map(tuple, points.tolist())) == set(map(tuple, circle.cells.tolist()))
    assert circle.cells_of(np.array([[0, 0], [9, 0], [6, -11]])).tolist() == [-1, -1, -1]
    assert np.array_equal(circle.cells[circle.cells_of(points)], points)
    logs = circle.logs(lambda angle: np.exp(3 * np.cos(angle - 1)))
    cell = circle.cells_of(np.array([[5, 0]]))[0]
    half = math.asin(0.1)  # both coordinates: |5·sin| below 1/2 comes before 5·cos below 4.5
    density = lambda angle: math.exp(3 * math.cos(angle - 1))  # noqa: E731
    share = integrate.quad(density, -half, half)[0] / integrate.quad(density, -math.pi, math.pi)[0]
    assert math.isclose(math.exp(logs[cell]), share, rel_tol=1e-9)


def test_losses_by_hand():
    case = LatentCase(CroftMetric(epsilon=1), TWO, codes_of(TWO))
    first, second, never = (np.log(np.array(p)) for p in ([0.5, 0.5], [0.25, 0.75], [1.0, 1e-300]))
    never[1] = -np.inf
    box = ((0.0,), (1.0,))
    loss = latent_distributions.loss
    assert math.isclose(
        loss(case, CodeDistribution(box, (first,)), CodeDistribution(box, (second,))), math.log(2)
    )
    both = CodeDistribution(box, (first, first)), CodeDistribution(box, (second, second))
    assert math.isclose(loss(case, *both), 2 * math.log(2))
    assert loss(case, CodeDistribution(box, (first,)), CodeDistribution(box, (never,))) == math.inf
    assert (
        loss(case, CodeDistribution(box, (first,)), CodeDistribution(((0.1,), (1.1,)), (first,))) == math.inf
    )
    rho = LatentCase(BoxGaussian(rho=1), TWO, codes_of(TWO))
    found = loss(rho, CodeDistribution(box, (first,)), CodeDistribution(box, (second,)))
    orders = [
        math.log(0.5**a * 0.25 ** (1 - a) + 0.5**a * 0.75 ** (1 - a)) / (a - 1) / a for a in (1.01, 2, 64)
    ]
    assert found >= max(orders) - 1e-12
    assert loss(rho, CodeDistribution(box, (first,)), CodeDistribution(box, (never,))) == math.inf


def test_distances_that_the_audit_allows():
    croft = LatentCase(CroftMetric(epsilon=8), TWO, codes_of(TWO))
    assert croft.allowance((0, -4), (9, 0)) == 8 * 0.75
    assert croft.allowance((0.5, 0), (0.5 + 0.4 / 2**16, 0)) == 0  # one point of the grid
    leading = LatentCase(PCABasis(epsilon=6), THREE, codes_of(THREE))
    assert leading.kept == PCABasis(epsilon=6).kept(THREE) == 2
    assert leading.allowance((-1, 0, -0.125), (1, 0, 0.125)) == 3
    turned = LatentCase(Directional(epsilon=3), PLANE, ((1, 0), (0, 2)))
    assert math.isclose(turned.allowance((1, 0), (0, 2)), 3 * math.sqrt(2))
    assert turned.allowance((0.5, 1), (0.25, 0.5)) == 0
    assert turned.direction((0, 0)) == (1, 0)


def test_one_component_too_many_keeps_the_promise_of_its_own_distance():
    """Errata E6 is about noise and not about privacy: noise for c + 1, in the mean over c + 1."""
    case = LatentCase(PCABasis(epsilon=6), THREE, codes_of(THREE))
    amounts = (Fraction(3 * SIDE, 6),) * 3  # what algorithm 1 keeps as printed
    published = wrong("published", Recipe("laplace", lambda case: amounts))
    assert not all(finding.passed for finding in exact_gate(published, case))  # d over c does not see it...
    own = LatentCase(PCABasis(epsilon=6), THREE, codes_of(THREE))
    own.__dict__["kept"] = 3
    assert all(finding.passed for finding in exact_gate(published, own))  # ...and its own d does


def test_too_small_a_scale_in_the_code_itself_is_seen(monkeypatch: pytest.MonkeyPatch):
    right = CroftMetric.scales
    monkeypatch.setattr(
        CroftMetric, "scales", lambda self, space: tuple(s * 4 / 5 for s in right(self, space))
    )
    assert "exact" in broken("croft-metric")


def test_draws_that_do_not_follow_their_scales_are_seen(monkeypatch: pytest.MonkeyPatch):
    from dpveil.mechanisms.latent import laplace

    right = laplace.noisy
    with monkeypatch.context() as patch:
        patch.setattr(
            laplace, "noisy", lambda points, scales, bits: right(points, [s * 9 / 10 for s in scales], bits)
        )
        assert "fit" in broken("croft-metric")
    entry = AUDITS["box-gaussian"]
    setting = entry.levels["quick"].drawn[0]
    monkeypatch.setattr(
        "dpveil.mechanisms.latent.gaussian.discrete_gaussian",
        lambda variance, count, bits: np.zeros(count, np.int64),
    )
    assert not all(
        f.passed for f in fit_gate(entry.intact, setting, entry.intact.distribution, bits=SeededBits(1))
    )


def test_a_direction_drawn_too_closely_is_seen(monkeypatch: pytest.MonkeyPatch):
    from dpveil.mechanisms.latent import directional

    right = directional.von_mises_fisher
    monkeypatch.setattr(
        directional, "von_mises_fisher", lambda towards, k, radius, bits: right(towards, 3 * k, radius, bits)
    )
    entry = AUDITS["directional"]
    setting = entry.levels["quick"].drawn[0]
    assert not all(
        f.passed for f in fit_gate(entry.intact, setting, entry.intact.distribution, bits=SeededBits(1))
    )


def test_directions_of_other_spaces_have_no_circle():
    with pytest.raises(ValueError, match="no directions"):
        around(LatentCase(CroftMetric(epsilon=1), TWO, codes_of(TWO)), (0, 0), 1.0)


@pytest.mark.parametrize("name", ["croft-metric", "pca-basis", "directional"])
def test_a_diameter_that_codes_exceed_is_seen(name, monkeypatch):
    """What is said about odds is computed at the diameter: one that is too small is a broken promise."""
    entry = AUDITS[name]
    case = entry.levels["quick"].exact[0]
    assert all(finding.passed for finding in exact_gate(entry.intact, case))
    real = entry.method.guarantee
    monkeypatch.setattr(
        entry.method, "guarantee", lambda self, space: replace(real(self, space), diameter=Fraction(9, 10))
    )
    failed = [finding for finding in exact_gate(entry.intact, replace(case)) if not finding.passed]
    assert [finding.what for finding in failed] == ["distance of two codes"]
