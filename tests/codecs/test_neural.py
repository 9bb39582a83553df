"""What codecs of an encoder and a decoder network share; networks here are linear, so that it is known."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from made_faces import faces
from made_gan import CANVAS, COUNT, SIDE, beyond, made

from dpveil.assets import save
from dpveil.assets.network import Network
from dpveil.codecs import GAN, StyleGAN, load
from dpveil.codecs.neural import EncoderDecoder
from dpveil.codecs.statistics import Statistics
from dpveil.errors import ModelError
from dpveil.faces import Latent
from dpveil.noise.bits import SeededBits
from tiny_onnx import decoder, encoder


@pytest.fixture(params=[GAN, StyleGAN], ids=lambda kind: kind.name)
def codec(request: pytest.FixtureRequest) -> EncoderDecoder:
    return made(request.param)


def others(count: int = 5) -> np.ndarray:
    return faces(count, seed=2, canvas=CANVAS)


def test_beyond_the_public_ellipse_nothing_is_read_or_drawn(codec: EncoderDecoder) -> None:
    crops = others()
    changed = np.where(beyond()[..., None], 255 - crops, crops)
    assert (codec.encode(changed) == codec.encode(crops)).all()
    assert (codec.decode(codec.encode(crops))[:, beyond()] == 128).all()
    inside = np.where(beyond()[..., None], crops, 255 - crops)
    assert (codec.encode(inside) != codec.encode(crops)).any(axis=1).all()


def test_no_picture_of_a_batch_changes_another(codec: EncoderDecoder) -> None:
    crops = others()
    alone = np.concatenate([codec.encode(crop[None]) for crop in crops])
    assert (codec.encode(crops) == alone).all()
    assert (codec.encode(crops[::-1])[::-1] == alone).all()
    shown = np.concatenate([codec.decode(code[None]) for code in alone])
    assert (codec.decode(alone) == shown).all()


def test_two_photos_with_equal_noised_codes_give_the_same_faces(
    codec: EncoderDecoder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Bit for bit: no path leads around the noised code."""
    crops = others(2)
    noised = np.linspace(-1, 1, COUNT)[None] * codec.statistics.deviations
    method = Latent(epsilon=5, codec=codec)
    monkeypatch.setattr(type(method._own), "release", lambda *_, **__: noised)
    one, two = (method.release(crop[None], bits=SeededBits(4)) for crop in crops)
    assert (one == two).all()


def test_bounds_are_the_public_ones_whatever_is_encoded(
    codec: EncoderDecoder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Bounds that followed the input would tell of it: a black crop and a face get the same box and noise."""
    method, told = Latent(epsilon=5, codec=codec), []

    def release(codes: np.ndarray, space: Statistics, **_: object) -> np.ndarray:
        told.append(space)
        return codes

    monkeypatch.setattr(type(method._own), "release", staticmethod(release))
    for crops in (others(1), np.zeros((1, *CANVAS), np.uint8)):
        method.release(crops, bits=SeededBits(1))
    assert told[0] is told[1] is codec.statistics
    far = codec.decode(np.full((1, COUNT), 1e9))
    assert (far == codec.decode(codec.statistics.bounds(0).high[None])).all()


def test_survives_its_file_exactly(codec: EncoderDecoder, tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    digest = save(codec, path)
    again = load(path, expected=digest)
    crops = others()
    assert (again.encode(crops) == codec.encode(crops)).all()
    assert (again.decode(codec.encode(crops)) == codec.decode(codec.encode(crops))).all()
    assert again.length == COUNT
    assert "encoder" in path.with_suffix(".card.md").read_text(encoding="utf-8")
    assert json.dumps(again.facts())


def test_release_with_a_principal_component_mechanism(codec: EncoderDecoder) -> None:
    """Its coordinates are principal components, so `pca-basis` takes them."""
    method = Latent(epsilon=400, mechanism="pca-basis", metric="leading-mean", codec=codec)
    out = method.release(others(3), bits=SeededBits(1))
    assert out.shape == (3, *CANVAS)


def weights(count: int = COUNT) -> np.ndarray:
    return np.zeros((count, 3, SIDE, SIDE), np.float32)


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"encoder": encoder(weights(COUNT + 1), np.zeros(COUNT + 1))}, "encodes faces"),
        ({"decoder": encoder(weights(), np.zeros(COUNT))}, "decodes faces"),
        ({"decoder": b"no network"}, "decodes faces"),
        ({"decoder": 9.0}, "far off"),
        ({"decoder": np.nan}, "not finite"),
        ({"encoder": encoder(weights() + np.inf, np.zeros(COUNT))}, "not finite"),
        ({"mean": np.zeros(COUNT + 1, np.float32)}, "does not fit"),
        ({"basis": np.zeros((0, COUNT), np.float32)}, "fit"),
        ({"basis": 2 * np.eye(COUNT, dtype=np.float32)}, "not orthonormal"),
        ({"basis": np.full((COUNT, COUNT), np.nan, np.float32)}, "not finite"),
        ({"energy": np.zeros(COUNT)}, "above 0"),
        ({"energy": np.ones(COUNT - 1)}, "fit"),
    ],
)
def test_files_of_something_else_are_refused(
    codec: EncoderDecoder, change: dict[str, object], match: str
) -> None:
    tensors = codec.tensors()
    for name, value in change.items():
        if isinstance(value, float):
            rows = weights(COUNT + len(codec.conditions))
            value = decoder(rows, np.full((3, SIDE, SIDE), value))
        tensors[name] = np.frombuffer(value, np.uint8) if isinstance(value, bytes) else value
    with pytest.raises(ModelError, match=match):
        type(codec).of_file(codec.facts(), tensors, codec.card)


@pytest.mark.parametrize("canvas", [[20, 21, 3], [20, 20, 1], [4, 4, 3], [1024, 1024, 3]])
def test_canvases_that_are_no_squares_in_colour_are_refused(codec: EncoderDecoder, canvas: list[int]) -> None:
    with pytest.raises(ModelError, match="square"):
        type(codec).of_file({"canvas": canvas}, codec.tensors(), codec.card)


def test_a_network_that_fails_at_a_release_gives_nothing(
    codec: EncoderDecoder, monkeypatch: pytest.MonkeyPatch
) -> None:
    codec = replace(codec)
    monkeypatch.setattr(
        Network, "__call__", lambda *_: (_ for _ in ()).throw(ModelError("the network gives nothing"))
    )
    with pytest.raises(ModelError, match="gives nothing"):
        Latent(epsilon=50, codec=codec).release(others(1), bits=SeededBits(1))


def test_whether_there_is_a_release_depends_on_no_face() -> None:
    """An encoder of huge weights gives infinities for some pictures: they count as the mean code."""
    huge = np.zeros((COUNT, 3, SIDE, SIDE), np.float32)
    huge[:, :, 10, 10] = 3e38
    contents = encoder(huge, np.zeros(COUNT))
    encoder_, _ = GAN.networks(
        np.frombuffer(contents, np.uint8), np.frombuffer(made().decoder.contents, np.uint8), SIDE, COUNT
    )
    codec = replace(made(), encoder=encoder_)
    for level in (0, 128, 255):
        crops = np.full((1, *CANVAS), level, np.uint8)
        assert np.isfinite(codec.encode(crops)).all()
        assert Latent(codec=codec, epsilon=1)._draw(crops, SeededBits(1)).shape == crops.shape


def test_private_codes_are_made_likely_before_they_are_decoded(monkeypatch: pytest.MonkeyPatch) -> None:
    crops, codec = faces(1, seed=4, canvas=CANVAS), made()
    usual = Latent(codec=codec, epsilon=5)._draw(crops, SeededBits(2))
    monkeypatch.setattr("dpveil.faces.latent.likely", lambda codes, *_, bits: np.zeros_like(codes))
    mean = Latent(codec=codec, epsilon=5)._draw(crops, SeededBits(2))
    assert (mean == codec.decode(np.zeros((1, COUNT)))).all()
    assert (mean != usual).any()
