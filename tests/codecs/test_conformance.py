"""One suite for every codec in the table: what mechanisms and users may rely on."""

from __future__ import annotations

import json
import math
from dataclasses import asdict, is_dataclass, replace
from functools import cache, partial
from itertools import pairwise
from pathlib import Path

import made_gan
import made_upconv
import numpy as np
import pytest
from made_faces import LENGTH, accepted, faces, source_of, train

from dpveil.assets.networks import Network
from dpveil.assets.trained_files import save
from dpveil.codecs import Bounds, StyleGAN, load
from dpveil.codecs.base import pictures_of
from dpveil.codecs.statistics import (
    MEASURES,
    PAIR_SHARES,
    PERCENTILES,
    distances_of,
    quantiles_of,
)
from dpveil.core.registry import CODECS
from dpveil.errors import InvalidParameter
from dpveil.metrics import psnr
from dpveil_train import PASSES, TRAINERS

ROOT = Path(__file__).parents[2]
LEARNED = [name for name in CODECS if name in TRAINERS]
"""Codecs that numpy trains; those of networks have tests of their own."""
CASES = [(name, channels) for name in LEARNED for channels in (1, 3)]
each = pytest.mark.parametrize("case", CASES, ids=str)
LEAST_PSNR = {"pca": 33, "dictionary": 32, "aam": 31, "mixture": 33}
"""Decibels that a code of 8 coordinates keeps of made faces that were not trained on; pca 34.7, dictionary
34.0, aam 32.8 when this was written. Predicting the mean face has 20."""


def of_channels(crops, channels):
    return np.ascontiguousarray(crops[..., 1:2]) if channels == 1 else crops


@pytest.mark.parametrize("name", CODECS)
def test_names_and_words(name):
    codec = CODECS[name]
    assert codec.name == name == name.lower()
    assert codec.summary
    assert codec.source
    assert name not in LEARNED or PASSES[name] > 0
    assert is_dataclass(codec)
    page = (ROOT / "docs" / "codecs.md").read_text(encoding="utf-8")
    assert f"\n## {name}\n" in page, f"docs/codecs.md does not explain {name}"


@each
def test_shapes_and_types(codecs, crops, case):
    codec, some = codecs[case], of_channels(crops, case[1])[:5]
    codes = codec.encode(some)
    assert codec.length == LENGTH
    assert codes.shape == (5, LENGTH)
    assert codes.dtype == np.float64
    shown = codec.decode(codes)
    assert shown.shape == some.shape
    assert shown.dtype == np.uint8
    assert codec.encode(some[:0]).shape == (0, LENGTH)
    assert codec.decode(codes[:0]).shape == (0, *codec.canvas)


@each
def test_codes_outside_the_range_are_clipped_or_refused_in_one_line(codecs, crops, case):
    codec = codecs[case]
    low, high = codec.statistics.quantiles[:, 0]
    ends = np.stack([low, high])
    assert np.array_equal(codec.decode(ends, strict=True), codec.decode(ends))
    for row, end, way in ((0, low, -1), (1, high, 1)):
        codes = ends.copy()
        codes[row, 1] = end[1] + way * 0.01 * (high[1] - low[1])
        assert np.array_equal(codec.decode(codes), codec.decode(ends))
        with pytest.raises(InvalidParameter, match=rf"codes\[{row}, 1\] = .* outside the range") as raised:
            codec.decode(codes, strict=True)
        assert f"{low[1]:.6g} to {high[1]:.6g}" in str(raised.value)
        assert "\n" not in str(raised.value)


@each
def test_more_than_a_chunk_is_the_same(codecs, crops, case):
    codec = codecs[case]
    many = np.concatenate([of_channels(crops, case[1])] * 4)  # above the 256 of a chunk
    codes = codec.encode(many)
    assert np.allclose(codes[:90], codes[270:], atol=1e-2)
    assert np.abs(codec.decode(codes)[270:].astype(int) - codec.decode(codes[:90])).max() <= 1


@each
def test_round_trip_error_on_crops_that_were_not_trained_on(codecs, other_crops, case):
    codec, some = codecs[case], of_channels(other_crops, case[1])
    seen = codec.decode(codec.encode(some))
    quality = np.mean([psnr(a, b, data_range=255) for a, b in zip(some, seen, strict=True)])
    assert quality > LEAST_PSNR[case[0]]


@each
def test_no_pixel_bypasses_the_code(codecs, crops, case):
    """What decodes knows the code and nothing else: equal codes, equal crops, whoever came before."""
    codec, some = codecs[case], of_channels(crops, case[1])
    codes = codec.encode(some[:2])
    first = codec.decode(codes)
    codec.encode(some[40:60])
    assert np.array_equal(codec.decode(codes), first)
    twice = np.concatenate([codes[:1], codes[:1]])
    assert np.array_equal(*codec.decode(twice))
    assert not np.shares_memory(first, some)
    assert codec.in_the_clear == ()


@each
def test_bounds_hold_the_training_codes(codecs, crops, case):
    codec = codecs[case]
    codes = codec.encode(of_channels(crops, case[1]))
    box = codec.statistics.bounds()
    assert np.all(codes >= box.low - 1e-2)
    assert np.all(codes <= box.high + 1e-2)
    assert np.allclose([codes.min(axis=0), codes.max(axis=0)], [box.low, box.high], atol=1e-2)
    low, high = np.quantile(codes, [0.1, 0.9], axis=0)
    assert np.allclose(codec.statistics.bounds(10).low, low, atol=1e-2)
    assert np.allclose(codec.statistics.bounds(10).high, high, atol=1e-2)
    widths = [codec.statistics.bounds(clip).width for clip in (0, 1, 2.5, "33/3", 12.5, 40)]
    assert all(np.all(b <= a) for a, b in pairwise(widths))
    assert codec.statistics.quantiles.shape == (2, len(PERCENTILES), LENGTH)


@each
def test_bounds_refuse_other_clips(codecs, case):
    for clip in (-1, 41, 50, "1e9", "many", True, float("nan"), None):
        with pytest.raises(InvalidParameter) as refusal:
            codecs[case].statistics.bounds(clip)
        assert refusal.value.hint


@each
def test_column_energy_is_what_a_unit_adds_to_the_picture(codecs, case):
    """Linear decoders: the squared difference of two decoded codes that are `step` apart, less rounding.

    Of aam only texture is linear, where the shape stays the mean one; for its shape see test_aam.py.
    """
    codec = codecs[case]
    box = codec.statistics.bounds()
    of_shape = getattr(codec, "of_shape", 0)
    middle = (box.low + box.high) / 2
    middle[:of_shape] = 0
    for m in range(of_shape, codec.length):
        step = np.zeros(codec.length)
        step[m] = box.width[m] / 4
        a, b = codec.decode(np.stack([middle - step, middle + step])).astype(np.float64)
        added = np.sum((a - b) ** 2)
        expected = codec.statistics.column_energy[m] * (2 * step[m]) ** 2
        # Rounding to whole levels adds a sixth of a squared level to each value, on average.
        assert abs(added - a.size / 6 - expected) < 0.05 * expected + a.size / 3


@each
def test_codes_beyond_training_are_clipped(codecs, case):
    codec = codecs[case]
    box = codec.statistics.bounds()
    far = np.stack([box.high + box.width, box.high + 1e300, box.high])
    shown = codec.decode(far)
    assert np.array_equal(shown[0], shown[2])
    assert np.array_equal(shown[1], shown[2])


@each
def test_crops_and_codes_of_another_domain_are_refused(codecs, crops, case):
    codec, some = codecs[case], of_channels(crops, case[1])[:2]
    doubled = np.concatenate([some, some], axis=3)
    for wrong in (some.astype(np.float64), some.reshape(2, -1), some[:, 1:], doubled, some[0]):
        with pytest.raises(InvalidParameter, match="crops"):
            codec.encode(wrong)
    codes = np.zeros((2, codec.length))
    for wrong in (codes[:, 1:], codes[0], np.where(np.eye(2, codec.length), np.nan, codes), codes - np.inf):
        with pytest.raises(InvalidParameter, match="codes"):
            codec.decode(wrong)


@pytest.mark.parametrize("name", LEARNED)
@pytest.mark.parametrize(
    ("count", "length", "word"),
    [
        (0, 1, "number of training images"),
        (8, 8, "number of training images"),
        (30, 0, "range"),
        (30, 2.0, "whole"),
    ],
)
def test_too_few_images_are_refused(name, count, length, word):
    with pytest.raises(InvalidParameter, match=word) as refusal:
        train(CODECS[name], source_of(faces(30, seed=1)[:count]), length=length)
    assert refusal.value.hint


@pytest.mark.parametrize("name", LEARNED)
def test_images_that_do_not_differ_are_refused(name, crops):
    same = np.repeat(crops[:2], 20, axis=0)
    with pytest.raises(InvalidParameter, match="length") as refusal:
        train(CODECS[name], source_of(same))
    assert "\n" not in str(refusal.value)


@each
def test_survives_its_file_exactly(codecs, other_crops, tmp_path, case):
    codec = codecs[case]
    path = tmp_path / "model.safetensors"
    digest = save(codec, path)
    back = load(path, expected=digest)
    assert type(back) is type(codec)
    assert back.canvas == codec.canvas
    assert asdict(back.card) == asdict(codec.card)
    some = of_channels(other_crops, case[1])
    assert np.array_equal(back.encode(some), codec.encode(some))
    codes = codec.encode(some)
    assert np.array_equal(back.decode(codes), codec.decode(codes))
    assert np.array_equal(back.statistics.quantiles, codec.statistics.quantiles)
    json.dumps(asdict(back.card))


# Bounds and percentiles, the parts that every codec shares.


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


def test_a_box_without_room_is_refused_and_names_the_clip(codecs):
    codec = codecs[("dictionary", 3)]
    flat = codec.statistics.quantiles.copy()
    flat[:, PERCENTILES.index(type(PERCENTILES[0])(1, 10)) :, 1:3] = 0
    unused = replace(codec.statistics, quantiles=flat)
    assert unused.bounds(5).low.shape == (8,)
    with pytest.raises(InvalidParameter, match="clip = 10 leaves no room in 2 of 8") as refusal:
        unused.bounds(10)
    assert "smaller" in refusal.value.hint


def test_levels_are_rounded_and_clamped():
    rows = np.array([[-3.0, 0.4, 0.6, 254.5], [255.4, 300.0, 1e9, 127.0]], np.float32)
    crops = pictures_of(iter([rows[:1].copy(), rows[1:].copy()]), 2, (2, 2, 1))
    assert crops.ravel().tolist() == [0, 0, 1, 254, 255, 255, 255, 127]


# How far training codes lie apart: against distances that are computed pair by pair.


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


@pytest.mark.parametrize("name", TRAINERS)
def test_a_codec_keeps_the_distances_of_its_training_codes(name):
    crops = faces(40, seed=6)
    codec = train(CODECS[name], source_of(crops), length=4)
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


# Files

ACCEPTED = {
    "pca": {"mean": "far negative zero", "components": "negative", "apart": "zero", "deviations": "far"},
    "dictionary": {"mean": "far negative zero", "atoms": "negative", "apart": "zero"},
    "mixture": {
        **{"mean": "far negative zero", "components": "negative", "apart": "zero", "deviations": "far"},
        **{"means": "negative zero", "loadings": "cut negative zero"},
    },
    "aam": {
        **{"texture.mean": "far negative zero", "texture.components": "negative", "texture.apart": "zero"},
        **{"texture.deviations": "far", "basis": "far negative zero", "reach": "far negative zero"},
        **{"steps": "empty short far negative zero", "apart": "zero"},
    },
    "upconv": {
        **{"identities": "far negative zero", "gallery": "far negative zero", "mean": "far negative zero"},
        **{"axes": "negative zero", "energy": "far", "apart": "zero"},
    },
    "gan": {
        **{"mean": "far negative zero", "basis": "negative", "energy": "far", "apart": "zero"},
        **{"deviations": "far"},
    },
}
ACCEPTED["stylegan"] = ACCEPTED["gan"]
"""What is a model, though another one: pictures and axes of any values. All else that is wrong is refused."""


@pytest.mark.filterwarnings("ignore:overflow encountered")
@pytest.mark.parametrize("name", ACCEPTED)
def test_a_file_of_damaged_tensors_is_refused(codecs, name, monkeypatch):
    """Networks start a process each, so those that are intact are made once."""
    made = Network.of
    once = cache(lambda contents, *settings: made(np.frombuffer(contents, np.uint8), *settings))

    def of(tensor, *settings):
        whole = tensor.dtype == np.uint8 and tensor.ndim == 1
        return once(tensor.tobytes(), *settings) if whole else made(tensor, *settings)

    monkeypatch.setattr(Network, "of", of)
    networks = {
        "upconv": made_upconv.made,
        "gan": made_gan.made,
        "stylegan": partial(made_gan.made, StyleGAN),
    }
    assert accepted(networks[name]() if name in networks else codecs[name, 3]) == ACCEPTED[name]
