"""How far training codes lie apart: against distances that are computed pair by pair."""

from __future__ import annotations

import math

import numpy as np
import pytest
from made_faces import faces, source_of, train

from dpveil.codecs import TABLE
from dpveil.codecs.statistics import MEASURES, PAIR_SHARES, PAIRS, PERCENTILES, distances_of, quantiles_of
from dpveil.errors import InvalidParameter
from dpveil_train import TRAINERS


def by_hand(codes, low, high):
    """Every pair of different codes: mean part of the box, chord of directions, radius of the first."""
    inside = np.clip(codes, low, high)
    middle, half = (low + high) / 2, (high - low) / 2
    every = []
    for i, one in enumerate(inside):
        for j, other in enumerate(inside):
            if i == j:
                continue
            a, b = (one - middle) / half, (other - middle) / half
            chord = math.dist(a / math.hypot(*a), b / math.hypot(*b))
            every.append((np.mean(np.abs(one - other) / (high - low)), chord, math.hypot(*a)))
    return np.array(every).T


def test_against_every_pair():
    """20 000 random pairs: ranks are right within 0.025, which fails for one share with probability 1e-10."""
    codes = np.random.default_rng(4).normal([0, 5, -2], [1, 9, 0.1], (60, 3))
    sides = quantiles_of(codes)
    found = distances_of(codes, sides, 3)
    for row in (0, 4, len(PERCENTILES) - 1):
        every = by_hand(codes, sides[0, row], sides[1, row])
        for values, of in zip(found[:, row], every, strict=True):
            for share, value in zip(PAIR_SHARES, values, strict=True):
                below, above = np.mean(of < value - 1e-12), np.mean(of <= value + 1e-12)
                assert below - 0.025 <= share <= above + 0.025


def test_a_coordinate_without_a_side_adds_nothing():
    codes = np.random.default_rng(5).normal(size=(40, 2))
    codes[:, 1] = np.where(np.arange(40) == 0, 3.0, 0.0)
    codes[1, 1] = -3.0
    sides = quantiles_of(codes)
    found = distances_of(codes, sides, 3)
    assert np.isfinite(found).all()
    assert sides[0, 4, 1] == sides[1, 4, 1] == 0
    assert found[0, 4, -1] <= 0.5  # a mean over both coordinates, of which one never differs
    assert np.allclose(found[1, 4, -1], 2)  # on the line that is left, directions are alike or opposite


def test_no_code_is_paired_with_itself():
    codes = np.array([[0.0], [1.0]])
    found = distances_of(codes, quantiles_of(codes), 3)
    assert np.all(found[0, 0] == 1)
    assert PAIRS * PAIR_SHARES[0] >= 100


@pytest.mark.parametrize("name", TRAINERS)
def test_a_codec_keeps_the_distances_of_its_training_codes(name):
    crops = faces(40, seed=6)
    codec = train(TABLE[name], source_of(crops), length=4)
    every = by_hand(codec.encode(crops), codec.statistics.bounds(10).low, codec.statistics.bounds(10).high)
    apart = codec.statistics.pair_distances(10)
    assert tuple(apart.mean) == PAIR_SHARES
    for values, of in zip((apart.mean, apart.chord, apart.radius), every, strict=True):
        assert abs(values[0.5] - np.median(of)) < 0.2 * np.median(of)
    assert len(MEASURES) == len(codec.statistics.distances)
    assert codec.statistics.radius(10) == apart.radius[0.5]
    assert apart.of("box-mean") is apart.mean
    assert apart.of("chord") is apart.chord
    assert apart.of("leading-mean") is None


def test_between_kept_clips_it_is_interpolated_and_others_are_refused(codecs):
    codec = codecs[("pca", 3)]
    mean = {clip: codec.statistics.pair_distances(clip).mean[0.5] for clip in (25, 27, 30)}
    assert mean[25] < mean[30]  # the smaller the box, the larger its parts
    assert math.isclose(mean[27], mean[25] + (mean[30] - mean[25]) * 2 / 5)
    with pytest.raises(InvalidParameter, match="clip"):
        codec.statistics.pair_distances(41)
