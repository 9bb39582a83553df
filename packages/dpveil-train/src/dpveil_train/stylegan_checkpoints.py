"""Generators of others: state dicts with the names of NVIDIA's stylegan2-ada-pytorch, as ours.

Its own pickles hold code; `torch.save(G_ema.state_dict(), "g.pt")` makes a file of one that this module
reads. Only numbers are unpickled, and sizes are compared before anything is copied.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import torch
from torch import Tensor

from dpveil.codecs import StyleGAN
from dpveil.errors import InvalidParameter, ModelError
from dpveil.io.names import show_path
from dpveil_train.stylegan import SMALLEST, Plan, Synthesis

WIDEST: Final = 1024  # most channels, and the greatest length of a style
DOUBLINGS: Final = range(1, 7)
"""Possible numbers of doublings: up to 256 pixels, the most for which a codec's networks have room."""
HINT: Final = "give a state dict of stylegan2-ada-pytorch's G_ema, saved by torch"
PARTS: Final = {
    "conv.weight": "weight",
    "conv.style.weight": "affine.weight",
    "conv.style.bias": "affine.bias",
    "noise": "noise_const",
    "strength": "noise_strength",
    "bias": "bias",
}
"""Names of the tensors of a layer: theirs by ours."""
OTHERS: Final = ("mapping.", "resample_filter")  # names of tensors that are not needed begin or end so


def read_generator(path: Path, plan: Plan) -> tuple[Plan, dict[str, Tensor]]:
    """Return a plan with the sizes of a checkpoint's generator, and the state of its `Synthesis`.

    The clamping of layers in 16 bits is left out. Raises `ModelError` for files that hold anything else.
    """
    shown = show_path(path)
    try:
        tensors = torch.load(path, map_location="cpu", weights_only=True, mmap=True)
    except Exception as error:  # torch and pickle raise errors of many kinds
        raise ModelError(f"{shown} is no file of tensors that torch wrote", hint=HINT) from error
    try:
        plan = with_sizes(tensors, plan)
        synthesis = Synthesis(plan).requires_grad_(requires_grad=False)
        theirs = {ours: theirs_of(ours) for ours in synthesis.state_dict()}
        state = {ours: _copied(tensors[theirs[ours]], own) for ours, own in synthesis.state_dict().items()}
    except (
        AttributeError,
        IndexError,
        KeyError,
        RuntimeError,
        TypeError,
        ValueError,
        InvalidParameter,
    ) as error:
        raise ModelError(f"{shown} is no generator of StyleGAN2 by its names and sizes", hint=HINT) from error
    more = tensors.keys() - theirs.values()
    if not all(name.startswith(OTHERS) or name.endswith(OTHERS) for name in more):
        raise ModelError(f"{shown} has layers that StyleGAN2's generator with skips lacks", hint=HINT)
    for ours in state:
        if ours.startswith("doubled.") and ours.endswith(".conv.weight"):
            state[ours] = state[ours].flip((2, 3))  # theirs is transposed, ours a convolution
    synthesis.load_state_dict(state)
    level = float(synthesis(torch.zeros(1, plan.length)).abs().mean())
    if not level <= StyleGAN.bright:  # what a codec would refuse when its encoder is trained
        raise ModelError(f"{shown} makes pictures of {level:.1f} on average, not from -1 to 1", hint=HINT)
    return plan, state


def with_sizes(tensors: dict[str, Any], plan: Plan) -> Plan:
    """Return the plan with the sizes that the colours' layers of a generator have."""
    colours = (theirs_of(f"colours.{step}.bias") for step in range(DOUBLINGS[-1] + 2))
    doublings = sum(name in tensors for name in colours) - 1
    shapes = [tensors[theirs_of(f"colours.{step}.conv.style.weight")].shape for step in range(doublings + 1)]
    if doublings not in DOUBLINGS or any(max(shape) > WIDEST for shape in shapes):
        raise ValueError(shapes)
    channels, style = tuple(shape[0] for shape in shapes), shapes[0][1]
    length = 2 * len(channels) * style
    return replace(
        plan,
        side=SMALLEST << doublings,
        channels=channels,
        style=style,
        widths=(plan.widths + (plan.widths[-1],) * doublings)[:doublings],
        components=min(plan.components or length, length),
    )


def theirs_of(ours: str) -> str:
    """Return the name of a tensor of `Synthesis` in the other implementation."""
    layer, _, part = ours.partition(".")
    if layer == "start":
        return "synthesis.b4.const"
    at, _, part = (part if layer != "first" else f"-1.{part}").partition(".")
    step = int(at) + (layer != "colours")
    kind = {"colours": "torgb", "doubled": "conv0"}.get(layer, "conv1")
    return f"synthesis.b{SMALLEST << step}.{kind}.{PARTS[part]}"


def _copied(found: Tensor, own: Tensor) -> Tensor:
    """Return a copy of a tensor in our shape, in which theirs may lack sides of 1."""
    if [side for side in found.shape if side != 1] != [side for side in own.shape if side != 1]:
        raise ValueError(found.shape)
    if not found.is_floating_point() or not found.isfinite().all():
        raise ValueError(found.dtype)
    return found.detach().float().reshape(own.shape).clone()
