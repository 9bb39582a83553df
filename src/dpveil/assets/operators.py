"""What networks from anybody may consist of: operators, their attributes, and the values that those may have.

`dpveil_train` writes nothing else. Engines end the whole process at a stride of 0, and read attributes of
which another one knows nothing; so what is not here is refused.
"""

from __future__ import annotations

import math
from collections.abc import Container, Mapping
from typing import Any, Final

import numpy as np

OPERATORS: Final[Mapping[str, frozenset[str]]] = {
    name: frozenset(attributes.split())
    for name, attributes in {
        "Add": "",
        "Cast": "to",
        "Concat": "axis",
        "Constant": "value",
        "Conv": "dilations group kernel_shape pads strides",
        "DepthToSpace": "blocksize mode",
        "DequantizeLinear": "axis",
        "Div": "",
        "Flatten": "axis",
        "Gemm": "alpha beta transA transB",
        "Identity": "",
        "InstanceNormalization": "epsilon",
        "LeakyRelu": "alpha",
        "Mul": "",
        "QuantizeLinear": "axis",
        "Reshape": "allowzero",
        "Resize": "coordinate_transformation_mode cubic_coeff_a mode nearest_mode",
        "Shape": "",
        "Slice": "",
        "Softmax": "axis",
        "Sqrt": "",
        "Tanh": "",
    }.items()
}
"""Operators and the attributes that they may have (ONNX, Operators.md)."""
TYPES: Final[Mapping[int, np.dtype[Any]]] = {
    1: np.dtype("f4"),
    2: np.dtype("u1"),
    3: np.dtype("i1"),
    6: np.dtype("i4"),
    7: np.dtype("i8"),
    10: np.dtype("f2"),
}
"""Types of numbers (onnx.proto: TensorProto.DataType)."""
MOST_INPUTS: Final = 32
"""Most values that a node takes."""
LONGEST: Final = 8
"""Most numbers of an attribute."""
LENGTHS: Final = range(1, 1025)
SWITCH: Final = range(2)
WHOLE: Final[Mapping[str, Container[int]]] = {
    "allowzero": SWITCH,
    "axis": range(-4, 5),
    "blocksize": range(1, 17),
    "dilations": LENGTHS,
    "group": range(1, 1 << 16),
    "kernel_shape": LENGTHS,
    "pads": range(1025),
    "strides": LENGTHS,
    "to": TYPES,
    "transA": SWITCH,
    "transB": SWITCH,
}
"""What whole numbers may be; of lists, each of them."""
LISTS: Final = frozenset({"dilations", "kernel_shape", "pads", "strides"})
REAL: Final = frozenset({"alpha", "beta", "cubic_coeff_a", "epsilon"})
"""Attributes of one finite number."""
WORDS: Final[Mapping[str, Container[str]]] = {
    "coordinate_transformation_mode": ("align_corners", "asymmetric", "half_pixel", "pytorch_half_pixel"),
    "mode": ("CRD", "DCR", "cubic", "linear", "nearest"),
    "nearest_mode": ("ceil", "floor", "round_prefer_ceil", "round_prefer_floor"),
}


def fits(name: str, value: Any) -> bool:
    """Return whether an attribute, other than a constant, may have a value."""
    if name in REAL:
        return type(value) is float and math.isfinite(value)
    if name in WORDS:
        return type(value) is str and value in WORDS[name]
    if type(value) is not (tuple if name in LISTS else int):
        return False
    listed = value if type(value) is tuple else (value,)
    return len(listed) <= LONGEST and all(one in WHOLE[name] for one in listed)
