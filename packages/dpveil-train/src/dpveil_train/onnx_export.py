"""Export of a trained network as an ONNX file of fixed size with 16-bit weights."""

from __future__ import annotations

import io
import warnings
from typing import Final

import numpy as np
import onnx
import torch
from onnx import TensorProto, helper, numpy_helper
from torch import nn

OPSET: Final = 17
SMALL: Final = 64
"""Tensors with fewer weights are not converted."""


def exported(network: nn.Module, takes: tuple[int, ...]) -> bytes:
    """Return the ONNX file of a network for input of this shape, without operators that depend on shapes."""
    file = io.BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(
            network.eval(),
            (torch.zeros(*takes),),
            file,
            input_names=["given"],
            output_names=["made"],
            opset_version=OPSET,
            dynamo=False,
        )
    return file.getvalue()


def halved(data: bytes) -> bytes:
    """Return the ONNX file with large weights stored as 16-bit floats, and casts to 32 bits.

    Scales of quantised numbers stay as they are.
    """
    model = onnx.load_model_from_string(data)
    graph, casts = model.graph, []
    scales = {name for node in graph.node if "quantize" in node.op_type.lower() for name in node.input[1:]}
    for weights in graph.initializer:
        values = numpy_helper.to_array(weights)
        if values.dtype != np.float32 or values.size < SMALL or weights.name in scales:
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
