"""The trained network as dpveil's file."""

from __future__ import annotations

import numpy as np
import onnx
import torch
from onnx import numpy_helper
from torch import nn

from dpveil.assets.cards import Card
from dpveil.errors import ModelError
from dpveil.faces.geometry.completion import PLANES, Completion
from dpveil.faces.geometry.hair import Hair
from dpveil.training.onnx_export import exported, halved


def taken_up(network: nn.Module, data: bytes, takes: tuple[int, ...]) -> None:
    """Load the weights of an exported network, of which ONNX keeps those of normalisations without names.

    Raises `ModelError` if they are of another network.
    """
    own = {
        one.name.removesuffix(".half"): torch.tensor(numpy_helper.to_array(one).astype(np.float32))
        for one in onnx.load_model_from_string(data).graph.initializer
    }
    order: list[str] = []
    names = {module: name for name, module in network.named_modules() if isinstance(module, nn.GroupNorm)}
    hooks = [one.register_forward_hook(lambda of, *_: order.append(names[of])) for one in names]
    with torch.no_grad():
        network.eval()(torch.zeros(*takes))
    for hook in hooks:
        hook.remove()
    for kind, part in (("onnx::Mul_", "weight"), ("onnx::Add_", "bias")):
        found = (name for name in own if name.startswith(kind) and name[10:].isdecimal())
        unnamed = sorted(found, key=lambda name: int(name[10:]))
        if len(unnamed) == len(order):
            own |= {f"{to}.{part}": own.pop(name).flatten() for to, name in zip(order, unnamed, strict=True)}
    try:
        network.load_state_dict(own)
    except RuntimeError as error:
        raise ModelError("the network to begin from has other layers") from error


def completion_of(network: nn.Module, side: int, card: Card, hair: Hair, *, seed: int = 0) -> Completion:
    """Return the network for frames of `side` × `side` pixels, with public noise from this seed."""
    noise = torch.randn(side, side, generator=torch.Generator().manual_seed(seed)).half().float().numpy()
    contents = halved(exported(network, (1, PLANES, side, side)))
    made = Completion(contents, noise, Hair.of_arrays(hair.tensors()), card)
    _ = made.tried
    return made
