"""Training of the codec `gan`."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
import torch
from network_made import shard, trainer

from dpveil.assets import Card
from dpveil.cli import run
from dpveil.codecs import load
from dpveil.faces import Latent
from dpveil.mechanisms.latent.principal import affordable
from dpveil.noise.bits import SeededBits
from dpveil_train.gan import FULL, PLANS, RATIO, TINY, Basis, Critic, Decoder, Encoder

SIDE = TINY.side


@pytest.mark.parametrize("training", [True, False])
def test_pictures_of_a_batch_do_not_mix(training: bool) -> None:
    """With batch statistics the code of one person would change with who else is in the batch."""
    torch.manual_seed(0)
    encoder, decoder = Encoder(TINY).train(training), Decoder(TINY).train(training)
    batch = torch.randn(4, 3, SIDE, SIDE)
    other = torch.cat([batch[:1], -batch[1:]])
    given = torch.randn(4, 3)
    with torch.no_grad():
        codes, changed = encoder(batch), encoder(other)
        assert torch.equal(codes[0], changed[0])
        assert not torch.equal(codes[1], changed[1])
        assert torch.equal(decoder(codes, given)[0], decoder(changed, given)[0])


def test_a_picture_is_a_function_of_code_and_conditions() -> None:
    torch.manual_seed(0)
    decoder = Decoder(TINY)
    codes, given = torch.randn(2, TINY.length), torch.zeros(2, 3)
    with torch.no_grad():
        plain = decoder(codes, given)
        for column in range(3):
            changed = given.clone()
            changed[:, column] = 1
            assert (decoder(codes, changed) - plain).abs().max() > 1e-4
        assert (decoder(-codes, given) - plain).abs().max() > 1e-3


def test_noise_in_training_is_that_of_the_mechanism() -> None:
    """Scale c·width/ε on the first c components, and the mean in the others: to 4 % of 40 000 draws."""
    rng = np.random.default_rng(3)
    spread = np.array([9.0, 5.0, 2.0, 0.02])
    codes = torch.from_numpy((rng.uniform(-1, 1, (500, 4)) * spread).astype(np.float32)) + 3
    basis = Basis.of(codes)
    assert torch.allclose(basis.rows @ basis.rows.T, torch.eye(4), atol=1e-5)
    assert (basis.deviations.diff() < 0).all()
    epsilon = 60.0
    width = (basis.high - basis.low).double().numpy()
    kept = affordable(width, basis.deviations.double().numpy(), RATIO, Fraction(epsilon))
    assert kept == 4
    middle = basis.mean.repeat(40_000, 1)
    out = basis.noisy(middle, (epsilon, epsilon), torch.Generator().manual_seed(0))
    inside = ((out - basis.mean) @ basis.rows.T).double().numpy()
    assert np.abs(inside).mean(axis=0) == pytest.approx(kept * width / epsilon, rel=0.04)
    few = basis.noisy(middle, (3.0, 3.0), torch.Generator().manual_seed(0))
    count = affordable(width, basis.deviations.double().numpy(), RATIO, Fraction(3))
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
        shown = made.mean[1](torch.from_numpy(wanted), torch.zeros(5, 3)) * made.faces.mask
    assert np.abs(codes @ codec.basis + codec.mean - wanted).max() < 0.02
    levels = ((shown + 1) * 127.5).round().clamp(0, 255).permute(0, 2, 3, 1).numpy()
    assert np.abs(codec.decode(codes).astype(int) - levels).max() <= 2
    assert (np.diff(codec.statistics.deviations) <= 1e-6).all()
    assert codec.length == TINY.length


def test_the_papers_sizes_are_those_of_its_tables() -> None:
    """Tables 6.1 and 6.2: parameters of the encoder's and critic's convolutions, at 128 pixels."""
    with torch.device("meta"):
        encoder, critic, decoder = Encoder(FULL), Critic(FULL), Decoder(FULL)
    shapes = [tuple(m.weight.shape) for m in encoder.modules() if isinstance(m, torch.nn.Conv2d)]
    assert shapes == [
        (64, 3, 4, 4), (128, 64, 4, 4), (256, 128, 4, 4), (512, 256, 4, 4), (1024, 512, 4, 4),
        (1024, 1024, 4, 4), (2048, 1024, 2, 2),
    ]  # fmt: skip
    assert [head[0].out_features for head in critic.heads] == [1024] * 3
    assert decoder.start.in_features == 2048 + 3


def test_the_papers_layout_from_the_command_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`dpveil train gan --full`: its stages and side, with few channels, from shards to a release."""
    thin = replace(FULL, length=16, widths=(8,) * len(FULL.widths), hidden=8, batch=4, epoch=2, steps=3)
    monkeypatch.setitem(PLANS, "full", thin)
    out = tmp_path / "full.safetensors"
    given = ["train", "gan", str(shard(tmp_path / "faces.tar", 60)), "--out", str(out), "--full"]
    given += ["--data", "made by a test", "--terms", "any"]

    assert run(given) == 0
    codec = load(out)
    assert (codec.canvas, codec.length) == ((128, 128, 3), 16)
    crop = np.full((1, *codec.canvas), 99, np.uint8)
    assert Latent(codec=codec, epsilon=1).release(crop, bits=SeededBits(1)).shape == crop.shape
