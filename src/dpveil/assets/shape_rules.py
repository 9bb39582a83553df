"""The shape of what each operator of a network gives, and how many operations that takes."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from dpveil.assets.onnx_files import Array, Node
from dpveil.assets.operators import TYPES

LONGEST: Final = 64
"""Most numbers of a constant whose values count: those of shapes and scales."""
SIDES: Final = 1 << 31
"""Least length that no side of an array has."""
FLOAT, LONG = 1, 7
"""Types that layers compute with; others are cast or dequantised first."""
BYTES: Final = (2, 3)
"""Types of quantised numbers."""
WHOLE: Final = (*BYTES, 6)
"""Types that can be dequantised; sums of quantised numbers have 32 bits."""
TO_THE_END: Final = (1 << 63) - 1
"""Where slices end that have no end."""

Shape = tuple[int, ...]


@dataclass(frozen=True)
class Known:
    """The shape of an array, whether it is `fixed`, whatever the input, the `values` of a short one, and the
    type of its numbers.
    """

    shape: Shape
    fixed: bool = False
    values: tuple[float, ...] | None = None
    type: int = FLOAT

    @property
    def size(self) -> int:
        """How many numbers it has."""
        return math.prod(self.shape)


Rule = Callable[[Node, Sequence[Known]], tuple[Known, int]]


def constant(array: Array) -> Known:
    """Return what is known of a constant."""
    values = None
    if array.size <= LONGEST:
        numbers = np.frombuffer(array.contents, TYPES[array.type].newbyteorder("<"))
        values = tuple(numbers.tolist()) if np.isfinite(numbers).all() else None
    return Known(array.shape, True, values, array.type)


def require(fits: bool) -> None:
    """Raise `ValueError` if something does not fit."""
    if not fits:
        raise ValueError("shapes do not fit")


def _whole(one: Known) -> list[int]:
    """Return the values of a short constant of whole numbers in one dimension."""
    require(one.fixed and one.values is not None and len(one.shape) == 1 and one.type == LONG)
    values = [int(value) for value in one.values or ()]
    require(all(abs(value) < SIDES or value == TO_THE_END for value in values))
    return values


def _same(node: Node, given: Sequence[Known]) -> tuple[Known, int]:
    (one,) = given
    require(len(one.shape) > 0)
    if node.operator in ("Cast", "Identity"):
        return one, one.size
    axis = node.attributes.get("axis", -1)
    require(-len(one.shape) <= int(axis) < len(one.shape))  # type: ignore[arg-type]
    return Known(one.shape, one.fixed), 4 * one.size


def _broadcast(node: Node, given: Sequence[Known]) -> tuple[Known, int]:
    one, two = given
    shape = np.broadcast_shapes(one.shape, two.shape)
    return Known(tuple(shape), one.fixed and two.fixed), math.prod(shape)


def _quantised(node: Node, given: Sequence[Known]) -> tuple[Known, int]:
    """Either way between real numbers and whole ones, of one scale, or of one for each place of an axis."""
    one, scale, zero = given
    whole, numbers = (WHOLE, one) if node.operator == "DequantizeLinear" else (BYTES, zero)
    require(numbers.type == zero.type and numbers.type in whole)
    require(node.operator == "DequantizeLinear" or one.type == FLOAT)
    axis = range(len(one.shape))[int(node.attributes.get("axis", 1))] if scale.shape else None  # type: ignore[arg-type]
    require(scale.type == FLOAT and scale.fixed and zero.fixed and scale.shape == zero.shape)
    require(scale.shape == (() if axis is None else (one.shape[axis],)))
    return Known(one.shape, one.fixed), 2 * one.size


def _held(node: Node, given: Sequence[Known]) -> tuple[Known, int]:
    value = node.attributes["value"]
    require(not given and isinstance(value, Array))
    return constant(value), 0  # type: ignore[arg-type]


def _shape(node: Node, given: Sequence[Known]) -> tuple[Known, int]:
    (one,) = given
    return Known((len(one.shape),), True, one.shape), 0


def _concat(node: Node, given: Sequence[Known]) -> tuple[Known, int]:
    first = given[0].shape
    axis = range(len(first))[int(node.attributes["axis"])]  # type: ignore[arg-type]
    rest = {one.shape[:axis] + one.shape[axis + 1 :] for one in given}
    require(len(rest) == 1 and all(len(one.shape) == len(first) for one in given))
    shape = (*first[:axis], sum(one.shape[axis] for one in given), *first[axis + 1 :])
    fixed, values = all(one.fixed for one in given), None
    if fixed and len(first) == 1 and shape[0] <= LONGEST and all(one.values is not None for one in given):
        values = tuple(value for one in given for value in one.values or ())
    return Known(shape, fixed, values), math.prod(shape)


def _conv(node: Node, given: Sequence[Known]) -> tuple[Known, int]:
    image, weights, *bias = given
    said: Mapping[str, Any] = node.attributes
    count, channels, rows, columns = image.shape
    outputs, depth, *kernel = weights.shape
    group = said.get("group", 1)
    require(not image.fixed and weights.fixed and len(kernel) == 2 and len(bias) <= 1)
    require(channels == depth * group and outputs % group == 0)
    require(all(one.fixed and one.shape == (outputs,) for one in bias))
    require(tuple(said.get("kernel_shape", kernel)) == tuple(kernel))
    strides, dilations = said.get("strides", (1, 1)), said.get("dilations", (1, 1))
    pads = said.get("pads", (0, 0, 0, 0))
    require((len(strides), len(dilations), len(pads)) == (2, 2, 4))
    sides = [
        (side + pads[i] + pads[i + 2] - dilations[i] * (kernel[i] - 1) - 1) // strides[i] + 1
        for i, side in enumerate((rows, columns))
    ]
    require(all(side > 0 for side in sides))
    out = (count, outputs, *sides)
    return Known(out), 2 * math.prod(out) * depth * math.prod(kernel)


def _depth_to_space(node: Node, given: Sequence[Known]) -> tuple[Known, int]:
    (one,) = given
    count, channels, rows, columns = one.shape
    block = int(node.attributes["blocksize"])  # type: ignore[arg-type]
    require(channels % block**2 == 0 and not one.fixed)
    return Known((count, channels // block**2, rows * block, columns * block)), one.size


def _flatten(node: Node, given: Sequence[Known]) -> tuple[Known, int]:
    (one,) = given
    axis = int(node.attributes.get("axis", 1))  # type: ignore[arg-type]
    require(0 <= axis <= len(one.shape))
    return Known((math.prod(one.shape[:axis]), math.prod(one.shape[axis:])), one.fixed), one.size


def _gemm(node: Node, given: Sequence[Known]) -> tuple[Known, int]:
    one, two, *bias = given
    rows, inner = one.shape[::-1] if node.attributes.get("transA") else one.shape
    same, columns = two.shape[::-1] if node.attributes.get("transB") else two.shape
    require(inner == same and not one.fixed and two.fixed and len(bias) <= 1)
    for more in bias:
        require(more.fixed and more.shape in ((columns,), (1, columns), (rows, columns)))
    return Known((rows, columns)), 2 * rows * inner * columns


def _normalised(node: Node, given: Sequence[Known]) -> tuple[Known, int]:
    one, scale, bias = given
    require(len(one.shape) in (3, 4) and not one.fixed and scale.fixed and bias.fixed)
    require(scale.shape == bias.shape == (one.shape[1],))
    return Known(one.shape), 8 * one.size


def _reshape(node: Node, given: Sequence[Known]) -> tuple[Known, int]:
    one, asked = given
    sides = _whole(asked)
    require(0 < len(sides) <= 8 and sides.count(-1) <= 1 and min(sides) >= -1)
    if not node.attributes.get("allowzero"):
        sides = [one.shape[place] if side == 0 else side for place, side in enumerate(sides)]
    left = math.prod(side for side in sides if side != -1)
    require(left > 0 and one.size % left == 0)
    shape = tuple(one.size // left if side == -1 else side for side in sides)
    require(math.prod(shape) == one.size)
    return Known(shape, one.fixed, one.values if len(shape) == 1 else None), one.size


def _resize(node: Node, given: Sequence[Known]) -> tuple[Known, int]:
    one, *rest = given
    names = (*node.inputs[1:], "", "", "")[:3]
    require(len(one.shape) == 4 and not one.fixed and len(rest) <= 3 and bool(names[1]) != bool(names[2]))
    require(not names[0] or (rest[0].fixed and len(rest[0].shape) == 1))
    if names[2]:
        sides = _whole(rest[2])
    else:
        scales = rest[1].values
        require(rest[1].type == FLOAT and scales is not None and len(scales) == 4)
        require(all(1 / 1024 <= scale <= 1024 for scale in scales or ()))
        sides = [math.floor(side * scale) for side, scale in zip(one.shape, scales or (), strict=True)]
    require(len(sides) == 4 and tuple(sides[:2]) == one.shape[:2] and min(sides) > 0)
    return Known(tuple(sides)), 32 * math.prod(sides)


def _slice(node: Node, given: Sequence[Known]) -> tuple[Known, int]:
    one, starts, ends, *more = given
    first, last = _whole(starts), _whole(ends)
    axes = _whole(more[0]) if more else list(range(len(first)))
    steps = _whole(more[1]) if more[1:] else [1] * len(first)
    require(len(first) == len(last) == len(axes) == len(steps) and len(more) <= 2)
    places = [range(len(one.shape))[axis] for axis in axes]
    require(len(set(places)) == len(places) and all(0 < step < SIDES for step in steps))
    kept = [range(side) for side in one.shape]
    for place, start, end, step in zip(places, first, last, steps, strict=True):
        kept[place] = kept[place][start:end:step]
    shape = tuple(len(one) for one in kept)
    values = None
    if one.values is not None and len(one.shape) == 1:
        values = tuple(one.values[place] for place in kept[0])
    return Known(shape, one.fixed, values), math.prod(shape)


RULES: Final[Mapping[str, Rule]] = {
    "Add": _broadcast,
    "Cast": _same,
    "Concat": _concat,
    "Constant": _held,
    "Conv": _conv,
    "DepthToSpace": _depth_to_space,
    "DequantizeLinear": _quantised,
    "Div": _broadcast,
    "Flatten": _flatten,
    "Gemm": _gemm,
    "Identity": _same,
    "InstanceNormalization": _normalised,
    "LeakyRelu": _same,
    "Mul": _broadcast,
    "QuantizeLinear": _quantised,
    "Reshape": _reshape,
    "Resize": _resize,
    "Shape": _shape,
    "Slice": _slice,
    "Softmax": _same,
    "Sqrt": _same,
    "Tanh": _same,
}
"""The shape of what each operator gives, and how many operations that takes (ONNX, Operators.md)."""
