"""Errata E1: the published scale breaks its promise, and the sound one keeps it."""

import math
from itertools import product

import numpy as np
import pytest
from scipy import integrate

from dpveil.core.rationals import exact
from dpveil.mechanisms.scalar import TruncatedLaplace
from dpveil_research import errata_e1
from dpveil_research.errata_e1 import log_density, published_scale

SOUND = TruncatedLaplace(range="0:", sensitivity=1, epsilon=1)


def test_scales_are_those_of_the_formulas():
    assert published_scale(0, 1) == pytest.approx(1.5860, abs=5e-5)
    assert published_scale(0.9, 1) == pytest.approx(1.3211, abs=5e-5)
    assert published_scale(1.8, 0.5, 1) == pytest.approx(2 * published_scale(0.9, 1))
    assert published_scale(2.7, 1, 3) == pytest.approx(3 * published_scale(0.9, 1))
    scales = [published_scale(a, 1) for a in np.linspace(0, 6, 121)]
    assert scales == sorted(scales, reverse=True), "theorem 1: falling as answers leave the end"
    assert 1 < published_scale(300, 1) < 1.001


def published(response, answer):
    return float(log_density(response, answer, published_scale(answer, 1)))


def test_errata_e1_published_scale_breaks_its_promise_far_out():
    """Log-ratios of 0 and 0.9, where 0.9 is allowed: the response 0 of the proof is not the worst."""
    for answer in (0.1, 0.5, 0.9, 1.5, 3, 8):
        assert published(0.0, 0.0) - published(0.0, answer) == pytest.approx(answer, rel=1e-9)
    for response, wanted in ((20, 2.07), (100, 12.2), (1000, 126)):
        assert published(response, 0) - published(response, 0.9) == pytest.approx(wanted, rel=4e-3)
    for answer in (0, 0.9, 4):
        whole, _ = integrate.quad(lambda y, a=answer: math.exp(published(y, a)), 0, 60, points=[1, 4])
        assert whole == pytest.approx(1, abs=1e-8)


def test_errata_e1_sound_scale_keeps_it_at_every_distance():
    sound = errata_e1.log_ratios(np.geomspace(0.01, 1e6, 400))["truncated, 2ΔF/ε"]
    assert sound.max() <= 0.9
    lattice = SOUND.noise()
    far = np.concatenate([np.arange(3000), 10 ** np.arange(4, 9)])
    for x, z in ((0, 900), (0, 1), (900, 5000), (0, 50_000)):
        ratios = lattice.log_weight(far - x) - lattice.log_weight(far - z)
        norms = [math.log(lattice.mass(-point, np.inf)) for point in (x, z)]
        allowed = float((z - x) * SOUND.lattice.step * exact(1, "epsilon"))
        assert np.abs(ratios - norms[0] + norms[1]).max() <= allowed * (1 + 1e-9)


def test_expected_errors_are_integrals():
    for answer, scale in product((0.0, 0.3, 2.0, 9.0), (1.0, 2.0)):

        def moment(p, answer=answer, s=scale):
            def law(y):
                return math.exp(-abs(y - answer) / s) / 2 / s * abs(y - answer) ** p

            return integrate.quad(law, 0, 90, points=[answer])[0]

        parts = [moment(0), moment(1)]
        assert errata_e1.truncated_error(answer, scale) == pytest.approx(parts[1] / parts[0], rel=1e-7)
        snapped = parts[1] + answer * math.exp(-answer / scale) / 2
        assert errata_e1.snapped_error(answer, scale) == pytest.approx(snapped, rel=1e-7)
