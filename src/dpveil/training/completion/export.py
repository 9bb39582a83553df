"""Export of the trained network as an ONNX file of fixed size with 16-bit weights, and as dpveil's file."""

from __future__ import annotations

import io
import warnings
from typing import Final

import numpy as np
import onnx
import torch
from onnx import TensorProto, helper, numpy_helper
from torch import nn

from dpveil.assets.cards import Card
from dpveil.faces.geometry.completion import PLANES, Completion
from dpveil.faces.geometry.hair import Hair

OPSET: Final = 17
SMALL: Final = 64
"""Tensors with fewer weights are not converted."""


def completion_of(network: nn.Module, side: int, card: Card, hair: Hair, *, seed: int = 0) -> Completion:
    """Return the network for frames of `side` × `side` pixels, with public noise from this seed."""
    noise = torch.randn(side, side, generator=torch.Generator().manual_seed(seed)).numpy()
    noise, *arrays = (a.astype(np.float16).astype(np.float32) for a in (noise, hair.styles, hair.likely))
    made = Completion(halved(exported(network, side)), noise, Hair.of_arrays(*arrays), card)
    _ = made.tried
    return made


def exported(network: nn.Module, side: int) -> bytes:
    """Return the ONNX file of a network for a fixed size, without operators that depend on shapes."""
    file = io.BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(
            network.eval(),
            (torch.zeros(1, PLANES, side, side),),
            file,
            input_names=["seen"],
            output_names=["painted"],
            opset_version=OPSET,
            dynamo=False,
        )
    return file.getvalue()


def halved(data: bytes) -> bytes:
    """Return the ONNX file with large weights stored as 16-bit floats, and casts to 32 bits."""
    model = onnx.load_model_from_string(data)
    graph, casts = model.graph, []
    for weights in graph.initializer:
        values = numpy_helper.to_array(weights)
        if values.dtype != np.float32 or values.size < SMALL:
            continue
        name = weights.name
        weights.CopyFrom(numpy_helper.from_array(values.astype(np.float16), f"{name}.half"))
        casts.append(helper.make_node("Cast", [f"{name}.half"], [name], to=TensorProto.FLOAT))
    nodes = [*casts, *graph.node]
    del graph.node[:]
    graph.node.extend(nodes)
    onnx.checker.check_model(model)
    packed: bytes = model.SerializeToString()
    return packed
