"""Training of the codec `gan`."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
import torch
from network_made import shard, trainer

from dpveil.assets.model_cards import Card
from dpveil.cli import run
from dpveil.codecs import load
from dpveil.faces import Latent
from dpveil.mechanisms.latent.coordinate_noise import affordable
from dpveil.noise.bits import SeededBits
from dpveil_train.gan import FULL, PLANS, TINY, Basis, Decoder, Encoder, Trainer

PRINTED = {"printed": True, "critic": (8,), "ratio": 1.3, "poses": 30.0, "critic_poses": 3.0}


def test_a_picture_is_a_function_of_code_and_conditions() -> None:
    torch.manual_seed(0)
    decoder = Decoder(TINY)
    given = torch.cat([torch.randn(2, TINY.length), torch.zeros(2, 3)], dim=1)
    with torch.no_grad():
        plain = decoder(given)
        for column in (-3, -2, -1):
            changed = given.clone()
            changed[:, column] = 1
            assert (decoder(changed) - plain).abs().max() > 1e-4
        assert (decoder(-given) - plain).abs().max() > 1e-3


def test_noise_in_training_is_that_of_the_mechanism() -> None:
    """Scale c·width/ε on the first c components, and the mean in the others: to 4 % of 40 000 draws."""
    rng = np.random.default_rng(3)
    spread = np.array([9.0, 5.0, 2.0, 0.02])
    codes = torch.from_numpy((rng.uniform(-1, 1, (500, 4)) * spread).astype(np.float32)) + 3
    basis = Basis.of(codes)
    assert torch.allclose(basis.rows @ basis.rows.T, torch.eye(4), atol=1e-5)
    assert (basis.deviations.diff() < 0).all()
    epsilon, ratio = 60.0, Fraction(str(TINY.ratio))
    width = (basis.high - basis.low).double().numpy()
    kept = affordable(width, basis.deviations.double().numpy(), ratio, Fraction(epsilon))
    assert kept == 4
    middle = basis.mean.repeat(40_000, 1)
    out = basis.noisy(middle, replace(TINY, budgets=(epsilon, epsilon)), torch.Generator().manual_seed(0))
    inside = ((out - basis.mean) @ basis.rows.T).double().numpy()
    assert np.abs(inside).mean(axis=0) == pytest.approx(kept * width / epsilon, rel=0.04)
    few = basis.noisy(middle, replace(TINY, budgets=(3.0, 3.0)), torch.Generator().manual_seed(0))
    count = affordable(width, basis.deviations.double().numpy(), ratio, Fraction(3))
    assert 0 < count < 4
    assert ((few - basis.mean) @ basis.rows.T)[:, count:].abs().max() < 1e-4


def test_a_mirrored_face_looks_the_other_way_and_unknown_poses_do_not_count() -> None:
    faces = trainer("gan").faces
    rows = np.array([1, 7])
    plain, mirrored = (faces.of(rows, torch.tensor([flag, flag])) for flag in (False, True))
    assert torch.equal(mirrored.pictures, plain.pictures.flip(3))
    assert mirrored.conditions[0, 1] == -plain.conditions[0, 1]
    assert mirrored.conditions[0, 0] == plain.conditions[0, 0]
    assert plain.known.tolist() == [True, False]
    assert not set(faces.held_out) & set(faces.rows)


def test_the_exported_codec_is_the_network(tmp_path: Path) -> None:
    made = trainer("gan")
    for _ in range(4):
        made.step()
    codec = made.model(Card("gan", "made by a test", "any", 0))
    seen = made.faces.crops[:5]
    codes = codec.encode(seen)
    with torch.no_grad():
        wanted = made.mean[0](made.faces.of(np.arange(5)).pictures).numpy()
        shown = made.mean[1](torch.from_numpy(np.pad(wanted, ((0, 0), (0, 3))))) * made.faces.mask
    assert np.abs(codes @ codec.basis + codec.mean - wanted).max() < 0.02
    levels = ((shown + 1) * 127.5).round().clamp(0, 255).permute(0, 2, 3, 1).numpy()
    assert np.abs(codec.decode(codes).astype(int) - levels).max() <= 2
    assert (np.diff(codec.statistics.deviations) <= 1e-6).all()
    assert codec.length == TINY.length


def test_the_full_plan_is_the_thesis() -> None:
    """Tables 6.1 and 6.2, at 128 pixels, and the weights of §6.8.2."""
    thin = np.zeros((40, 128, 128, 3), np.uint8), np.zeros((40, 3), np.float32)
    with torch.device("meta"):
        encoder, decoder = Encoder(FULL), Decoder(FULL)
    assert convolutions(encoder) == [
        (64, 3, 4, 4), (128, 64, 4, 4), (256, 128, 4, 4), (512, 256, 4, 4), (1024, 512, 4, 4),
        (1024, 1024, 4, 4), (2048, 1024, 2, 2),
    ]  # fmt: skip
    assert decoder.start.weight.shape == (1024 * 2 * 2, 2048 + 3)
    assert convolutions(decoder, torch.nn.ConvTranspose2d) == [
        (1024, 1024, 4, 4), (1024, 1024, 4, 4), (1024, 512, 4, 4), (512, 256, 4, 4), (256, 128, 4, 4),
        (128, 3, 4, 4),
    ]  # fmt: skip
    for network, count in ((encoder, 7), (decoder, 6)):
        kinds = [type(layer) for layer in network.modules()]
        assert (kinds.count(torch.nn.BatchNorm2d), kinds.count(torch.nn.GroupNorm)) == (count, 0)
    small = Trainer(replace(FULL, length=8, widths=(8,) * 6, critic=(8,) * 5, hidden=16), *thin)
    assert small.judge(alike := torch.rand(1, 3, 128, 128), alike)[1] == 0
    assert [head[0].in_features for head in small.critic.heads] == [8 * 4 * 4] * 3
    assert (FULL.critic, FULL.hidden) == ((64, 128, 256, 512, 1024), 1024)
    assert (FULL.reconstruction, FULL.classes, FULL.critic_poses, FULL.poses) == (200, 1, 3, 30)
    assert (FULL.ratio, FULL.budgets, FULL.features, FULL.batch) == (1.3, (100, 1000), 0, 32)
    assert PLANS["full"] == FULL


def convolutions(network, kind=torch.nn.Conv2d) -> list[tuple[int, ...]]:
    return [tuple(layer.weight.shape) for layer in network.modules() if isinstance(layer, kind)]


def test_poses_of_the_thesis_are_in_deviations_and_near_a_faces_own() -> None:
    """Weighted as printed; the average network has the batch statistics of the network that it follows."""
    made = trainer("gan", **PRINTED)
    known = made.faces.conditions[made.rows, 1:]
    known = known[known.isfinite().all(dim=1)]
    assert torch.allclose(made.unit, known.std(dim=0).clamp(min=1e-6))
    own = made.faces.random(400)
    moved = (made._sample_conditions(own)[:, 1:] - own.conditions[:, 1:]) / made.unit
    assert moved.std(dim=0).tolist() == pytest.approx([1, 1], abs=0.25)  # 7 deviations of 400 draws
    assert trainer("gan").unit.tolist() == [1, 1]
    made.step()
    for mean, now in zip(
        made.mean.buffers(), [*made.encoder.buffers(), *made.decoder.buffers()], strict=True
    ):
        assert torch.equal(mean, now)


def test_the_papers_layout_from_the_command_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`dpveil train gan --full`: its stages and side, with few channels, from shards to a release."""
    thin = replace(FULL, length=16, widths=(8,) * 6, critic=(8,) * 5, hidden=8, batch=4, epoch=2, steps=3)
    monkeypatch.setitem(PLANS, "full", thin)
    out = tmp_path / "full.safetensors"
    given = ["train", "gan", str(shard(tmp_path / "faces.tar", 60)), "--out", str(out), "--full"]
    given += ["--data", "made by a test", "--terms", "any"]

    assert run(given) == 0
    codec = load(out)
    assert (codec.canvas, codec.length) == ((128, 128, 3), 16)
    crop = np.full((1, *codec.canvas), 99, np.uint8)
    assert Latent(codec=codec, epsilon=1).release(crop, bits=SeededBits(1)).shape == crop.shape
