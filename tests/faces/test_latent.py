"""The method `latent`: which mechanism, what it promises, and that nothing but a drawn code comes out."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from facespace_made import SIDE, codec

from dpveil.accounting import compose
from dpveil.assets.trained_files import save
from dpveil.catalogue import build
from dpveil.core.registry import LATENT
from dpveil.errors import InvalidParameter, ModelError, UnsupportedRelation, UsageError
from dpveil.faces import Latent
from dpveil.mechanisms.latent import LatentMechanism
from dpveil.noise.bits import SecureBits, SeededBits

ZEROS = "pca 100 sha256:" + 64 * "0"
SIZE = {"height": 90, "width": 70, "channels": 3}


def crops(count: int = 3) -> np.ndarray:
    return np.random.default_rng(2).integers(0, 256, (count, SIDE, SIDE, 3), np.uint8)


@pytest.mark.parametrize(
    ("given", "mechanism", "promise"),
    [
        ({"epsilon": 5}, "box-truncated-laplace", "5-DP, latent-cell"),
        ({"rho": 2}, "box-gaussian", "2-zCDP, latent-cell"),
        ({"epsilon": 5, "guarantee": "pure"}, "box-truncated-laplace", "5-DP, latent-cell"),
        ({"rho": 2, "guarantee": "zcdp"}, "box-gaussian", "2-zCDP, latent-cell"),
        ({"epsilon": 5, "mechanism": "box-laplace", "guarantee": "pure"}, "box-laplace", "5-DP, latent-cell"),
    ],
)
def test_the_budget_or_the_guarantee_chooses_the_mechanism(given, mechanism, promise) -> None:
    method = build("latent", {**given, "codec": ZEROS})
    assert method.mechanism == mechanism
    assert str(method.guarantee(**SIZE)) == promise


def test_a_metric_guarantee_names_its_metric_and_its_diameter() -> None:
    method = build("latent", {"epsilon": 5, "guarantee": "metric", "metric": "box-mean", "codec": ZEROS})
    promised = method.guarantee(**SIZE)
    assert (promised.kind, promised.epsilon, promised.diameter) == ("metric", 5, 1)
    assert method.mechanism == "croft-metric"
    assert f"codec sha256:{16 * '0'}" in promised.metric  # distances of other codecs never add up
    given = {"guarantee": "metric", "metric": "leading-mean", "ratio": 2, "codec": ZEROS}
    leading = build("latent", {"epsilon": 5, **given})
    assert leading.mechanism == "pca-basis"
    assert leading.guarantee(**SIZE).diameter == 1
    turned = build("latent", {"epsilon": 5, "guarantee": "metric", "metric": "chord", "codec": ZEROS})
    assert turned.guarantee(**SIZE).diameter == 2


@pytest.mark.parametrize(
    ("metric", "change"),
    [
        ("box-mean", {"clip": 10}),
        ("box-mean", {"codec": ZEROS.replace("0" * 64, "1" * 64)}),
        ("chord", {"clip": 10}),
        ("leading-mean", {"epsilon": 60}),
        ("leading-mean", {"ratio": 3}),
    ],
)
def test_distances_that_are_not_the_same_do_not_add_up(metric, change) -> None:
    """With other components, another box or another codec, d of the same two faces is another number."""
    given = {"epsilon": 5, "guarantee": "metric", "metric": metric, "codec": ZEROS}
    one = build("latent", given).guarantee(**SIZE)
    assert compose([one, one]).epsilon == 10
    with pytest.raises(UnsupportedRelation):
        compose([one, build("latent", given | change).guarantee(**SIZE)])


def test_every_mechanism_of_the_table_can_be_chosen_and_draws() -> None:
    for name, mechanism in LATENT.items():
        if mechanism.kind == "metric":
            continue
        budget = {"rho": 50} if mechanism.kind == "zcdp" else {"epsilon": 50}
        method = Latent(**budget, mechanism=name, codec=codec())
        method.prepare(**SIZE)
        out = method.release(crops(), bits=SeededBits(1))
        assert out.shape == crops().shape, name
        assert not np.array_equal(out[0], out[1]), name


def test_released_crops_follow_from_seeded_bits_and_differ_under_secure_ones() -> None:
    method = Latent(epsilon=50, codec=codec())
    one, same = (method.release(crops(), bits=SeededBits(4)) for _ in range(2))
    assert np.array_equal(one, same)
    assert not np.array_equal(one, method.release(crops(), bits=SecureBits()))


@pytest.mark.parametrize("codes", ["snapped", "likely"])
def test_what_comes_out_follows_from_the_draw_and_from_nothing_of_the_crop(monkeypatch, codes) -> None:
    """Where the mechanism gives one code for all, all crops give its picture, or that of its likely code."""
    own = codec()
    drawn = own.statistics.bounds(0).clip(own.encode(crops(1)))
    monkeypatch.setattr(LatentMechanism, "release", lambda self, codes, space, *, bits: drawn)
    method = Latent(epsilon=5, codec=own, codes=codes)
    black, white = (
        method.release(np.full((1, SIDE, SIDE, 3), level, np.uint8), bits=SeededBits(4)) for level in (0, 255)
    )
    assert np.array_equal(black, white)
    assert np.array_equal(black, own.decode(drawn)) == (codes == "snapped")


def test_codes_change_the_picture_and_no_guarantee() -> None:
    """The default is the mechanism's for a decoder network alone; both are certified, and cost the same."""
    for name, mechanism in LATENT.items():
        budget = {"rho": 50} if mechanism.kind == "zcdp" else {"epsilon": 50}
        given = {**budget, "mechanism": name, "metric": mechanism.metric}
        assert Latent(**given, codec=ZEROS).codes == "snapped"
        assert Latent(**given, codec=ZEROS.replace("pca", "gan")).codes == mechanism.codes[0]
        for named in (ZEROS, ZEROS.replace("pca", "gan")):
            every = [build("latent", {**given, "codec": named, "codes": one}) for one in mechanism.codes]
            assert [method.parameters()["codes"] for method in every] == list(mechanism.codes)
            assert len({str(method.guarantee(**SIZE)) for method in every}) == 1
        if mechanism.codes == ("snapped",):
            with pytest.raises(InvalidParameter, match="codes"):
                Latent(**given, codec=ZEROS, codes="likely")
        assert (mechanism.codes == ("snapped",)) == (mechanism.laws is LatentMechanism.laws)


def test_codes_without_a_public_distribution_are_not_made_likely() -> None:
    known = codec()
    plain = replace(known, statistics=replace(known.statistics, deviations=None))
    assert Latent(epsilon=5, codec=plain).codes == "snapped"
    with pytest.raises(InvalidParameter, match="codes"):
        Latent(epsilon=5, codec=plain, codes="likely")


def test_codes_found_otherwise_are_released_as_those_of_the_encoder() -> None:
    own = codec()
    method = Latent(epsilon=50, codec=own)
    again = method.release_codes(own.encode(crops()), bits=SeededBits(4))
    assert np.array_equal(again, method.release(crops(), bits=SeededBits(4)))
    with pytest.raises(InvalidParameter, match="codes"):
        method.release_codes(own.encode(crops())[:, 1:], bits=SeededBits(4))


def test_a_large_budget_gives_the_clipped_code_back() -> None:
    own = codec()
    near = own.decode(own.statistics.bounds(0).clip(own.encode(crops())))
    out = Latent(epsilon="1e8", codec=own).release(crops(), bits=SeededBits(1))
    assert np.abs(out.astype(int) - near).max() <= 1


def test_parameters_name_the_codec_by_its_hash_and_make_the_same_method(tmp_path: Path) -> None:
    digest = save(codec(), tmp_path / "mine.safetensors")
    method = build("latent", {"epsilon": "0.1", "codec": str(tmp_path / "mine.safetensors")})
    written = json.loads(json.dumps(method.parameters()))
    assert written["codec"] == f"pca 8 sha256:{digest}"
    assert "mine" not in json.dumps(written)
    again = build("latent", written)
    assert again == method
    assert again.parameters() == method.parameters()
    assert again.guarantee(**SIZE) == method.guarantee(**SIZE)


def test_a_codec_that_is_only_named_is_asked_for_when_it_is_needed(monkeypatch) -> None:
    monkeypatch.setattr("dpveil.assets.file_reference.default_path", _missing)
    method = Latent(epsilon=5, codec=ZEROS)
    with pytest.raises(ModelError, match="000000000000"):
        method.prepare(**SIZE)
    with pytest.raises(UsageError, match="not installed"):
        Latent(epsilon=5)


def _missing(name: str) -> Path:
    raise UsageError(f"the default {name} of faces is not installed", hint="install it")
