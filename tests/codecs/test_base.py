"""Bounds and percentiles, the parts that every codec shares."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from dpveil.codecs import Bounds
from dpveil.codecs.base import pictures_of
from dpveil.codecs.statistics import PERCENTILES, checked_quantiles, quantiles_of
from dpveil.errors import InvalidParameter, ModelError


def test_bounds_clip_into_the_box():
    box = Bounds(np.array([-1.0, 0.0]), np.array([1.0, 5.0]))
    assert box.width.tolist() == [2, 5]
    assert box.clip(np.array([[-3.0, 2.0], [0.5, 9.0]])).tolist() == [[-1, 2], [0.5, 5]]


@pytest.mark.parametrize(
    ("low", "high"),
    [([0.0], [0.0]), ([1.0], [0.0]), ([0.0, 0.0], [1.0]), ([np.nan], [1.0]), ([-np.inf], [1.0])],
)
def test_what_is_no_box_is_refused(low, high):
    with pytest.raises(InvalidParameter, match="box"):
        Bounds(np.array(low), np.array(high))


def test_quantiles_against_sorting():
    """With 1001 codes a share of p/1000 is the p-th in order, from below and from above."""
    codes = np.random.default_rng(1).permutation(np.arange(1001.0))[:, None] * np.array([1.0, -3.0])
    low, high = quantiles_of(codes)
    ranks = np.array([float(1000 * p) for p in PERCENTILES])
    assert np.allclose(low[:, 0], ranks)
    assert np.allclose(high[:, 0], 1000 - ranks)
    assert np.allclose(low[:, 1], -3 * (1000 - ranks))
    assert PERCENTILES[0] == 0
    assert {10, 12.5, 15, 25, 30, 40} <= {float(100 * p) for p in PERCENTILES}  # Li & Clifton 2021


def test_a_box_without_room_is_refused_and_names_the_clip(codecs):
    codec = codecs[("dictionary", 3)]
    flat = codec.statistics.quantiles.copy()
    flat[:, PERCENTILES.index(type(PERCENTILES[0])(1, 10)) :, 1:3] = 0
    unused = replace(codec.statistics, quantiles=flat)
    assert unused.bounds(5).low.shape == (8,)
    with pytest.raises(InvalidParameter, match="clip = 10 leaves no room in 2 of 8") as refusal:
        unused.bounds(10)
    assert "smaller" in refusal.value.hint


@pytest.mark.parametrize("change", ["shape", "nan", "flat", "order"])
def test_quantiles_of_a_file_are_checked(change):
    good = quantiles_of(np.random.default_rng(2).normal(size=(50, 3)))
    assert np.array_equal(checked_quantiles(good, 3), good)
    wrong = good.copy()
    if change == "shape":
        wrong = wrong[:, :-1]
    elif change == "nan":
        wrong[1, 2, 0] = np.nan
    elif change == "flat":
        wrong[:, 0, 1] = 4
    else:
        wrong[0] = wrong[0, ::-1]
    with pytest.raises(ModelError, match="quantiles"):
        checked_quantiles(wrong, 3)


def test_levels_are_rounded_and_clamped():
    rows = np.array([[-3.0, 0.4, 0.6, 254.5], [255.4, 300.0, 1e9, 127.0]], np.float32)
    crops = pictures_of(iter([rows[:1].copy(), rows[1:].copy()]), 2, (2, 2, 1))
    assert crops.ravel().tolist() == [0, 0, 1, 254, 255, 255, 255, 127]
