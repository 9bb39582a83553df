"""The codec of known people, whose generator is linear here, so that what it should do is known."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from made_faces import faces
from made_upconv import CANVAS, COUNT, EMBEDDED, PEOPLE, SIDE, made, people
from printed_deviations import printed

from dpveil.assets.trained_files import save
from dpveil.codecs import UpConv, load
from dpveil.codecs.upconv import embed_crops
from dpveil.errors import ModelError
from dpveil.faces import Latent
from dpveil.noise.bits import SeededBits
from tiny_onnx import decoder


def others(count: int = 5) -> np.ndarray:
    return faces(count, seed=2, canvas=CANVAS)


def mixed(weights: np.ndarray) -> np.ndarray:
    """Return the mean picture of the people with these weights: nobody in training."""
    return np.rint(np.einsum("np,phwc->nhwc", weights, people())).astype(np.uint8)


WEIGHTS = np.zeros((2, PEOPLE))
WEIGHTS[0, :3] = 0.5, 0.3, 0.2
WEIGHTS[1, 5:9] = 0.1, 0.2, 0.3, 0.4


# People in training, and others


def test_the_identity_layer_is_a_leaky_relu() -> None:
    codec = made()
    last = codec.identities[:, -1]
    assert (last < 0).any()
    assert np.allclose(codec.encode(people())[:, -1], np.where(last > 0, last, 0.2 * last), atol=1e-4)


def test_others_are_mixtures_of_the_people_that_they_are_like() -> None:
    codec = made()
    codes = codec.encode(mixed(WEIGHTS))
    wanted = codec.codes_of(WEIGHTS @ codec.identities)
    spread = codec.statistics.bounds().width
    assert (np.abs(codes - wanted) < 0.15 * spread).all()
    far = np.abs(codec.codes_of(codec.identities) - wanted[:, None]).sum(axis=2)
    assert (np.abs(codes - wanted).sum(axis=1) < 0.3 * far.min(axis=1)).all()


def test_errata_e3_with_the_printed_sign_others_become_somebody_else() -> None:
    codec, crops = made(), mixed(WEIGHTS)
    seen = embed_crops(crops, codec.mean, codec.axes)
    wrong = np.stack([printed(one, codec.gallery.astype(np.float64), 0) for one in seen])
    wanted = codec.codes_of(WEIGHTS @ codec.identities)
    ours, published = (
        np.abs(codes - wanted).sum(axis=1)
        for codes in (codec.encode(crops), codec.codes_of(wrong @ codec.identities))
    )
    assert (published > 5 * ours).all()


def test_private_codes_become_likely_ones_of_the_people_in_training() -> None:
    """At a budget of nearly 0 they have the moments of public codes, but for what the box cuts off."""
    codec = made()
    public = codec.codes_of(codec.identities.astype(np.float64))
    assert np.allclose(codec.prior.means[0], public.mean(axis=0))
    assert np.allclose(codec.prior.variances[0], public.var(axis=0), atol=1e-8)
    method = Latent(epsilon="0.001", codec=codec)
    codes, _ = method._released(np.repeat(others(1), 600, axis=0), SeededBits(2))
    assert (np.abs(codes.mean(axis=0) - public.mean(axis=0)) < 0.5 * public.std(axis=0)).all()
    narrower = codes.std(axis=0) / public.std(axis=0)
    assert narrower.min() > 0.6
    assert narrower.max() < 1.1
    width = codec.statistics.bounds().width
    assert (codes.std(axis=0) < 0.28 * width).all()  # uniform ones have 0.289 of it


# What a picture is a function of


def test_no_picture_of_a_batch_changes_another() -> None:
    codec, crops = made(), others()
    alone = np.concatenate([codec.encode(crop[None]) for crop in crops])
    assert (codec.encode(crops) == alone).all()
    assert (codec.encode(crops[::-1])[::-1] == alone).all()
    shown = np.concatenate([codec.decode(code[None]) for code in alone])
    assert (codec.decode(alone) == shown).all()
    assert codec.encode(crops[:0]).shape == (0, COUNT)
    assert codec.decode(alone[:0]).shape == (0, *CANVAS)


def release(codec: UpConv, crops: np.ndarray, method: Any = None) -> np.ndarray:
    """Return what a method shows of two crops, each released with the same code after noise."""
    method = method or Latent(epsilon=5, codec=codec)
    return np.concatenate([method.release(crop[None], bits=SeededBits(4)) for crop in crops])


# Gender and expression


def test_a_code_is_rendered_with_gender_and_expression() -> None:
    codec, codes = made(), made().encode(others())
    plain = codec.decode(codes)
    assert (codec.render(codes) == plain).all()
    smiling, woman, man = (
        codec.render(codes, **x) for x in ({"expression": 1}, {"gender": 1}, {"gender": -1})
    )
    middle = SIDE // 2
    assert (smiling[:, 0, middle] > plain[:, 0, middle]).any()
    assert (smiling[:, 1:] == plain[:, 1:]).all()
    assert (woman[:, -1, middle].astype(int) - man[:, -1, middle]).max() in (25, 26)
    far = codes + 1e6
    assert (codec.render(far) == codec.decode(far)).all()


# The file


def test_survives_its_file_exactly(tmp_path: Path) -> None:
    codec, path = made(), tmp_path / "upconv.safetensors"
    digest = save(codec, path)
    again = load(path, expected=digest)
    crops = others()
    assert (again.encode(crops) == codec.encode(crops)).all()
    assert (again.decode(codec.encode(crops)) == codec.decode(codec.encode(crops))).all()
    assert again.length == COUNT
    assert "known people" in path.with_suffix(".card.md").read_text(encoding="utf-8")
    assert json.dumps(again.facts())


def test_release_with_noise_on_the_identity_layer() -> None:
    method = Latent(epsilon=400, mechanism="croft-metric", metric="box-mean", codec=made())
    out = method.release(others(3), bits=SeededBits(1))
    assert out.shape == (3, *CANVAS)


def weights(count: int = COUNT) -> np.ndarray:
    return np.zeros((count, 3, SIDE, SIDE), np.float32)


@pytest.mark.parametrize(
    "change",
    [
        {"decoder": decoder(weights(COUNT + 3), np.zeros((3, SIDE, SIDE)))},
        {"decoder": decoder(weights(COUNT + 2), np.full((3, SIDE, SIDE), 9.0))},
        {"decoder": decoder(weights(COUNT + 2), np.full((3, SIDE, SIDE), np.nan))},
        {"gallery": np.zeros((PEOPLE, EMBEDDED + 1), np.float32)},
        {"mean": np.zeros(5, np.float32)},
    ],
)
def test_files_of_something_else_are_refused(change: dict[str, object]) -> None:
    codec = made()
    tensors = codec.tensors()
    for name, value in change.items():
        tensors[name] = np.frombuffer(value, np.uint8) if isinstance(value, bytes) else value
    with pytest.raises(ModelError):
        type(codec).of_file(codec.facts(), tensors, codec.card)


def breaches(codec: UpConv, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return which of the rules of soundness a codec breaks; `made` and mutants of it are given."""
    found, crops = [], others(2)
    low, high = made().statistics.quantiles[:, 0]
    method = Latent(epsilon=5, codec=codec)
    noised = (low + high)[None] / 2
    with monkeypatch.context() as patch:
        patch.setattr(type(method._own), "release", lambda *_, **__: noised)
        one, two = release(codec, crops, method)
        if (one != two).any():
            found.append("a picture is not a function of its code")
        if (codec.decode(noised + 1e6) != made().decode(high[None])).any():
            found.append("a code is not clipped to the public box after noise")
    box = codec.statistics.bounds()
    if (box.low != low).any() or (box.high != high).any():
        found.append("bounds are not those of the training codes")
    return found


def test_equal_noised_codes_give_equal_pictures_within_public_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    assert breaches(made(), monkeypatch) == []
