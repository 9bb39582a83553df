"""DP-Pix and its cells: exact sums against loops, large blocks, and what is left when the noise is gone."""

import itertools
import json
import math
from fractions import Fraction
from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.ndimage import gaussian_filter

import dpveil
from dpveil.accounting import compose, laplace_epsilon, zcdp_delta
from dpveil.cli import compare, run
from dpveil.errors import InvalidParameter, NoiseError
from dpveil.mechanisms.pixel import TABLE, Blur, DPPix, DPPixGaussian, DPSamp, Fill, Mosaic, Snow
from dpveil.mechanisms.pixel.base import cell_areas, cell_sums, fullest_cells, mean_levels, spread
from dpveil.mechanisms.pixel.baselines import BAND
from dpveil.noise.bits import SeededBits
from dpveil.release.explain import explain
from dpveil.release.words import HEURISTIC

SILENT = 10**9
ROUNDED = [(-(10**12), 4, 0), (-1, 4, 0), (0, 4, 0), (1, 4, 0), (2, 4, 1), (5, 4, 1), (6, 4, 2)]
ROUNDED += [(1017, 4, 254), (1018, 4, 255), (1020, 4, 255), (10**15, 4, 255), (1, 3, 0), (2, 3, 1)]
SCALES = [(None, 1577.8), (256, 38.25), (16, 2.390625), (1, 255 * 3 / 20 / 256)]


def naive(image, block):
    """The pixelised image and its cell sums, with one Python integer at a time."""
    height, width, channels = image.shape
    out, sums = np.zeros_like(image), {}
    for top in range(0, height, block):
        for left in range(0, width, block):
            for channel in range(channels):
                values = [
                    int(image[row, column, channel])
                    for row in range(top, min(top + block, height))
                    for column in range(left, min(left + block, width))
                ]
                sums[top // block, left // block, channel] = (sum(values), len(values))
                level = math.floor(Fraction(sum(values), len(values)) + Fraction(1, 2))
                out[top : top + block, left : left + block, channel] = level
    return out, sums


sizes = st.tuples(st.integers(1, 20), st.integers(1, 20), st.sampled_from([1, 3]), st.integers(1, 25))


@settings(derandomize=True, max_examples=150, deadline=None)
@given(sizes, st.integers(0, 2**32 - 1))
def test_cells_agree_with_loops(size, seed):
    *shape, block = size
    image = (SeededBits(seed).words(math.prod(shape)) % np.uint64(256)).astype(np.uint8).reshape(shape)
    expected, table = naive(image, block)
    sums, areas = cell_sums(image, block), cell_areas(shape[0], shape[1], block)
    assert sums.shape == (*areas.shape[:2], shape[2])
    for (row, column, channel), (total, area) in table.items():
        assert sums[row, column, channel] == total
        assert areas[row, column, 0] == area
    assert np.array_equal(spread(mean_levels(sums, areas), block, shape[0], shape[1]), expected)
    silent = DPPix(epsilon=SILENT, block=block, neighbourhood=1).release(image, bits=SeededBits(0))
    assert np.array_equal(silent, expected)


@pytest.mark.parametrize("size", [(300, 300), (257, 2), (258, 2), (2, 258), (513, 259), (9000, 1), (1, 9000)])
@pytest.mark.parametrize("block", [16, 256, 257, 258, 300, 5000, 2**31])
def test_white_sums_do_not_overflow(size, block):
    image = np.full((*size, 1), 255, np.uint8)
    assert np.array_equal(cell_sums(image, block), 255 * cell_areas(*size, block))
    assert cell_areas(*size, block).sum() == size[0] * size[1]
    out = DPPix(epsilon=SILENT, block=block, neighbourhood=1).release(image, bits=SeededBits(1))
    assert (out == 255).all()


def test_a_tall_strip_beyond_32_bit_rows():
    image = np.full((70_000, 3, 1), 255, np.uint8)
    assert cell_sums(image, 66_000)[:, 0, 0].tolist() == [255 * 3 * 66_000, 255 * 3 * 4_000]


@pytest.mark.parametrize(
    ("total", "area", "level"),
    ROUNDED,
)
def test_means_are_clamped_and_rounded_half_up(total, area, level):
    assert mean_levels(np.array([[[total]]]), np.array([[[area]]]))[0, 0, 0] == level


@pytest.mark.parametrize(("m", "scale"), SCALES)
def test_noise_scales_of_the_architecture_page(m, scale):
    method = DPPix(epsilon=20, block=16, neighbourhood=m)
    assert method.noise_scale(height=88, width=120, channels=3) == pytest.approx(scale, rel=1e-4)


def test_sum_scale_is_exact_and_capped_at_all_pixels():
    size = {"height": 3, "width": 5, "channels": 3}
    assert DPPix(epsilon="1/3", block=2, neighbourhood=4).sum_scale(**size) == 255 * 4 * 3 * 3
    assert DPPix(epsilon="1/3", block=2, neighbourhood=999).sum_scale(**size) == 255 * 15 * 3 * 3
    assert DPPix(epsilon="1/3", block=2).sum_scale(**size) == 255 * 15 * 3 * 3
    assert DPPix(epsilon=0.1, block=900).sum_scale(**size) == 255 * 15 * 3 * 10  # block plays no part


def test_guarantee_names_its_neighbours():
    size = {"height": 3, "width": 5, "channels": 3}
    local = DPPix(epsilon=2, block=2).guarantee(**size)
    assert (local.kind, local.epsilon, local.relation.name) == ("pure", 2, "any-image")
    near = DPPix(epsilon=2, block=2, neighbourhood=4).guarantee(**size)
    assert (near.relation.name, near.relation.m) == ("m-pixels", 4)
    assert "5×3 pixels" in near.scope.covers


def test_images_with_equal_cell_sums_have_equal_releases():
    """Nothing but the noised sums reaches the output: pixels rearranged within cells change nothing."""
    image = np.arange(255, dtype=np.uint8).reshape(15, 17)
    turned = image.copy()
    for top in range(0, 15, 4):
        for left in range(0, 17, 4):
            turned[top : top + 4, left : left + 4] = image[top : top + 4, left : left + 4][::-1, ::-1]
    method = DPPix(epsilon=100, block=4, neighbourhood=1)
    releases = [method.release(shown, bits=SeededBits(7)) for shown in (image, turned)]
    assert not np.array_equal(image, turned)
    assert np.array_equal(releases[0], releases[1])


def test_a_scale_that_cannot_be_drawn_is_refused_with_a_hint():
    with pytest.raises(NoiseError, match="raise epsilon"):
        DPPix(epsilon="1e-12").release(np.zeros((100, 100), np.uint8), bits=SeededBits(5))


def test_channels_of_one_cell_get_independent_noise():
    image = np.full((40, 40, 3), 127, np.uint8)
    out = DPPix(epsilon=30, neighbourhood=1).release(image, bits=SeededBits(6)).reshape(-1, 3).astype(float)
    correlation = np.corrcoef(out.T)[np.triu_indices(3, 1)]
    assert np.abs(correlation).max() < 7 / math.sqrt(1600)


@pytest.mark.parametrize("name", [name for name, kind in TABLE.items() if "neighbourhood" in kind.options()])
def test_all_is_a_neighbourhood_in_python_too(name):
    given = {"epsilon": 1, "block": 8}
    made = compare.one(name, given | {"neighbourhood": "all"})
    assert made == compare.one(name, given)
    assert made.parameters()["neighbourhood"] is None
    with pytest.raises(InvalidParameter, match="not a whole number of pixels: a whole number, or all"):
        compare.one(name, given | {"neighbourhood": "every"})


# DP-Pix under zCDP and (ε, δ): sensitivities against every neighbour of tiny images, and known numbers.


FACE = {"height": 88, "width": 120, "channels": 3}
TINY = [(2, 3, 2, 1), (3, 3, 2, 1), (1, 5, 2, 1), (2, 2, 2, 3), (1, 3, 2, 3), (3, 2, 9, 1), (4, 2, 3, 1)]


def corners(height, width, channels, m):
    """Every way to change at most m pixels by all of 255 in every channel, up or down alike in a pixel."""
    pixels = height * width
    signs = list(itertools.product((-1, 1), repeat=channels))
    for size in range(1, min(m, pixels) + 1):
        for places in itertools.combinations(range(pixels), size):
            for change in itertools.product(signs, repeat=size):
                moved = np.zeros((pixels, channels), int)
                moved[list(places)] = 255 * np.array(change)
                yield moved.reshape(height, width, channels)


def movement(change, block):
    """How far a change of pixels moves every cell's sum, by loops."""
    height, width, channels = change.shape
    return [
        change[top : top + block, left : left + block, channel].sum()
        for top in range(0, height, block)
        for left in range(0, width, block)
        for channel in range(channels)
    ]


@pytest.mark.parametrize(("height", "width", "block", "channels"), TINY)
@pytest.mark.parametrize("m", [1, 2, 3, 5, None])
def test_variance_is_the_largest_squared_distance_of_all_neighbours(height, width, block, channels, m):
    """A convex function of the change is largest at a corner of the box of changes."""
    if channels == 3:
        m = min(m or 4, 3)
    pixels = height * width
    largest = max(
        sum(int(t) ** 2 for t in movement(change, block))
        for change in corners(height, width, channels, m or pixels)
    )
    size = {"height": height, "width": width, "channels": channels}
    given = DPPixGaussian(rho="0.25", block=block, neighbourhood=m)
    assert given.sum_variance(**size) == Fraction(largest, 1) * 2  # Δ² / (2ρ)


@pytest.mark.parametrize(
    ("m", "rho", "scale"),
    [
        (256, 2, 255 * math.sqrt(3) / 2),  # one cell of three channels: Δ = 255·√3·256, σ = Δ/(√(2·2))
        (16, 2, 255 * math.sqrt(3) * 16 / 256 / 2),
        (512, 2, 255 * math.sqrt(3 * 2) / 2),
        (257, 2, 255 * math.sqrt(3 * (256**2 + 1)) / 256 / 2),
    ],
)
def test_noise_scales_by_hand(m, rho, scale):
    method = DPPixGaussian(rho=rho, block=16, neighbourhood=m)
    assert method.noise_scale(**FACE) == pytest.approx(scale, rel=1e-12)


def test_any_image_counts_ragged_cells_by_their_own_area():
    """88 × 120 at 16: five rows of 7 full cells and one of 16 × 8, then a row of 8 × 16 and one 8 × 8."""
    squared = 5 * (7 * 256**2 + 128**2) + 7 * 128**2 + 64**2
    method = DPPixGaussian(rho=2, block=16)
    assert method.sum_variance(**FACE) == Fraction(3 * 255**2 * squared, 4)
    assert method.noise_scale(**FACE) == pytest.approx(255 * math.sqrt(3 * squared) / 2 / 256)


def test_epsilon_and_delta_take_the_largest_rho_that_the_conversion_accepts():
    method = DPPixGaussian(epsilon=20, delta="1e-6", block=16)
    variance = method.sum_variance(**FACE)
    rho = DPPixGaussian(rho=1, block=16).sum_variance(**FACE) / variance
    assert zcdp_delta(rho, 20) <= Fraction(1, 10**6) < zcdp_delta(rho * Fraction(1001, 1000), 20)
    guarantee = method.guarantee(**FACE)
    assert (guarantee.kind, guarantee.epsilon, guarantee.delta) == ("approximate", 20, Fraction(1, 10**6))
    zcdp = DPPixGaussian(rho="0.5", block=16).guarantee(**FACE)
    assert (zcdp.kind, zcdp.rho, zcdp.epsilon, zcdp.delta) == ("zcdp", Fraction(1, 2), None, None)


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"rho": 1, "epsilon": 1},
        {"rho": 1, "delta": "1e-6"},
        {"rho": 1, "epsilon": 1, "delta": "1e-6"},
        {"epsilon": 1},
        {"delta": "1e-6"},
    ],
)
def test_a_budget_is_rho_or_both_of_the_others(given):
    with pytest.raises(InvalidParameter) as refusal:
        DPPixGaussian(**given)
    assert refusal.value.name == "budget"
    assert "give rho alone, or epsilon and delta" in refusal.value.hint


@pytest.mark.parametrize("delta", [0, 1, -0.1, 1.5, "nan", "small", True])
def test_deltas_that_are_no_probability_are_refused(delta):
    for method in (DPPix, DPPixGaussian):
        with pytest.raises(InvalidParameter) as refusal:
            method(epsilon=1, delta=delta)
        assert refusal.value.name == "delta"


def test_what_delta_buys_laplace_noise():
    """Any-image moves 144 sums at once: the accountant halves the noise and is asked about the result."""
    pure, both = DPPix(epsilon=20, block=16), DPPix(epsilon=20, delta="1e-6", block=16)
    assert pure.noise_scale(**FACE) == pytest.approx(1577.81, abs=0.01)
    assert 0.4 < both.noise_scale(**FACE) / pure.noise_scale(**FACE) < 0.6
    moved = fullest_cells(88, 120, 16, None)
    shifts = tuple((shift, 3 * count) for shift, count in sorted(moved.items(), reverse=True))
    scale = both.sum_scale(**FACE)
    delta = Fraction(1, 10**6)
    assert (
        laplace_epsilon(scale, shifts, delta)
        <= 20
        < laplace_epsilon(scale * Fraction(999, 1000), shifts, delta)
    )
    guarantee = both.guarantee(**FACE)
    assert (guarantee.kind, guarantee.epsilon, guarantee.delta) == ("approximate", 20, delta)


# Blur and mosaic promise nothing; a fill shows nothing, and promises that.


IMAGE = np.random.default_rng(3).integers(0, 256, (23, 31, 3), dtype=np.uint8)
BASELINES = [Blur(sigma=2), Mosaic(block=5)]
HEURISTICS = [*BASELINES, DPSamp(epsilon=3, clusters=4, neighbourhood=1)]


def released(method, image=IMAGE):
    return method.release(image, bits=SeededBits(1))


@pytest.mark.parametrize("sigma", ["0.5", 1, 2, 5])
def test_blur_is_a_gaussian_mean(sigma):
    smooth = np.stack(
        [gaussian_filter(IMAGE[:, :, k].astype(float), float(sigma), mode="nearest") for k in range(3)],
        axis=2,
    )
    assert np.abs(released(Blur(sigma=sigma)) - smooth).max() <= 1.6


@pytest.mark.parametrize("block", [1, 2, 5, 16, 100])
def test_mosaic_shows_exact_means(block):
    out = released(Mosaic(block=block))
    for top in range(0, 23, block):
        for left in range(0, 31, block):
            cell = (slice(top, top + block), slice(left, left + block))
            area = IMAGE[cell].shape[0] * IMAGE[cell].shape[1]
            means = (2 * IMAGE[cell].sum(axis=(0, 1), dtype=int) + area) // (2 * area)
            assert (out[cell] == means).all()


def test_fill_reads_no_pixel():
    for level in (0, 127, 255):
        assert (released(Fill(level=level)) == level).all()
        assert np.array_equal(released(Fill(level=level)), released(Fill(level=level), 255 - IMAGE))
    assert (released(Fill()) == 0).all()


def test_a_black_bar_may_be_published_and_costs_nothing(tmp_path):
    release = dpveil.obfuscate(IMAGE, "fill", regions="2,2,16,16")
    assert str(release.certificate.composition) == "0-DP, any-image"
    assert (release.certificate.strength, release.certificate.publishable) == ("strong", True)
    image, _ = release.save(tmp_path / "a.png")
    assert dpveil.verify(image).publishable


def test_the_original_at_a_huge_budget_may_not():
    release = dpveil.obfuscate(IMAGE, "dp-pix", epsilon=10**6, block=1, neighbourhood=1)
    assert np.array_equal(release.image, IMAGE)
    assert (release.certificate.strength, release.certificate.publishable) == ("practically none", False)


@pytest.mark.parametrize("level", [-1, 256, 1.5, "black", True, None])
def test_levels_that_are_none_are_refused(level):
    with pytest.raises(InvalidParameter) as refusal:
        Fill(level=level)
    assert refusal.value.name == "level"


@pytest.mark.parametrize("sigma", [0, -1, 10_000, "wide", None])
def test_blurs_that_are_none_are_refused(sigma):
    with pytest.raises(InvalidParameter):
        Blur(sigma=sigma)


def test_a_mosaic_says_how_large():
    with pytest.raises(InvalidParameter, match="missing"):
        Mosaic()


@pytest.mark.parametrize("method", HEURISTICS, ids=lambda method: method.name)
def test_a_heuristic_is_never_for_publication(method, tmp_path, capsys):
    release = dpveil.obfuscate(IMAGE, method, regions="2,2,16,16")
    certificate = release.certificate
    assert certificate.bits == "secure"
    assert not certificate.publishable
    assert HEURISTIC in certificate.warnings
    (guarantee,) = certificate.guarantees
    assert guarantee.kind == certificate.composition.kind == "heuristic"
    assert len(guarantee.broken_by) >= 2
    release.save(tmp_path / "out.png")
    found = dpveil.verify(tmp_path / "out.png")
    assert (found.status, found.publishable) == ("consistent", False)
    assert run(["verify", str(tmp_path / "out.png")]) == 0
    assert "NO FORMAL GUARANTEE" in capsys.readouterr().out
    path = tmp_path / "out.png.certificate.json"
    text = path.read_text(encoding="utf-8")
    assert json.loads(text)["publishable"] is False
    path.write_text(text.replace('"publishable": false', '"publishable": true'), encoding="utf-8")
    assert dpveil.verify(tmp_path / "out.png").status == "inconsistent"


def test_with_anything_else_it_stays_heuristic():
    size = {"height": 8, "width": 8, "channels": 1}
    parts = [DPPix(epsilon=1).guarantee(**size), *(method.guarantee(**size) for method in BASELINES)]
    total = compose(parts)
    assert total.kind == "heuristic"
    assert set(total.broken_by) == {words for method in BASELINES for words in method.broken_by}


@pytest.mark.parametrize("rate", ["0.02", "0.001"])
def test_a_large_delta_is_told_loudly(rate, tmp_path, capsys):
    method = DPSamp(epsilon=1, clusters=4, neighbourhood=3, private_clusters=True, rate=rate)
    release = dpveil.obfuscate(IMAGE, method)
    release.save(tmp_path / "out.png")
    loud = rate == "0.02"
    told = [text for text in release.certificate.warnings if "NOTHING IS PROMISED" in text]
    assert told == (["WITH PROBABILITY 0.058808 NOTHING IS PROMISED (delta)"] if loud else [])
    assert release.certificate.publishable
    assert ("NOTHING IS PROMISED" in explain(method, height=9, width=9).sentence) == loud
    assert dpveil.verify(tmp_path / "out.png").publishable
    assert run(["verify", str(tmp_path / "out.png")]) == 0
    assert ("WITH PROBABILITY" in capsys.readouterr().out) == loud


# Snow: every pixel its own colour or grey, all channels together, by a law written a second time.


GREY = 127


def law(image, delta):
    """Return the chance of every output of a tiny image: all patterns of shown and grey pixels."""
    pixels = image.reshape(-1, image.shape[2])
    chances: dict[bytes, Fraction] = {}
    for shown in product((True, False), repeat=len(pixels)):
        out = np.where(np.array(shown)[:, None], pixels, GREY).astype(np.uint8).tobytes()
        chance = delta ** sum(shown) * (1 - delta) ** (len(shown) - sum(shown))
        chances[out] = chances.get(out, Fraction(0)) + chance
    return chances


def divergence(first, second):
    """Return the hockey-stick divergence at ε = 0, exactly."""
    return sum(max(Fraction(0), chance - second.get(out, Fraction(0))) for out, chance in first.items())


def test_errata_snow_a_subset_of_fixed_size_costs_more_for_two_pixels():
    """Algorithm 4 over all subsets of 2 of 4 pixels: δ = 1/2 for one pixel as here, but 5/6 for two."""
    image, delta = np.array([[[1], [2], [3], [4]]], np.uint8), Fraction(1, 2)

    def published(pixels):
        subsets = [*combinations(range(4), 2)]
        outs = [np.where(np.isin(np.arange(4), kept), pixels[0, :, 0], GREY).tobytes() for kept in subsets]
        return {out: Fraction(outs.count(out), len(outs)) for out in outs}

    for m, costs in ((1, Fraction(1, 2)), (2, Fraction(5, 6))):
        other = image.copy()
        other[0, :m] = 9
        assert divergence(published(image), published(other)) == costs
        assert divergence(law(image, delta), law(other, delta)) == 1 - (1 - delta) ** m


def test_channels_stay_together_and_colours_stay_as_they_are():
    image = (np.arange(60 * 50 * 3) % 120).astype(np.uint8).reshape(60, 50, 3)
    out = Snow(delta="0.4").release(image, bits=SeededBits(2))
    grey, own = np.all(out == GREY, axis=2), np.all(out == image, axis=2)
    assert np.all(grey ^ own)
    assert 0.3 < own.mean() < 0.5  # 3 000 pixels: beyond by chance with probability below 1e-9


@pytest.mark.parametrize("channels", [1, 3])
def test_bands_meet_without_a_seam(channels):
    image = np.full((2, BAND - 7, channels), 9, np.uint8)
    out = Snow(delta="0.5").release(image, bits=SeededBits(4))
    assert set(np.unique(out)) == {9, GREY}
    assert np.array_equal(out[..., 0], out[..., -1])
    assert abs(np.mean(out == 9) - 0.5) < 0.01  # over 17 deviations


def test_the_error_is_that_of_the_levels():
    image = np.arange(256, dtype=np.uint8).repeat(400).reshape(-1, 1)
    out = Snow(delta="0.25").release(image, bits=SeededBits(5)).astype(float)
    error = np.sqrt(np.mean((out - image) ** 2))
    assert error == pytest.approx(Snow(delta="0.25").noise_scale(height=1, width=1, channels=1), rel=0.02)


@pytest.mark.parametrize("delta", [0, 1, -0.1, 1.5, "nan", "much", True, None])
def test_what_is_no_probability_is_refused(delta):
    with pytest.raises(InvalidParameter) as refusal:
        Snow(delta=delta)
    assert refusal.value.name == "delta"
    assert refusal.value.hint


def test_a_missing_delta_says_what_it_means_here():
    with pytest.raises(InvalidParameter, match="share of pixels that are shown"):
        Snow()


def test_gaussian_release_has_the_stated_spread():
    """Sample standard deviation of 30 000 draws within 7 standard errors: fails by chance below 1e-11."""
    image = np.full((100, 100, 3), 128, np.uint8)
    method = DPPixGaussian(rho=200, neighbourhood=1)
    sigma = method.noise_scale(height=100, width=100, channels=3)
    assert 15 < sigma < 30  # clamping at 0 and 255 plays no part
    spread = method.release(image, bits=SeededBits(2)).astype(float).std()
    assert abs(spread / sigma - 1) < 7 / math.sqrt(2 * 30_000)


def test_a_better_accountant_is_not_a_different_law():
    """The release with δ is the same sums plus noise of the stated scale: of 30 000 draws, the part that is
    not clamped is within 7 standard errors, which fails by chance below 1e-11.
    """
    image = np.full((100, 100, 3), 128, np.uint8)
    method = DPPix(epsilon=60, delta="1e-6", neighbourhood=4)
    scale = float(method.sum_scale(height=100, width=100, channels=3))
    levels = method.release(image, bits=SeededBits(1)).astype(int)
    q = math.exp(-1 / scale)
    inside = (np.abs(levels - 128) <= 100).mean()
    expected = 1 - 2 * q**101 / (1 + q)
    assert 0.2 < expected < 0.99
    assert abs(inside - expected) < 7 * math.sqrt(0.25 / 30_000)
