"""Generators of others: state dicts with the names of two StyleGAN2 implementations in PyTorch, as ours.

NVIDIA's stylegan2-ada-pytorch stores a pickle that holds code; `torch.save(G_ema.state_dict(), "g.pt")` makes
a file of it that this module reads. rosinality's stylegan2-pytorch stores a dict with "g_ema". Only
numbers are unpickled, and shapes are compared before anything is copied.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
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
HINT: Final = "give a state dict of stylegan2-ada-pytorch's G_ema, or a checkpoint of rosinality's"


@dataclass(frozen=True)
class Names:
    """How an implementation names the tensors of a generator, by ours.

    `layer` gives the name of its styled layer `index`, 0 at 4 pixels, and `colours` that of the layer for
    colours at doubling `step`. `parts` are names within the former. `others` begin or end names of
    tensors that are not needed here.
    """

    start: str
    layer: Callable[[int], str]
    colours: Callable[[int], str]
    parts: Mapping[str, str]
    noise: Callable[[int], str]
    others: tuple[str, ...]

    @property
    def colour_names(self) -> dict[str, str]:
        """Names within a layer for colours."""
        kept = {ours: theirs for ours, theirs in self.parts.items() if ours.startswith("conv.")}
        return {**kept, "bias": "bias"}


def _ada_layer(index: int) -> str:
    return f"synthesis.b{SMALLEST << (index + 1) // 2}.conv{0 if index % 2 else 1}"


def _ada_colours(step: int) -> str:
    return f"synthesis.b{SMALLEST << step}.torgb"


def _rosinality(index: int) -> str:
    return f"convs.{index - 1}" if index else "conv1"


def _rosinality_colours(step: int) -> str:
    return f"to_rgbs.{step - 1}" if step else "to_rgb1"


KNOWN: Final = (
    Names(
        start="synthesis.b4.const",
        layer=_ada_layer,
        colours=_ada_colours,
        parts={
            "conv.weight": "weight",
            "conv.style.weight": "affine.weight",
            "conv.style.bias": "affine.bias",
            "strength": "noise_strength",
            "bias": "bias",
        },
        noise=lambda index: f"{_ada_layer(index)}.noise_const",
        others=("mapping.", "resample_filter"),
    ),
    Names(
        start="input.input",
        layer=_rosinality,
        colours=_rosinality_colours,
        parts={
            "conv.weight": "conv.weight",
            "conv.style.weight": "conv.modulation.weight",
            "conv.style.bias": "conv.modulation.bias",
            "strength": "noise.weight",
            "bias": "activate.bias",
        },
        noise=lambda index: f"noises.noise_{index}",
        others=("style.", "blur.kernel", "upsample.kernel"),
    ),
)
"""The implementations whose names are known."""


def read_generator(path: Path, plan: Plan) -> tuple[Plan, dict[str, Tensor]]:
    """Return a plan with the sizes of a checkpoint's generator, and the state of its `Synthesis`.

    Of NVIDIA's, the clamping of layers in 16 bits is left out. Raises `ModelError` for files that hold
    anything else.
    """
    held = _load(path)
    inner = held.get("g_ema", held)
    tensors = {str(name): one for name, one in inner.items()} if isinstance(inner, dict) else {}
    for names in KNOWN:
        if names.start in tensors:
            return _convert(path, tensors, names, plan)
    raise ModelError(f"{show_path(path)} is no generator of StyleGAN2 by its names", hint=HINT)


def _load(path: Path) -> dict[str, Any]:
    try:
        held = torch.load(path, map_location="cpu", weights_only=True, mmap=True)
    except Exception as error:  # torch and pickle raise errors of many kinds
        raise ModelError(f"{show_path(path)} is no file of tensors that torch wrote", hint=HINT) from error
    if not isinstance(held, dict):
        raise ModelError(f"{show_path(path)} holds no tensors by name", hint=HINT)
    return held


def _convert(path: Path, tensors: dict[str, Any], names: Names, plan: Plan) -> tuple[Plan, dict[str, Tensor]]:
    doublings = sum(f"{names.colours(step)}.bias" in tensors for step in range(DOUBLINGS[-1] + 2)) - 1
    if doublings not in DOUBLINGS:
        raise ModelError(
            f"{show_path(path)} is for no side from 8 to {SMALLEST << DOUBLINGS[-1]} pixels", hint=HINT
        )
    made = _with_sizes(path, tensors, names, plan, doublings)
    with torch.device("meta"):
        wanted = {name: tuple(one.shape) for name, one in Synthesis(made).state_dict().items()}
    state, used = {}, set()
    for ours, theirs in _pairs(names, doublings):
        state[ours] = _check_shape(path, tensors, theirs, wanted[ours])
        used.add(theirs)
        if ours.startswith("doubled.") and ours.endswith(".conv.weight"):
            state[ours] = state[ours].flip((2, 3))  # theirs is transposed, ours a convolution
    more = [one for one in tensors if one not in used and not one.startswith(names.others)]
    if any(not one.endswith(names.others) for one in more):
        raise ModelError(
            f"{show_path(path)} has layers that StyleGAN2's generator with skips lacks", hint=HINT
        )
    _check_levels(path, made, state)
    return made, state


@torch.no_grad()  # type: ignore[untyped-decorator,unused-ignore]
def _check_levels(path: Path, plan: Plan, state: dict[str, Tensor]) -> None:
    """Refuse before an encoder is trained what a codec would refuse in the end."""
    synthesis = Synthesis(plan)
    synthesis.load_state_dict(state)
    level = float(synthesis(torch.zeros(1, plan.length)).abs().mean())
    if not level <= StyleGAN.bright:
        raise ModelError(
            f"{show_path(path)} makes pictures of {level:.1f} on average, not from -1 to 1", hint=HINT
        )


def _with_sizes(path: Path, tensors: dict[str, Any], names: Names, plan: Plan, doublings: int) -> Plan:
    """Return the plan with the sizes that the colours' layers have."""
    kept = [
        f"{names.colours(step)}.{names.colour_names['conv.style.weight']}" for step in range(doublings + 1)
    ]
    shapes = [tuple(getattr(tensors.get(name), "shape", ())) for name in kept]
    if any(len(shape) != 2 or not 0 < min(shape) <= max(shape) <= WIDEST for shape in shapes):
        raise ModelError(
            f"{show_path(path)} has no styles of 1 to {WIDEST} numbers for 1 to {WIDEST} channels"
        )
    widths = (plan.widths + (plan.widths[-1],) * doublings)[:doublings]
    channels, style = tuple(shape[0] for shape in shapes), shapes[0][1]
    length = 2 * len(channels) * style
    try:
        return replace(
            plan,
            side=SMALLEST << doublings,
            channels=channels,
            style=style,
            widths=widths,
            components=min(plan.components or length, length),
        )
    except InvalidParameter as error:
        raise ModelError(f"{show_path(path)} has sizes of no codec: {error.message}") from error


def _pairs(names: Names, doublings: int) -> Iterator[tuple[str, str]]:
    yield "start", names.start
    for index in range(2 * doublings + 1):
        own = f"{'doubled' if index % 2 else 'same'}.{(index - 1) // 2}" if index else "first"
        yield f"{own}.noise", names.noise(index)
        for ours, theirs in names.parts.items():
            yield f"{own}.{ours}", f"{names.layer(index)}.{theirs}"
    for step in range(doublings + 1):
        for ours, theirs in names.colour_names.items():
            yield f"colours.{step}.{ours}", f"{names.colours(step)}.{theirs}"


def _check_shape(path: Path, tensors: dict[str, Any], name: str, shape: tuple[int, ...]) -> Tensor:
    """Return a copy of a tensor in our shape; theirs may have or lack sides of 1."""
    found = tensors.get(name)
    if not isinstance(found, Tensor) or not found.is_floating_point() or found.layout != torch.strided:
        raise ModelError(f"{show_path(path)} lacks the tensor {name}", hint=HINT)
    if [side for side in found.shape if side != 1] != [side for side in shape if side != 1]:
        raise ModelError(f"{show_path(path)}: {name} is {tuple(found.shape)} instead of {shape}", hint=HINT)
    made = found.detach().float().reshape(shape).clone()
    if not made.isfinite().all():
        raise ModelError(f"{show_path(path)}: {name} has numbers that are not finite", hint=HINT)
    return made
