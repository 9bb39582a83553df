"""Exported networks with convolutions in 8 bits: half of the time, and a quarter of the bytes."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Sequence
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any, Final

import numpy as np
import onnx
from jaxtyping import Float32
from onnx import helper, numpy_helper
from onnxruntime.quantization import CalibrationDataReader, CalibrationMethod, QuantType, quantize_static

MOST: Final = 99.99
"""Percentile of a layer's numbers up to which they are told apart; larger ones are cut."""


class Given(CalibrationDataReader):  # type: ignore[misc,unused-ignore]
    """Inputs of a network of one input, from which the range of each layer's numbers is taken."""

    def __init__(self, name: str, inputs: Iterable[Float32[np.ndarray, ...]]) -> None:
        self.name, self.inputs = name, iter(inputs)

    def get_next(self) -> dict[str, Any] | None:
        """Return the next input by name; None after the last one."""
        given = next(self.inputs, None)
        return None if given is None else {self.name: given}


def quantised(data: bytes, inputs: Iterable[Float32[np.ndarray, ...]], *, exact: Sequence[str] = ()) -> bytes:
    """Return the ONNX file of a network with convolutions in 8 bits, except those of the layers `exact`.

    `inputs` are examples of what the network is given. Weights have 7 bits and a scale for each channel, so
    that pairs of products fit into 16 bits, to which processors without VNNI cut them (onnxruntime, "Quantize
    ONNX models").
    """
    model = onnx.load_model_from_string(data)
    kept = [node.name for node in model.graph.node if any(part in node.name for part in exact)]
    with tempfile.TemporaryDirectory() as folder:
        before, after = Path(folder) / "before.onnx", Path(folder) / "after.onnx"
        before.write_bytes(data)
        with redirect_stdout(None):  # it prints what it does
            quantize_static(
                str(before),
                str(after),
                Given(model.graph.input[0].name, inputs),
                op_types_to_quantize=["Conv"],
                nodes_to_exclude=kept,
                per_channel=True,
                reduce_range=True,
                activation_type=QuantType.QUInt8,
                weight_type=QuantType.QInt8,
                calibrate_method=CalibrationMethod.Percentile,
                extra_options={"CalibPercentile": MOST},
            )
        return _plain(onnx.load(str(after)))


def _plain(model: onnx.ModelProto) -> bytes:
    """Return a file whose numbers are stored as bytes, and that asks for ONNX's own operators only."""
    for array in model.graph.initializer:
        array.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(array), array.name))
    (version,) = {one.version for one in model.opset_import if one.domain in ("", "ai.onnx")}
    del model.opset_import[:]
    model.opset_import.append(helper.make_opsetid("", version))
    onnx.checker.check_model(model)
    packed: bytes = model.SerializeToString()
    return packed
