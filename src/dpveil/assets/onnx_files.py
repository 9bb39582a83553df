"""What an ONNX file asks an engine to do, read without running anything."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Final

GRAPH: Final = 7
FUNCTIONS: Final = 25
"""Fields of a model (ONNX, onnx.proto: ModelProto)."""
NODE: Final = 1
"""Field of a graph."""
OPERATOR: Final = 4
ATTRIBUTE: Final = 5
DOMAIN: Final = 7
INPUT: Final = 1
OUTPUT: Final = 2
"""Fields of a node."""
WEIGHTS: Final = 5
GIVEN: Final = 11
SPARSE: Final = 15
"""Fields of a graph: constants, inputs, and sparse constants."""
DIMS: Final = 1
TENSOR_NAME: Final = 8
"""Fields of a tensor."""
VALUE_NAME: Final = 1
"""Field of an input."""
TENSOR: Final = 5
SPARSE_VALUE: Final = 22
"""Fields of an attribute: a tensor, and a sparse one."""
KEEPING: Final = frozenset(
    {
        "Cast",
        "DepthToSpace",
        "Flatten",
        "Identity",
        "LeakyRelu",
        "Reshape",
        "Slice",
        "Softmax",
        "Sqrt",
        "Tanh",
    }
)
"""Operators that make no more numbers than they are given."""
BROADCASTING: Final = frozenset({"Add", "Div", "Mul"})
"""Operators that make at most the product."""
RANK: Final = 8
"""Most dimensions of an array."""
MOST: Final = 1 << 31
"""Least length that no dimension of a constant has."""
GRAPHS: Final = (6, 11)
"""Fields of an attribute that hold graphs of their own, such as the body of a loop."""
KEYS: Final = 1 << 32
"""Least number that is no key of a field: number and wire type in 32 bits."""
WIDTHS: Final = {1: 8, 5: 4}
"""Bytes of protobuf's fixed fields, by wire type."""


def operators(contents: bytes) -> set[str]:
    """Return the names of the operators in the contents of an ONNX file.

    Raises `ValueError` for contents that are none, and for functions, operators of other domains and graphs
    within the graph: who knows the names knows what is run.
    """
    fields = list(_fields(contents))
    if any(number == FUNCTIONS for number, _ in fields):
        raise ValueError("the file has functions of its own")
    names = set()
    for node in (node for n, graph in fields if n == GRAPH for m, node in _fields(graph) if m == NODE):
        parts = list(_fields(node))
        if any(number == DOMAIN and value for number, value in parts):
            raise ValueError("the file has operators of another domain")
        if any(n == ATTRIBUTE and any(m in GRAPHS for m, _ in _fields(value)) for n, value in parts):
            raise ValueError("the file has graphs within its graph")
        names |= {value.decode("utf-8") for number, value in parts if number == OPERATOR}
    if not names:
        raise ValueError("the file has no operators")
    return names


def constants(contents: bytes) -> int:
    """Return at most how many numbers an engine holds that computes all that does not depend on the input.

    Engines do so while they read a file, before anything else of it can be measured. Counted are tensors in
    the file, and what nodes make of them and of shapes alone. Raises `ValueError` for contents that are no
    ONNX file, for nodes that use what no node before them made, and for operators on such numbers that no
    network needs.
    """
    graphs = [graph for number, graph in _fields(contents) if number == GRAPH]
    if len(graphs) != 1:
        raise ValueError("the file has no single graph")
    fields = list(_fields(graphs[0]))
    if any(number == SPARSE for number, _ in fields):
        raise ValueError("the file has sparse tensors")
    sizes = dict(_tensor(part) for number, part in fields if number == WEIGHTS)
    made = {_text(part, VALUE_NAME) for number, part in fields if number == GIVEN} | set(sizes)
    total = sum(sizes.values())
    for node in (part for number, part in fields if number == NODE):
        parts = list(_fields(node))
        inputs = [value.decode("utf-8") for number, value in parts if number == INPUT and value]
        outputs = [value.decode("utf-8") for number, value in parts if number == OUTPUT]
        if not made.issuperset(inputs):
            raise ValueError("the file's nodes are not in order")
        made.update(outputs)
        name = _text(node, OPERATOR)
        if name == "Constant":
            size = sum(_attribute(value) for number, value in parts if number == ATTRIBUTE)
        elif name == "Shape":
            size = RANK
        elif inputs and all(one in sizes for one in inputs):
            size = _computed(name, [sizes[one] for one in inputs])
        else:
            continue
        sizes |= dict.fromkeys(outputs, size)
        total += size * len(outputs)
    return total


def _computed(operator: str, sizes: Sequence[int]) -> int:
    """Return at most how many numbers an operator makes of constants of these sizes."""
    if operator in KEEPING:
        return max(sizes)
    if operator == "Concat":
        return sum(sizes)
    if operator in BROADCASTING:
        return math.prod(sizes)
    raise ValueError(f"the file computes {operator} of constants")


def _tensor(tensor: bytes) -> tuple[str, int]:
    """Return the name of a tensor, and how many numbers it says that it has."""
    dims = [number for field, value in _fields(tensor) if field == DIMS for number in _numbers(value)]
    if any(number >= MOST for number in dims):
        raise ValueError("the file has impossible tensors")
    return _text(tensor, TENSOR_NAME), math.prod(dims)


def _attribute(attribute: bytes) -> int:
    """Return at most how many numbers an attribute has."""
    parts = list(_fields(attribute))
    if any(number == SPARSE_VALUE for number, _ in parts):
        raise ValueError("the file has sparse tensors")
    return sum(_tensor(value)[1] for number, value in parts if number == TENSOR) + len(attribute)


def _numbers(value: bytes) -> Iterator[int]:
    """Yield the numbers of a field, packed or not."""
    at = 0
    while at < len(value):
        number, at = _varint(value, at)
        yield number


def _text(message: bytes, field: int) -> str:
    """Return a text field of a message, the last one if it is repeated, as readers of protobuf do."""
    return [b"", *(value for number, value in _fields(message) if number == field)][-1].decode("utf-8")


def _fields(message: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield number and contents of every field of a protobuf message; of a number, its encoded form."""
    at = 0
    while at < len(message):
        key, at = _varint(message, at)
        if key >= KEYS:  # which other readers take for a small one
            raise ValueError("the file is no ONNX file")
        kind, size = key & 7, 0
        if kind == 0:
            _, end = _varint(message, at)
            size = end - at
        elif kind == 2:
            size, at = _varint(message, at)
        elif kind in WIDTHS:
            size = WIDTHS[kind]
        else:
            raise ValueError("the file is no ONNX file")
        if at + size > len(message):
            raise ValueError("the file is cut off")
        yield key >> 3, message[at : at + size]
        at += size


def _varint(message: bytes, at: int) -> tuple[int, int]:
    """Return the number at a position, and the position after it."""
    value = 0
    for place in range(10):
        if at + place >= len(message):
            break
        byte = message[at + place]
        value |= (byte & 127) << (7 * place)
        if byte < 128:
            return value, at + place + 1
    raise ValueError("the file is no ONNX file")
