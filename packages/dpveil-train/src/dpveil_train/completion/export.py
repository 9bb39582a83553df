"""The trained network as dpveil's file."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import onnx
import torch
from jaxtyping import Float32
from onnx import numpy_helper
from torch import nn

from dpveil.assets.cards import Card
from dpveil.errors import ModelError
from dpveil.faces.geometry.completion import PLANES, Completion
from dpveil.faces.geometry.hair import Hair
from dpveil_train.onnx_export import exported, halved
from dpveil_train.onnx_int8 import quantised

EXACT: Final = ("/stem/", "/last/")
"""Layers that see and give colours, which stay in 32 bits."""


def taken_up(network: nn.Module, data: bytes, takes: tuple[int, ...]) -> None:
    """Load the weights of an exported network, of which ONNX keeps those of normalisations without names.

    Raises `ModelError` if they are of another network.
    """
    own = stored(onnx.load_model_from_string(data).graph)
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


def stored(graph: onnx.GraphProto) -> dict[str, torch.Tensor]:
    """Return the weights of an exported network by name, which it stores in 8, 16 or 32 bits."""
    arrays = {one.name: numpy_helper.to_array(one) for one in graph.initializer}
    steps = [node.input for node in graph.node if node.op_type in ("QuantizeLinear", "DequantizeLinear")]
    whole = [names for names in steps if names[0] in arrays]
    own = {
        name.removesuffix(".half"): one.astype(np.float32)
        for name, one in arrays.items()
        if not any(name in names for names in steps)
    }
    for weights, scale, zero in whole:
        factors = arrays[scale].reshape(-1, *(1,) * (arrays[weights].ndim - 1))
        offset = arrays[zero].astype(np.float32).reshape(factors.shape)
        own[weights.removesuffix("_quantized")] = (arrays[weights].astype(np.float32) - offset) * factors
    return {name: torch.from_numpy(one) for name, one in own.items()}


def completion_of(
    network: nn.Module,
    side: int,
    card: Card,
    hair: Hair,
    given: Sequence[Float32[np.ndarray, "1 18 s s"]] = (),
    *,
    seed: int = 0,
) -> Completion:
    """Return the network for frames of `side` × `side` pixels, with public noise from this seed.

    It is in 8 bits if examples of what it will be `given` say between what its numbers are.
    """
    noise = torch.randn(side, side, generator=torch.Generator().manual_seed(seed)).half().float().numpy()
    contents = exported(network, (1, PLANES, side, side))
    contents = halved(quantised(contents, given, exact=EXACT) if given else contents)
    made = Completion(contents, noise, Hair.of_arrays(hair.tensors()), card)
    _ = made.tried
    return made
