"""ssim-exponential: its law over all neighbours of tiny images, and what each part of it is for."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from dpveil.audit.pixel.methods.ssim_exponential import evenly, log_distribution, outputs, ssim, windows_of
from dpveil.errors import InvalidParameter
from dpveil.mechanisms.pixel import SSIMExponential
from dpveil.mechanisms.pixel.ssim.method import _joined, _windows
from dpveil.mechanisms.pixel.ssim.quality import error_on_grey, quality, shown_levels
from dpveil.noise.bits import SeededBits

EXTREMES = (0, 1, 85, 128, 255)
ROUNDING = 1e-9
FACE = {"height": 112, "width": 92, "channels": 1}


# Quality


@pytest.mark.parametrize("levels", [2, 3, 4, 8, 16, 32, 256])
def test_levels_are_even_and_include_black_and_white(levels):
    assert shown_levels(levels).tolist() == evenly(levels)


def test_quality_is_the_printed_formula():
    shown = outputs(4, 3)
    for x in ([141, 73, 73, 0], [1, 93, 94, 192], [0, 0, 0, 0], [255, 255, 255, 255], [7, 7, 7, 8]):
        printed = np.maximum(0, ssim(np.array(x, float), shown))
        exact = [float(quality(np.array(x, np.uint8), y.astype(np.uint8))) for y in shown]
        assert np.abs(exact - printed).max() < 1e-14
        assert all(0 <= quality(np.array(x, np.uint8), y.astype(np.uint8)) <= 1 for y in shown)


def test_quality_of_the_image_metric_agrees():
    """The metric averages the same formula over windows; with one window of equal weights it is this one."""
    structural_similarity = pytest.importorskip("skimage.metrics").structural_similarity
    x = (np.arange(9).reshape(3, 3) * 29 % 256).astype(np.uint8)
    y = (np.arange(9).reshape(3, 3) * 31 % 256).astype(np.uint8)
    theirs = structural_similarity(x, y, win_size=3, data_range=255, use_sample_covariance=False)
    assert float(quality(x.ravel(), y.ravel())) == pytest.approx(theirs, abs=1e-12)


# The law over all neighbours


def images(shape, levels=EXTREMES):
    for values in itertools.product(levels, repeat=math.prod(shape)):
        yield np.array(values, np.uint8).reshape(shape)


@pytest.mark.parametrize(
    ("shape", "side", "levels"),
    [((1, 1), 1, 4), ((1, 1), 2, 2), ((1, 2), 2, 3), ((1, 2), 1, 4), ((2, 2), 2, 2)],
)
@pytest.mark.parametrize("epsilon", [0.5, 4, 60])
def test_no_two_images_cost_more_than_epsilon(shape, side, levels, epsilon):
    """Every pair of images with these levels; a window's laws are compared once for each window."""
    method = SSIMExponential(epsilon=epsilon, window=side, levels=levels)
    exponent = float(method.exponent(height=shape[0], width=shape[1], channels=1))
    windows = {}
    for image in images(shape, EXTREMES if shape != (2, 2) else (0, 85, 128, 255)):
        for place, window in enumerate(windows_of(image, 1, side)):
            windows.setdefault(place, {})[window.tobytes()] = log_distribution(window, exponent, levels)
    spent = 0.0
    for laws in windows.values():
        table = np.stack(list(laws.values()))
        spent += float((table[:, None] - table[None, :]).max())
    assert spent <= epsilon + ROUNDING
    assert spent > 0.3 * epsilon  # the pairs are not too easy: half of ε is what a draw costs at least


@pytest.mark.parametrize("levels", [2, 4])
def test_one_pixel_over_all_256_levels(levels):
    method = SSIMExponential(epsilon=3, window=1, levels=levels)
    exponent = float(method.exponent(height=1, width=1, channels=1))
    table = np.stack([log_distribution([x], exponent, levels) for x in range(256)])
    assert (table.max(axis=0) - table.min(axis=0)).max() <= 3 + ROUNDING


def released_counts(method, image, runs, seed):
    """How often each output of a one-channel image was released, over independent copies side by side."""
    source = SeededBits(seed)
    shown = {}
    for _ in range(runs):
        key = method.release(image, bits=source).tobytes()
        shown[key] = shown.get(key, 0) + 1
    return shown


@pytest.mark.parametrize(
    ("shape", "block", "side", "levels"),
    [((1, 1), 1, 1, 4), ((1, 2), 1, 2, 2), ((3, 2), 2, 1, 2), ((2, 3), 1, 2, 2)],
)
def test_releases_follow_the_law(shape, block, side, levels):
    """Pearson's statistic over 3 000 releases is beyond 7 standard deviations and a half with a chance
    below 1e-9 (normal for these expectations, with room: the bound asked is 12).
    """
    image = (np.arange(math.prod(shape)) * 97 % 256).astype(np.uint8).reshape(shape)
    method = SSIMExponential(epsilon=12, block=block, window=side, levels=levels)
    exponent = float(method.exponent(height=shape[0], width=shape[1], channels=1))
    rows, columns = (math.ceil(n / block) for n in shape)
    law = {}
    parts = [np.exp(log_distribution(x, exponent, levels)) for x in windows_of(image, block, side)]
    for places in itertools.product(range(levels ** (side * side)), repeat=len(parts)):
        tiles = [outputs(side * side, levels)[p].reshape(side, side) for p in places]
        wide = math.ceil(columns / side)
        grid = np.block([tiles[i : i + wide] for i in range(0, len(tiles), wide)])[:rows, :columns]
        full = np.kron(grid, np.ones((block, block)))[: shape[0], : shape[1]].astype(np.uint8)
        law[full.tobytes()] = law.get(full.tobytes(), 0.0) + math.prod(
            part[p] for part, p in zip(parts, places, strict=True)
        )
    assert sum(law.values()) == pytest.approx(1)
    runs = 3000
    counts = released_counts(method, image, runs, 11)
    assert set(counts) <= set(law)
    common = [key for key, p in law.items() if runs * p > 5]
    statistic = sum((counts.get(key, 0) - runs * law[key]) ** 2 / (runs * law[key]) for key in common)
    assert len(common) > 1
    assert statistic < len(common) + 12 * math.sqrt(2 * len(common)) + 30


def cost(one, other, exponent, levels, *, block=1, side=2):
    """The largest ln P(release | one) - ln P(release | other): windows are independent, so they add."""
    pairs = zip(windows_of(one, block, side), windows_of(other, block, side), strict=True)
    return sum(
        float(np.max(log_distribution(x, exponent, levels) - log_distribution(y, exponent, levels)))
        for x, y in pairs
    )


# Mutants: what a published or careless version would promise


def test_mutant_factor_two_dropped_overspends():
    """ε′ = ε/N instead of ε/(2N): a draw costs more than ε′ as soon as the two normalisers differ."""
    one, other = np.array([[255, 0], [0, 0]], np.uint8), np.array([[0, 0], [0, 255]], np.uint8)
    exponent = float(SSIMExponential(epsilon=1, window=2, levels=4).exponent(height=2, width=2, channels=1))
    worst = max(
        cost(np.array(a, np.uint8).reshape(2, 2), np.array(b, np.uint8).reshape(2, 2), 2 * exponent, 2)
        for a, b in itertools.permutations(
            [(0, 0, 0, 0), (255, 255, 255, 255), (0, 255, 255, 0), (128,) * 4], 2
        )
    )
    assert cost(one, other, exponent, 4) <= 1 < worst


def test_mutant_windows_by_area_overspend():
    """112 × 92 at b = 16: n·c/p² counts 4.47 windows (112·92/(16·3)²), the grid has six (errata E2)."""
    method = SSIMExponential(epsilon=60, block=16)
    assert method.windows(**FACE) == 6
    assert pytest.approx(4.47, abs=0.01) == 112 * 92 / (16 * 3) ** 2
    assert method.windows(height=112, width=92, channels=3) == 18
    published = 60 * (3 * 16) ** 2 / (2 * 112 * 92)
    checks = (np.indices((112, 92)).sum(axis=0) // 16 % 2 * 255).astype(np.uint8)
    pair = (np.zeros((112, 92), np.uint8), np.full((112, 92), 255, np.uint8), checks)
    spent = {
        exponent: max(cost(a, b, exponent, 2, block=16, side=3) for a, b in itertools.permutations(pair, 2))
        for exponent in (published, 60 / 12)
    }
    assert spent[60 / 12] <= 60 + ROUNDING
    assert spent[published] > spent[60 / 12] * 1.3


def test_mutant_padding_outside_the_budget_overspends():
    """3 × 3 pixels, windows of 2 × 2: one whole window, and three that are padded and shown all the same."""
    method = SSIMExponential(epsilon=10, window=2, levels=2)
    size = {"height": 3, "width": 3, "channels": 1}
    assert method.windows(**size) == 4
    black, white = np.zeros((3, 3), np.uint8), np.full((3, 3), 255, np.uint8)
    honest, careless = float(method.exponent(**size)), 10 / 2
    assert cost(black, white, honest, 2) <= 10 < cost(black, white, careless, 2)


def test_mutant_channels_that_share_no_budget_overspend():
    method = SSIMExponential(epsilon=9, window=1, levels=2)
    grey, colour = (method.exponent(height=1, width=1, channels=c) for c in (1, 3))
    assert grey == 3 * colour
    one = cost(np.array([[0]], np.uint8), np.array([[255]], np.uint8), float(grey), 2, side=1)
    assert 3 * one > 9
    assert 3 * cost(np.array([[0]], np.uint8), np.array([[255]], np.uint8), float(colour), 2, side=1) <= 9


# Shapes


@pytest.mark.parametrize("shape", [(1, 1), (5, 7), (6, 6), (3, 10), (9, 1)])
@pytest.mark.parametrize("side", [1, 2, 3, 4])
def test_windows_come_apart_and_together(shape, side):
    image = (np.arange(math.prod(shape) * 3) % 256).astype(np.uint8).reshape(*shape, 3)
    parts = _windows(image, side)
    assert np.array_equal(_joined(parts, *shape, side), image)
    method = SSIMExponential(epsilon=1, window=side)
    assert len(parts) == method.windows(height=shape[0], width=shape[1], channels=3)
    mine = parts.reshape(-1, 3, side, side)
    for channel in range(3):
        expected = windows_of(image[:, :, channel], 1, side)
        assert np.array_equal(mine[:, channel], np.array(expected))


# Budgets


def test_budgets_in_three_currencies():
    size = {"height": 128, "width": 128, "channels": 3}
    pure = SSIMExponential(epsilon=100, block=2)
    assert pure.windows(**size) == 22 * 22 * 3
    account = pure.account(**size)
    assert account.pure == 100
    assert account.rho == (2 * pure.exponent(**size)) ** 2 * account.draws / 8
    zcdp = SSIMExponential(rho="0.5", block=2)
    assert Fraction(1, 2) * (1 - Fraction(1, 10**15)) < zcdp.account(**size).rho <= Fraction(1, 2)
    both = SSIMExponential(epsilon=20, delta="1e-6", block=2)
    delta = Fraction(1, 10**6)
    assert both.account(**size).epsilon(delta) <= 20
    assert both.exponent(**size) > 4 * SSIMExponential(epsilon=20, block=2).exponent(**size)
    more = type(account)(2 * both.exponent(**size) * Fraction(1001, 1000), account.draws)
    assert more.epsilon(delta) > 20


def test_time_is_in_the_clear_unless_it_is_constant():
    size = {"height": 9, "width": 9, "channels": 1}
    plain, constant = (SSIMExponential(epsilon=1, constant_time=c).guarantee(**size) for c in (False, True))
    assert any("how long" in entry for entry in plain.scope.in_the_clear)
    assert not any("how long" in entry for entry in constant.scope.in_the_clear)


@pytest.mark.parametrize("given", [{"levels": 1}, {"levels": 257}, {"window": 65}])
def test_settings_out_of_range_are_refused(given):
    with pytest.raises(InvalidParameter) as refusal:
        SSIMExponential(epsilon=1, **given)
    assert refusal.value.name == next(iter(given))


@pytest.mark.parametrize(
    ("window", "levels", "fits"), [(3, 4, True), (2, 32, True), (4, 4, False), (3, 8, False)]
)
def test_constant_time_only_where_all_outputs_can_be_listed(window, levels, fits):
    if fits:
        assert SSIMExponential(epsilon=1, window=window, levels=levels, constant_time=True)
        return
    with pytest.raises(InvalidParameter) as refusal:
        SSIMExponential(epsilon=1, window=window, levels=levels, constant_time=True)
    assert refusal.value.name == "constant_time"
    assert refusal.value.hint


def test_what_is_out_of_reach_is_refused_and_never_approximated():
    method = SSIMExponential(epsilon=100, window=5, levels=8)
    with pytest.raises(InvalidParameter, match="no exact draw within reach") as refusal:
        method.release(np.zeros((5, 5), np.uint8), bits=SeededBits(1))
    assert refusal.value.hint
    weak = SSIMExponential(epsilon=1, window=5, levels=8)
    assert weak.release(np.zeros((5, 5), np.uint8), bits=SeededBits(1)).shape == (5, 5)


@pytest.mark.parametrize(("side", "levels"), [(2, 4), (1, 16)])
def test_noise_scale_is_the_error_on_mid_grey(side, levels):
    for exponent in (0.01, 3.0, 40.0):
        law = np.exp(log_distribution(np.full(side * side, 128), exponent, levels))
        error = math.sqrt(law @ ((outputs(side * side, levels) - 128) ** 2).mean(axis=1))
        assert error_on_grey(exponent, side * side, levels) == pytest.approx(error, rel=1e-9)


def test_noise_scale_of_many_multisets_is_estimated_closely():
    """32 levels are nearly as fine as 16: without any quality both are the spread of a uniform level."""
    fine = error_on_grey(1e-6, 9, 32)
    assert fine == pytest.approx(math.sqrt(np.mean((shown_levels(32).astype(float) - 128) ** 2)), rel=0.01)
    assert error_on_grey(6.0, 9, 32) < fine
