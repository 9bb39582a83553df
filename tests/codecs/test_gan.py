"""The codec of two networks, made linear here, so that what it should do is known."""

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
from dpveil.codecs import load
from dpveil.errors import InvalidParameter, ModelError
from dpveil.faces import Latent
from dpveil.metrics import psnr
from dpveil.noise.bits import SeededBits
from tiny_onnx import decoder, encoder


def others(count: int = 5) -> np.ndarray:
    return faces(count, seed=2, canvas=CANVAS)


def test_shapes_types_and_what_is_kept() -> None:
    codec, crops = made(), others(20)
    codes = codec.encode(crops)
    assert codes.shape == (20, COUNT)
    assert codes.dtype == np.float64
    seen = codec.decode(codes)
    assert seen.shape == crops.shape
    assert seen.dtype == np.uint8
    inside = ~beyond()
    assert (
        np.mean([psnr(a[inside], b[inside], data_range=255) for a, b in zip(crops, seen, strict=True)]) > 30
    )
    assert codec.encode(crops[:0]).shape == (0, COUNT)
    assert codec.decode(codes[:0]).shape == (0, *CANVAS)


def test_beyond_the_public_ellipse_nothing_is_read_or_drawn() -> None:
    codec, crops = made(), others()
    changed = np.where(beyond()[..., None], 255 - crops, crops)
    assert (codec.encode(changed) == codec.encode(crops)).all()
    assert (codec.decode(codec.encode(crops))[:, beyond()] == 128).all()
    inside = np.where(beyond()[..., None], crops, 255 - crops)
    assert (codec.encode(inside) != codec.encode(crops)).any(axis=1).all()


def test_no_picture_of_a_batch_changes_another() -> None:
    codec, crops = made(), others()
    alone = np.concatenate([codec.encode(crop[None]) for crop in crops])
    assert (codec.encode(crops) == alone).all()
    assert (codec.encode(crops[::-1])[::-1] == alone).all()
    shown = np.concatenate([codec.decode(code[None]) for code in alone])
    assert (codec.decode(alone) == shown).all()


def test_two_photos_with_equal_noised_codes_give_the_same_faces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Bit for bit: no path leads around the noised code."""
    codec, crops = made(), others(2)
    noised = np.linspace(-1, 1, COUNT)[None] * codec.statistics.deviations
    method = Latent(epsilon=5, codec=codec)
    monkeypatch.setattr(type(method._own), "release", lambda *_, **__: noised)
    one, two = (method.release(crop[None], bits=SeededBits(4)) for crop in crops)
    assert (one == two).all()


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
    "given", [{"yaw": 1.3}, {"gender": -1.1}, {"pitch": float("nan")}, {"yaw": float("inf")}]
)
def test_conditions_out_of_range_are_refused(given: dict[str, float]) -> None:
    with pytest.raises(InvalidParameter, match=next(iter(given))) as refused:
        made().render(np.zeros((1, COUNT)), **given)
    assert refused.value.hint


def test_codes_of_another_length_are_not_rendered() -> None:
    with pytest.raises(InvalidParameter, match="codes"):
        made().render(np.zeros((1, COUNT + 1)))


def test_survives_its_file_exactly(tmp_path: Path) -> None:
    codec, path = made(), tmp_path / "gan.safetensors"
    digest = save(codec, path)
    again = load(path, expected=digest)
    crops = others()
    assert (again.encode(crops) == codec.encode(crops)).all()
    assert (again.decode(codec.encode(crops)) == codec.decode(codec.encode(crops))).all()
    assert again.length == COUNT
    assert "encoder" in path.with_suffix(".card.md").read_text(encoding="utf-8")
    assert json.dumps(again.facts())


def test_release_with_a_principal_component_mechanism() -> None:
    """Its coordinates are principal components, so `pca-basis` takes them."""
    method = Latent(epsilon=400, mechanism="pca-basis", metric="leading-mean", codec=made())
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
        ({"decoder": decoder(weights(COUNT + 3), np.full((3, SIDE, SIDE), 9.0))}, "far off"),
        ({"decoder": decoder(weights(COUNT + 3), np.full((3, SIDE, SIDE), np.nan))}, "not finite"),
        ({"encoder": encoder(weights() + np.inf, np.zeros(COUNT))}, "not finite"),
        ({"mean": np.zeros(COUNT + 1, np.float32)}, "does not fit"),
        ({"basis": np.zeros((0, COUNT), np.float32)}, "fit"),
        ({"basis": 2 * np.eye(COUNT, dtype=np.float32)}, "not orthonormal"),
        ({"basis": np.full((COUNT, COUNT), np.nan, np.float32)}, "not finite"),
        ({"energy": np.zeros(COUNT)}, "above 0"),
        ({"energy": np.ones(COUNT - 1)}, "fit"),
    ],
)
def test_files_of_something_else_are_refused(change: dict[str, object], match: str) -> None:
    codec = made()
    tensors = codec.tensors()
    for name, value in change.items():
        tensors[name] = np.frombuffer(value, np.uint8) if isinstance(value, bytes) else value
    with pytest.raises(ModelError, match=match):
        type(codec).of_file(codec.facts(), tensors, codec.card)


@pytest.mark.parametrize("canvas", [[20, 21, 3], [20, 20, 1], [4, 4, 3], [1024, 1024, 3]])
def test_canvases_that_are_no_squares_in_colour_are_refused(canvas: list[int]) -> None:
    codec = made()
    with pytest.raises(ModelError, match="square"):
        type(codec).of_file({"canvas": canvas}, codec.tensors(), codec.card)


def test_a_network_that_fails_at_a_release_gives_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    codec = replace(made())
    monkeypatch.setattr(
        Network, "__call__", lambda *_: (_ for _ in ()).throw(ModelError("the network gives nothing"))
    )
    with pytest.raises(ModelError, match="gives nothing"):
        Latent(epsilon=50, codec=codec).release(others(1), bits=SeededBits(1))


@pytest.mark.parametrize("known", [True, False])
def test_faces_without_a_pose_are_turned_to_the_yaw_of_their_cells(known: bool) -> None:
    """Those of eigenfaces have the pose of the code, and stay as they are."""
    own = Latent(epsilon=5, codec=made() if known else f"gan {COUNT} sha256:" + 64 * "0")
    assert own.turned
    assert not Latent(epsilon=5, codec="pca 100 sha256:" + 64 * "0").turned
