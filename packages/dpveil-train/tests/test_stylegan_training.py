"""Training of the codec `stylegan`."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from network_made import crops, shard, trainer
from torch.nn.functional import conv2d, conv_transpose2d

from dpveil.assets.engines import OnnxRuntime, OpenCV
from dpveil.assets.model_cards import Card
from dpveil.codecs.network_codecs import ellipse_mask
from dpveil.errors import InvalidParameter, ModelError
from dpveil_train.networks import NetworkOrder, export_onnx, halve_weights
from dpveil_train.stylegan import (
    FULL,
    TINY,
    Modulated,
    Styled,
    Synthesis,
    freeze,
    train,
)
from dpveil_train.stylegan_checkpoints import read_generator, theirs_of

SIDE = TINY.side


def grained(plan=TINY, seed: int = 0) -> Synthesis:
    """Return a generator whose noise inputs and biases are not 0, as they are at first."""
    torch.manual_seed(seed)
    made = Synthesis(plan)
    for module in made.modules():
        if isinstance(module, Styled):
            module.strength.data.normal_()
            module.bias.data.normal_()
    for module in made.colours:
        module.conv.weight.data *= 0.1
    return made.requires_grad_(requires_grad=False)


def test_levels_are_learned() -> None:
    """In 150 steps the error falls; a mean picture alone would keep it."""
    made = trainer("stylegan", steps=1000, encoder_rate=4e-3, rate=1e-2)
    losses = [made.step()["levels"] for _ in range(150)]
    assert np.mean(losses[-10:]) < 0.85 * np.mean(losses[:5])


def test_a_picture_is_a_function_of_its_styles_alone() -> None:
    """The noise inputs are constants, and every layer's style changes it."""
    made, codes = grained(), torch.randn(1, TINY.length)
    plain = made(codes)
    assert torch.equal(made(codes), plain)
    for layer in range(TINY.layers):
        changed = codes.clone()
        changed[:, layer * TINY.style] += 1
        assert (made(changed) - plain).abs().max() > 1e-4, layer
    for module in made.modules():
        if isinstance(module, Styled):
            module.strength.data += 1
    assert (made(codes) - plain).abs().max() > 1e-3


@pytest.mark.parametrize("doubled", [True, False])
def test_a_modulated_convolution_is_that_of_the_paper(doubled: bool) -> None:
    """Karras et al. 2020 eq. 1 and 3, with weights for each picture; doubled by a transposed convolution and
    a blur, of 1, 3, 3, 1, as both implementations have it.
    """
    torch.manual_seed(1)
    layer = Modulated(3, 5, TINY.style, 3, doubled=doubled)
    x, style = torch.randn(2, 3, 6, 6), torch.randn(2, TINY.style)
    blur = torch.tensor([1.0, 3, 3, 1])
    blur = (blur[:, None] * blur[None] / 16).expand(5, 1, 4, 4)
    for one, scale, found in zip(x, layer.style(style), layer(x, style), strict=True):
        weight = layer.weight * layer.gain * scale[None, :, None, None]
        weight = weight / torch.sqrt(weight.square().sum(dim=(1, 2, 3), keepdim=True) + 1e-8)
        if doubled:
            theirs = weight.flip((2, 3)).transpose(0, 1)
            wide = conv_transpose2d(one[None], theirs, stride=2)
            wanted = conv2d(wide, blur, padding=1, groups=5)
        else:
            wanted = conv2d(one[None], weight, padding=1)
        assert torch.allclose(found, wanted[0], atol=1e-5)


def test_engines_agree_with_torch() -> None:
    made = grained()
    codes = torch.randn(3, TINY.length)
    whole = export_onnx(freeze(made), (1, TINY.length))
    for data, error in ((whole, 1e-4), (halve_weights(whole), 0.03)):
        for one in codes:
            wanted = made(one[None]).numpy()
            seen = [engine(one[None].numpy())[0] for engine in (OnnxRuntime(data, threads=1), OpenCV(data))]
            assert np.abs(seen[0] - seen[1]).max() < 1e-3
            assert np.abs(seen[0] - wanted).max() < error * np.abs(wanted).max()


@pytest.mark.parametrize("components", [8, 0])
def test_the_exported_codec_is_the_network(components: int) -> None:
    made = trainer("stylegan", components=components, encoder_rate=0.4, rate=0.4)  # far from their average
    for _ in range(4):
        made.step()
    codec = made.model(Card("stylegan", "made by a test", "any", 0))
    codes = codec.encode(made.faces.crops[:5])
    with torch.no_grad():
        wanted = made.mean[0](made.faces.of(np.arange(5)).pictures)
        inside = (wanted - torch.from_numpy(codec.mean)) @ torch.from_numpy(codec.basis).T
        kept = inside @ torch.from_numpy(codec.basis) + torch.from_numpy(codec.mean)
        shown = made.mean[1](kept) * made.faces.mask
    assert np.abs(codes - inside.numpy()).max() < 0.02
    levels = ((shown + 1) * 127.5).round().clamp(0, 255).permute(0, 2, 3, 1).numpy()
    assert np.abs(codec.decode(codes).astype(int) - levels).max() <= 2
    assert codec.length == (components or TINY.length)
    if not components:
        assert np.abs(codes + codec.mean - wanted.numpy()).max() < 0.02


def test_the_full_plan_is_stylegan2s_for_256_pixels() -> None:
    with torch.device("meta"):
        made = Synthesis(FULL)
    assert (FULL.layers, FULL.style, FULL.length) == (14, 512, 7168)
    assert sum(one.numel() for one in made.parameters()) == pytest.approx(22.7e6, rel=0.05)


@pytest.mark.parametrize("change", [{"side": 32}, {"components": 25}, {"components": -1}])
def test_plans_that_do_not_fit_are_refused(change: dict[str, int]) -> None:
    with pytest.raises(InvalidParameter, match=next(iter(change)) if "components" in change else "channels"):
        replace(TINY, **change)


def checkpoint(made: Synthesis) -> dict[str, torch.Tensor]:
    """Return the state of a generator as the other implementation has it, with one that it has besides."""
    state = {"mapping.w_avg": torch.zeros(4)}
    for ours, value in made.state_dict().items():
        turned = ours.startswith("doubled.") and ours.endswith(".conv.weight")
        state[theirs_of(ours)] = value.flip((2, 3)) if turned else value.squeeze().clone()
    return state


def test_a_checkpoint_of_others_is_the_same_generator(tmp_path: Path) -> None:
    wanted = grained(seed=7)
    torch.save(checkpoint(wanted), tmp_path / "g.pt")
    plan, found = read_generator(tmp_path / "g.pt", replace(TINY, components=0))
    assert (plan.side, plan.channels, plan.style, plan.small) == (SIDE, TINY.channels, TINY.style, 4)
    made = Synthesis(plan)
    made.load_state_dict(found)
    codes = torch.randn(2, plan.length)
    assert torch.equal(made(codes), wanted(codes))
    assert {"synthesis.b8.conv0.affine.weight", "synthesis.b4.conv1.noise_const"} <= {*checkpoint(wanted)}


CONV = "synthesis.b8.conv0"
WRONG = {
    "a tensor less": lambda state: state.pop(f"{CONV}.bias"),
    "another shape": lambda state: state.update({f"{CONV}.weight": torch.zeros(8, 8, 5, 5)}),
    "endless": lambda state: state.update(
        {"synthesis.b8.torgb.affine.weight": torch.zeros(1).expand(10**6, 10**6)}
    ),
    "not finite": lambda state: state[f"{CONV}.bias"].fill_(torch.nan),
    "whole numbers": lambda state: state.update({f"{CONV}.bias": torch.zeros(8, dtype=torch.int64)}),
    "no tensor": lambda state: state.update({f"{CONV}.bias": "a word"}),
    "residual": lambda state: state.update({"synthesis.b8.skip.weight": torch.zeros(8, 8, 1, 1)}),
    "too small": lambda state: [state.pop(f"synthesis.b{side}.torgb.bias") for side in (8, 16)],
    "too bright": lambda state: state["synthesis.b16.torgb.bias"].add_(9),
    "something else": lambda state: state.clear(),
}


@pytest.mark.parametrize("change", WRONG.values(), ids=WRONG)
def test_checkpoints_of_something_else_are_refused(change, tmp_path: Path) -> None:
    state = checkpoint(grained())
    change(state)
    torch.save(state, tmp_path / "g.pt")
    with pytest.raises(ModelError) as refused:
        read_generator(tmp_path / "g.pt", TINY)
    assert "\n" not in refused.value.message


class Opens:
    """What a pickle would do if it could."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[object, tuple[object, ...]]:
        return Path.touch, (self.path,)


def test_files_that_are_no_tensors_are_refused_and_not_run(tmp_path: Path) -> None:
    path, opened = tmp_path / "g.pt", tmp_path / "opened"
    torch.save({"g_ema": Opens(opened)}, path)
    for data in (path.read_bytes(), path.read_bytes()[:200], b"", b"no zip"):
        path.write_bytes(data)
        with pytest.raises(ModelError, match="no file of tensors"):
            read_generator(path, TINY)
    torch.save([1, 2], path)
    with pytest.raises(ModelError, match="by its names"):
        read_generator(path, TINY)
    with pytest.raises(ModelError, match="no file of tensors"):
        read_generator(tmp_path / "none.pt", TINY)
    assert not opened.exists()


def test_an_encoder_is_trained_for_a_checkpoint_of_others(tmp_path: Path) -> None:
    wanted = grained(seed=7)
    torch.save(checkpoint(wanted), tmp_path / "g.pt")
    order = NetworkOrder(
        paths=(shard(tmp_path / "faces.tar", 60),),
        out=tmp_path / "own.safetensors",
        plan=TINY,
        generator=tmp_path / "g.pt",
    )
    made = train(order).model
    assert made.card.settings["generator_sha256"]
    codes = made.encode(crops()[:2])
    seen = torch.from_numpy((codes @ made.basis + made.mean).astype(np.float32))
    with torch.no_grad():
        levels = ((wanted(seen) * torch.from_numpy(ellipse_mask(SIDE)) + 1) * 127.5).round().clamp(0, 255)
    assert np.abs(made.decode(codes).astype(int) - levels.permute(0, 2, 3, 1).numpy()).max() <= 2
