"""Blur and mosaic promise nothing; a fill shows nothing, and promises that."""

import json

import numpy as np
import pytest
from scipy.ndimage import gaussian_filter

import dpveil
from dpveil.accounting import compose
from dpveil.cli import run
from dpveil.errors import InvalidParameter
from dpveil.mechanisms.pixel import Blur, DPPix, DPSamp, Fill, Mosaic
from dpveil.noise.bits import SeededBits
from dpveil.release.explain import explain
from dpveil.release.words import HEURISTIC

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


@pytest.mark.parametrize("method", HEURISTICS, ids=lambda method: method.name)
def test_explain_says_that_nothing_is_promised(method):
    found = explain(method, height=64, width=64)
    assert found.sentence.startswith("No formal guarantee")
    assert (found.noise_scale, found.odds, found.same_noise) == (None, None, ())
    assert set(found.success_bound.values()) == {1.0}
    assert all(need.budget is None and need.neighbourhood is None for need in found.needs)
    json.dumps(found.to_json(), allow_nan=False)


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


def test_explain_states_needs_without_noise():
    """With a small enough delta another epsilon helps, and no neighbourhood is said to fit "this noise"."""
    method = DPSamp(epsilon=5, clusters=4, neighbourhood=1, private_clusters=True, rate="1e-6")
    needs = {need.strength: need for need in explain(method, height=64, width=64).needs}
    assert needs["strong"].budget == {"epsilon": 1.09}
    assert (needs["strong"].noise_scale, needs["strong"].neighbourhood) == (None, None)
