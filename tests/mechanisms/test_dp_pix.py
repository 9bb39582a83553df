"""DP-Pix and its cells: exact sums against loops, large blocks, and what is left when the noise is gone."""

import json
from fractions import Fraction
from itertools import combinations, product

import numpy as np
import pytest
from scipy.ndimage import gaussian_filter

import dpveil
from dpveil.accounting import compose, laplace_epsilon, zcdp_delta
from dpveil.catalogue import options
from dpveil.cli import compare, run
from dpveil.core.registry import PIXEL
from dpveil.errors import InvalidParameter, NoiseError
from dpveil.mechanisms.pixel import Blur, DPPix, DPPixGaussian, DPSamp, Fill, Mosaic, Snow
from dpveil.mechanisms.pixel.base import cell_areas, cell_sums, fullest_cells
from dpveil.mechanisms.pixel.common_practice import BAND
from dpveil.noise.bits import SeededBits
from dpveil.release.explain import explain
from dpveil.release.words import HEURISTIC

SILENT = 10**9


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
    with pytest.raises(NoiseError):
        DPPix(epsilon="1e-12").release(np.zeros((100, 100), np.uint8), bits=SeededBits(5))


@pytest.mark.parametrize("name", [name for name, kind in PIXEL.items() if "neighbourhood" in options(kind)])
def test_all_is_a_neighbourhood_in_python_too(name):
    given = {"epsilon": 1, "block": 8}
    made = compare._built(name, given | {"neighbourhood": "all"})
    assert made == compare._built(name, given)
    assert made.parameters()["neighbourhood"] is None
    with pytest.raises(InvalidParameter, match="not a whole number of pixels: a whole number, or all"):
        compare._built(name, given | {"neighbourhood": "every"})


# DP-Pix under zCDP and (ε, δ): sensitivities against every neighbour of tiny images, and known numbers.


FACE = {"height": 88, "width": 120, "channels": 3}


def test_epsilon_and_delta_take_the_largest_rho_that_the_conversion_accepts():
    method = DPPixGaussian(epsilon=20, delta="1e-6", block=16)
    variance = method.sum_variance(**FACE)
    rho = DPPixGaussian(rho=1, block=16).sum_variance(**FACE) / variance
    assert zcdp_delta(rho, 20) <= Fraction(1, 10**6) < zcdp_delta(rho * Fraction(1001, 1000), 20)
    guarantee = method.guarantee(**FACE)
    assert (guarantee.kind, guarantee.epsilon, guarantee.delta) == ("approximate", 20, Fraction(1, 10**6))
    zcdp = DPPixGaussian(rho="0.5", block=16).guarantee(**FACE)
    assert (zcdp.kind, zcdp.rho, zcdp.epsilon, zcdp.delta) == ("zcdp", Fraction(1, 2), None, None)
    with pytest.raises(NoiseError):
        DPPixGaussian(rho="1e-12", block=4096).prepare(height=8192, width=8192, channels=3)


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
    assert (released(Fill()) == 127).all()


REFUSED = [(Fill, "level", value) for value in (-1, 256, 1.5, "black", True, None)]
REFUSED += [(Blur, "sigma", value) for value in (0, -1, 10_000, "wide", None)]
REFUSED += [(Snow, "delta", value) for value in (0, 1, -0.1, 1.5, "nan", "much", True, None)]
REFUSED += [
    (kind, "delta", v) for kind in (DPPix, DPPixGaussian) for v in (0, 1, -0.1, 1.5, "nan", "x", True)
]


def test_parameters_that_are_none_are_refused_by_name():
    for kind, name, value in REFUSED:
        with pytest.raises(InvalidParameter) as refusal:
            kind(**{"epsilon": 1} if kind in (DPPix, DPPixGaussian) else {}, **{name: value})
        assert refusal.value.name == name, (kind, value)
        assert kind is not Snow or refusal.value.hint
    for kind, name in ((Mosaic, "block"), (Snow, "delta")):
        with pytest.raises(InvalidParameter) as refusal:
            kind()
        assert refusal.value.name == name


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
