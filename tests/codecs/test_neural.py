"""What codecs of an encoder and a decoder network share; networks here are linear, so that it is known."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from made_faces import faces
from made_gan import CANVAS, COUNT, SIDE, beyond, made
from printed_deviations import printed

from dpveil.assets.networks import Network
from dpveil.assets.trained_files import save
from dpveil.codecs import GAN, StyleGAN, load, upconv
from dpveil.codecs.network_codecs import EncoderDecoder
from dpveil.codecs.statistics import Statistics
from dpveil.codecs.upconv import approximate
from dpveil.errors import DataError, InvalidParameter, ModelError
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


def weights(count: int = COUNT) -> np.ndarray:
    return np.zeros((count, 3, SIDE, SIDE), np.float32)


@pytest.mark.parametrize(
    "change",
    [
        {"encoder": encoder(weights(COUNT + 1), np.zeros(COUNT + 1))},
        {"decoder": encoder(weights(), np.zeros(COUNT))},
        {"decoder": 9.0},  # colours far off
        {"decoder": np.nan},
        {"basis": 2 * np.eye(COUNT, dtype=np.float32)},
    ],
)
def test_files_of_something_else_are_refused(codec: EncoderDecoder, change: dict[str, object]) -> None:
    tensors = codec.tensors()
    for name, value in change.items():
        if isinstance(value, float):
            rows = weights(COUNT + len(codec.conditions))
            value = decoder(rows, np.full((3, SIDE, SIDE), value))
        tensors[name] = np.frombuffer(value, np.uint8) if isinstance(value, bytes) else value
    with pytest.raises(ModelError):
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


# What only the codec `gan` does: rendering in other conditions.


def test_a_code_is_rendered_in_other_conditions() -> None:
    codec, codes = made(), made().encode(others())
    plain = codec.decode(codes)
    assert (codec.render(codes) == plain).all()
    turned, woman, man = (codec.render(codes, **x) for x in ({"yaw": 1.0}, {"gender": 1.0}, {"gender": -1.0}))
    middle = SIDE // 2
    assert (turned[:, 0, middle] >= plain[:, 0, middle]).all()
    assert (turned[:, 0, middle] > plain[:, 0, middle]).any()
    assert (turned[:, 1:] == plain[:, 1:]).all()
    assert (woman[:, -1, middle].astype(int) - man[:, -1, middle]).max() in (25, 26)
    far = codes + 1e6
    assert (codec.render(far) == codec.decode(far)).all()


@pytest.mark.parametrize(
    "given", [{"yaw": 1.3}, {"gender": -2.1}, {"pitch": float("nan")}, {"yaw": float("inf")}]
)
def test_conditions_out_of_range_are_refused(given: dict[str, float]) -> None:
    with pytest.raises(InvalidParameter, match=next(iter(given))) as refused:
        made().render(np.zeros((1, COUNT)), **given)
    assert refused.value.hint


@pytest.mark.parametrize("known", [True, False])
def test_faces_without_a_pose_are_turned_to_the_yaw_of_their_cells(known: bool) -> None:
    """Those of eigenfaces have the pose of the code, and stay as they are."""
    own = Latent(epsilon=5, codec=made() if known else f"gan {COUNT} sha256:" + 64 * "0")
    assert own.turned
    assert not Latent(epsilon=5, codec="pca 100 sha256:" + 64 * "0").turned


# Mixtures of known faces: least absolute deviations, and the sign that the papers print (errata E3).


KNOWN, LONG = 9, 40


def numbers(*shape: int, stream: str = "") -> np.ndarray:
    found: np.ndarray = SeededBits(7, stream).words(int(np.prod(shape))).reshape(shape) / 2.0**63 - 1
    return found


GALLERY = numbers(KNOWN, LONG)
FREE = np.array([1.5, -0.8, 0.25, 0, -2, 0, 1, 0, 0.5])


def test_errata_e3_the_printed_sign_negates_free_weights() -> None:
    assert np.allclose(printed(FREE @ GALLERY, GALLERY, None), -FREE, atol=1e-7)


def test_weights_are_those_of_a_mixture() -> None:
    simplex = approximate(numbers(5, LONG, stream="target"), GALLERY)
    assert np.allclose(simplex.weights.sum(axis=1), 1, atol=1e-12)
    assert simplex.weights.min() >= 0


def test_what_has_no_answer_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    target = numbers(1, LONG, stream="target")
    for wrong in (np.full((1, LONG), np.nan), target[0], target[:0]):
        with pytest.raises(InvalidParameter, match="targets"):
            approximate(wrong, GALLERY)
    with pytest.raises(InvalidParameter, match="gallery"):
        approximate(target, np.full((2, LONG), np.inf))
    with pytest.raises(InvalidParameter, match="do not fit"):
        approximate(target, GALLERY[:, 1:])
    result = type("Result", (), {"status": 4, "message": "trouble", "x": None})
    monkeypatch.setattr(upconv, "linprog", lambda *given, **more: result)
    with pytest.raises(DataError, match="trouble"):
        approximate(target, GALLERY)


SIMPLEX = np.array([0.5, 0.3, 0.2, 0, 0, 0, 0, 0, 0])


def test_errata_e3_on_the_simplex_the_printed_sign_leads_away() -> None:
    target = SIMPLEX @ GALLERY
    wrong = printed(target, GALLERY, 0)
    assert wrong.sum() == pytest.approx(1)
    assert np.abs(wrong - SIMPLEX).sum() > 0.5
    assert np.abs(wrong @ GALLERY - target).sum() > 0.2 * np.abs(target).sum()
    assert np.allclose(approximate(target[None], GALLERY).weights[0], SIMPLEX, atol=1e-7)


def test_optimised_codes_are_nearer_than_the_encoders_and_faces_do_not_mix(monkeypatch) -> None:
    """An encoder that says nothing is made up for; where it is exact, codes stay as near."""
    own, seen = made(), faces(3, seed=9, canvas=(SIDE, SIDE, 3))
    seen[:, beyond()] = 128

    def error(codes: np.ndarray) -> np.ndarray:
        return np.abs(own.decode(codes).astype(float) - seen).mean(axis=(1, 2, 3))

    exact = error(own.encode(seen))
    assert (error(own.optimise(seen)) <= exact + 0.1).all()
    monkeypatch.setattr(type(own), "_encode", lambda self, crops: np.zeros((len(crops), self.length)))
    assert (error(own.encode(seen)) > exact + 1).all()
    found = own.optimise(seen)
    assert (error(found) <= exact + 0.5).all()
    assert np.array_equal(own.optimise(seen[1:2])[0], found[1])
