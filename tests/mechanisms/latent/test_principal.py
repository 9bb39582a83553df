"""PCA basis: how many components are kept, against a linear scan and the published search."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from latent_spaces import UNEVEN, Space

from dpveil.errors import InvalidParameter
from dpveil.mechanisms.latent import CroftMetric, PCABasis
from dpveil.mechanisms.latent.base import STEPS
from dpveil.mechanisms.latent.principal import affordable
from dpveil.noise.bits import SeededBits

THREE = Space((-8.0, -5.0, -1.0), (8.0, 4.0, 3.0), spread=(2.0, 1.5, 0.5))


def scan(width, deviations, ratio, epsilon):
    """The largest c with c·width_i/ε < ratio·s_i for every i ≤ c, one by one; 0 where there is none."""
    good = [
        c
        for c in range(1, len(width) + 1)
        if all(c * width[i] / epsilon < ratio * deviations[i] for i in range(c))
    ]
    return max(good, default=0)


def published(width, deviations, ratio, epsilon):
    """Algorithm 1 as it is printed, with c_mid for the f_mid that it never defines."""
    low, high = 1, len(width)
    middle = math.ceil((low + high) / 2)
    while middle != high:
        if any(middle * width[i] / epsilon >= ratio * deviations[i] for i in range(middle)):
            high = middle
        else:
            low = middle
        middle = math.ceil((low + high) / 2)
    return middle


def spaces(count):
    rng = np.random.default_rng(6)
    for _ in range(count):
        size = int(rng.integers(1, 30))
        deviations = np.sort(rng.exponential(5, size))[::-1] + 0.1
        yield (
            deviations * rng.uniform(4, 10, size),
            deviations,
            float(rng.uniform(0.5, 3)),
            rng.exponential(40),
        )


def test_errata_e6_algorithm_1_returns_one_component_too_many():
    """Ours is the linear scan's in every case; the printed one breaks its threshold unless n is valid."""
    broken = 0
    for width, deviations, ratio, epsilon in spaces(2000):
        best = scan(width, deviations, ratio, epsilon)
        assert affordable(width, deviations, Fraction(ratio), Fraction(epsilon)) == best
        found = published(width, deviations, ratio, epsilon)
        if best == len(width):
            assert found == best
        else:
            assert found == (best + 1 if best or len(width) == 1 else 2)
            broken += 1
    assert broken > 500


def test_more_budget_or_a_smaller_box_keeps_more():
    kept = [PCABasis(epsilon=epsilon).kept(THREE) for epsilon in (6, 12, 30, 100)]
    assert kept == [1, 2, 3, 3]
    assert PCABasis(epsilon=6, clip=30).kept(THREE) == 2
    assert PCABasis(epsilon=6, ratio=4).kept(THREE) == 2


def test_no_affordable_component_is_a_clear_error():
    mechanism = PCABasis(epsilon=5)
    with pytest.raises(InvalidParameter, match="affords no component") as refusal:
        mechanism.prepare(THREE)
    assert "5.333" in refusal.value.hint
    with pytest.raises(InvalidParameter, match="affords no component"):
        mechanism.release(np.zeros((1, 3)), THREE, bits=SeededBits(1))
    assert PCABasis(epsilon="5.334").kept(THREE) == 1


def test_a_code_without_principal_components_is_refused():
    bare = Space((0.0, 0.0), (1.0, 1.0))
    assert PCABasis(epsilon=5).guarantee(bare).kind == "metric"  # known without a model
    with pytest.raises(InvalidParameter, match="principal components") as refusal:
        PCABasis(epsilon=5).prepare(bare)
    assert "pca codec" in refusal.value.hint


def test_dropped_components_are_the_mean_whatever_the_code():
    mechanism = PCABasis(epsilon=12)
    codes = np.array([[1.0, 2.0, -0.9], [1.0, 2.0, 2.9]])
    released = [mechanism.release(code[None], THREE, bits=SeededBits(4)) for code in codes]
    assert np.array_equal(*released)  # d = 0: the same release of the same bits
    assert released[0][0, 2] == pytest.approx(0, abs=4 / STEPS)
    assert "0 for codes that differ in the others only" in mechanism.guarantee(THREE).metric
    kept = [mechanism.release(codes[:1] + step, THREE, bits=SeededBits(4)) for step in (0.0, [[0, 0.1, 0]])]
    assert not np.array_equal(*kept)
    outside = Space((1.0, 0.0), (3.0, 1.0), spread=(9.0, 1e-9))  # a box that 0 is not in
    assert PCABasis(epsilon=9).release(np.ones((1, 2)), outside, bits=SeededBits(1))[0, 1] == 0


def test_all_components_is_croft_metric():
    space = Space(UNEVEN.low, UNEVEN.high, UNEVEN.energy, (10.0, 10.0, 10.0))
    codes = np.array([[0.0, 7.0, 0.1], [0.9, 2.0, 0.25]])
    ours, croft = (
        kind(epsilon=20).release(codes, space, bits=SeededBits(2)) for kind in (PCABasis, CroftMetric)
    )
    assert np.array_equal(ours, croft)
