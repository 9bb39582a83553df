"""ONNX files from anybody: read strictly, and written anew, so that an engine reads nothing but our bytes.

Readers of protobuf disagree about fields that come twice, that have another wire type, or that they do not
know; what is written here has none of them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np

from dpveil.assets.operators import MOST_INPUTS, OPERATORS, TYPES, fits
from dpveil.assets.protobuf import (
    BYTES,
    FIXED32,
    VARINT,
    Fields,
    field,
    fields,
    number_in,
    numbers_in,
    only,
)

VERSIONS: Final = range(11, 24)
"""Versions of ONNX's operators that a file may ask for."""
FORMAT: Final = 8
"""Version of the file format that is written (ONNX, onnx.proto: IR_VERSION)."""
NODES: Final = 5000
"""Most nodes; StyleGAN2 at 1024 pixels has some 2000."""
RANK: Final = 8
"""Most dimensions of an array."""
UNUSED: Final = {2: BYTES, 3: BYTES, 4: BYTES, 5: VARINT, 6: BYTES, 14: BYTES}
MODEL: Final = UNUSED | {1: VARINT, 7: BYTES, 8: BYTES}
OPSET: Final = {1: BYTES, 2: VARINT}
GRAPH: Final = {1: BYTES, 2: BYTES, 5: BYTES, 10: BYTES, 11: BYTES, 12: BYTES, 13: BYTES, 16: BYTES}
VALUE: Final = {1: BYTES, 2: BYTES, 3: BYTES}
KIND: Final = {1: BYTES, 6: BYTES}
KIND_OF_ARRAY: Final = {1: VARINT, 2: BYTES}
SHAPE: Final = {1: BYTES}
LENGTH: Final = {1: VARINT, 2: BYTES, 3: BYTES}
NODE: Final = {1: BYTES, 2: BYTES, 3: BYTES, 4: BYTES, 5: BYTES, 6: BYTES, 7: BYTES, 9: BYTES}
ATTRIBUTE: Final = {1: BYTES, 2: FIXED32, 3: VARINT, 4: BYTES, 5: BYTES, 8: VARINT, 13: BYTES, 20: VARINT}
ARRAY: Final = {1: VARINT, 2: VARINT, 8: BYTES, 9: BYTES, 12: BYTES}
"""Fields that are read, and those that mean nothing to an engine, with their wire types (onnx.proto)."""
FLOAT, INT, STRING, TENSOR, INTS = 1, 2, 3, 4, 7
"""Kinds of attributes."""
PLACES: Final = {FLOAT: 2, INT: 3, STRING: 4, TENSOR: 5, INTS: 8}
"""Their fields."""


@dataclass(frozen=True)
class Array:
    """A constant: its shape, its type, one of `TYPES`, and its numbers, which it has all."""

    shape: tuple[int, ...]
    type: int
    contents: bytes

    @property
    def size(self) -> int:
        """How many numbers it has."""
        return math.prod(self.shape)


Attribute: TypeAlias = float | int | str | Array | tuple[int, ...]


@dataclass(frozen=True)
class Node:
    """An operator, the values that it takes, "" for none, its result, and its attributes by name."""

    operator: str
    inputs: tuple[str, ...]
    output: str
    attributes: dict[str, Attribute]


@dataclass(frozen=True)
class Value:
    """An input or output, and its shape, with None where a length is free."""

    name: str
    shape: tuple[int | None, ...]


@dataclass(frozen=True)
class Graph:
    """A network of one input and one output; every node takes what is made before it."""

    version: int
    input: Value
    output: Value
    arrays: dict[str, Array]
    nodes: tuple[Node, ...]

    def written(self, takes: Sequence[int], gives: Sequence[int]) -> bytes:
        """Return an ONNX file of the graph for an input and an output of these shapes.

        Names are numbers, and nothing is in it that `read` did not understand. Raises `ValueError` if the
        network is for other shapes.
        """
        for value, shape in ((self.input, takes), (self.output, gives)):
            pairs = zip(value.shape, shape, strict=False)
            if len(value.shape) != len(shape) or any(own not in (None, one) for own, one in pairs):
                raise ValueError("the network is for other shapes")
        made = [self.input.name, *self.arrays, *(node.output for node in self.nodes)]
        names = {"": ""} | {name: f"v{place}" for place, name in enumerate(made)}
        parts = [field(1, _written_node(node, names)) for node in self.nodes]
        parts.append(field(2, "network"))
        parts += [field(5, _written_array(array, names[name])) for name, array in self.arrays.items()]
        parts.append(field(11, _written_value(names[self.input.name], takes)))
        parts.append(field(12, _written_value(names[self.output.name], gives)))
        opset = field(1, "") + field(2, self.version)
        return field(1, FORMAT) + field(8, opset) + field(7, b"".join(parts))


def read(contents: bytes) -> Graph:
    """Return the graph in the contents of an ONNX file, without running anything.

    Raises `ValueError` for contents that are none, for operators, attributes, types and parts that no network
    of dpveil needs, such as functions, other files and graphs within the graph, and for nodes that take what
    no node before them made.
    """
    model = fields(contents, MODEL, "file")
    opset = fields(only(model, 8, "file"), OPSET, "file's list of operators")
    version = number_in(only(opset, 2, "file's list of operators"))
    if any(opset[1]) or version not in VERSIONS:
        raise ValueError("the file has operators of another domain or version")
    graph = fields(only(model, 7, "file"), GRAPH, "graph")
    shown, asked = (_value(only(graph, number, "graph")) for number in (11, 12))
    arrays: dict[str, Array] = {}
    for part in graph[5]:
        found = fields(part, ARRAY, "array")
        _new(_text(found, 8), {shown.name, *arrays})
        arrays[_text(found, 8)] = _array(found)
    if not 0 < len(graph[1]) <= NODES:
        raise ValueError(f"the graph has {len(graph[1])} nodes, not 1 to {NODES}")
    return Graph(version, shown, asked, arrays, _nodes(graph[1], {shown.name, *arrays}, asked.name))


def _nodes(parts: Sequence[bytes], made: set[str], asked: str) -> tuple[Node, ...]:
    """Return the nodes in their order; `made` are the values before them, `asked` the output."""
    nodes = []
    for part in parts:
        node = _node(part)
        if not made.issuperset(one for one in node.inputs if one):
            raise ValueError("the graph's nodes are not in order")
        _new(node.output, made)
        made.add(node.output)
        nodes.append(node)
    if asked not in made:
        raise ValueError("no node makes the graph's output")
    return tuple(nodes)


def _node(part: bytes) -> Node:
    found = fields(part, NODE, "node")
    name, inputs = _text(found, 4), tuple(one.decode() for one in found[1])
    if any(found[7]):
        raise ValueError("the file has operators of another domain")
    if name not in OPERATORS or len(inputs) > MOST_INPUTS:
        raise ValueError("the file has operators that no network needs")
    attributes: dict[str, Attribute] = {}
    for one in found[5]:
        key, value = _attribute(one)
        _new(key, attributes)
        known = key in OPERATORS[name]
        if not known or not (isinstance(value, Array) if key == "value" else fits(key, value)):
            raise ValueError(f"the file has {name} with an attribute that no network needs")
        attributes[key] = value
    if (name == "Constant") != ("value" in attributes):
        raise ValueError("the file has a constant without a value")
    return Node(name, inputs, only(found, 2, "node").decode(), attributes)


def _attribute(part: bytes) -> tuple[str, Attribute]:
    """Return name and value of an attribute, which has no other value beside it."""
    found = fields(part, ATTRIBUTE, "attribute")
    kind = number_in(only(found, 20, "attribute"))
    if kind not in PLACES or any(found[place] for key, place in PLACES.items() if key != kind):
        raise ValueError("the file has an attribute of a kind that no network needs")
    name, place = _text(found, 1), PLACES[kind]
    if kind == INTS:
        return name, tuple(numbers_in(found[place]))
    contents = only(found, place, "attribute")
    if kind == FLOAT:
        return name, float(np.frombuffer(contents, "<f4")[0])
    if kind == INT:
        return name, number_in(contents)
    return name, contents.decode() if kind == STRING else _array(fields(contents, ARRAY, "array"))


def _array(found: Fields) -> Array:
    """Return a constant; its numbers must be there, as many as its shape says."""
    shape, kind = tuple(numbers_in(found[1])), number_in(only(found, 2, "array"))
    if kind not in TYPES or len(shape) > RANK or not all(0 <= size < 1 << 31 for size in shape):
        raise ValueError("the file has impossible arrays")
    if 0 in shape and len(shape) > 1:
        raise ValueError("the file has impossible arrays")
    contents = only(found, 9, "array") if found[9] or 0 not in shape else b""
    if len(contents) != math.prod(shape) * TYPES[kind].itemsize:
        raise ValueError("the file has arrays without their numbers")
    return Array(shape, kind, contents)


def _value(part: bytes) -> Value:
    """Return an input or output, which is an array."""
    found = fields(part, VALUE, "value")
    kind = fields(only(found, 2, "value"), KIND, "value")
    shape = fields(only(fields(only(kind, 1, "value"), KIND_OF_ARRAY, "value"), 2, "value"), SHAPE, "shape")
    lengths = [fields(one, LENGTH, "length")[1] for one in shape[1]]
    if len(lengths) > RANK or any(len(one) > 1 for one in lengths):
        raise ValueError("the file has impossible values")
    return Value(_text(found, 1), tuple(number_in(one[0]) if one else None for one in lengths))


def _text(found: Fields, number: int) -> str:
    """Return a name, which comes once and is not empty."""
    text = only(found, number, "part").decode()
    if not text:
        raise ValueError("the file has parts without a name")
    return text


def _new(name: str, known: set[str] | dict[str, Attribute]) -> None:
    if name in known:
        raise ValueError("the file has two parts of one name")


def _written_node(node: Node, names: dict[str, str]) -> bytes:
    parts = [field(1, names[one]) for one in node.inputs]
    parts += [field(2, names[node.output]), field(3, names[node.output]), field(4, node.operator)]
    parts += [field(5, field(1, key) + _written_attribute(one)) for key, one in node.attributes.items()]
    return b"".join(parts)


def _written_attribute(value: Attribute) -> bytes:
    if isinstance(value, float):
        return field(2, np.float32(value).tobytes(), FIXED32) + field(20, FLOAT)
    if isinstance(value, int):
        return field(3, value) + field(20, INT)
    if isinstance(value, str):
        return field(4, value) + field(20, STRING)
    if isinstance(value, Array):
        return field(5, _written_array(value)) + field(20, TENSOR)
    return b"".join(field(8, one) for one in value) + field(20, INTS)


def _written_array(array: Array, name: str = "") -> bytes:
    shape = b"".join(field(1, size) for size in array.shape)
    called = field(8, name) if name else b""
    return shape + field(2, array.type) + called + field(9, array.contents)


def _written_value(name: str, shape: Sequence[int]) -> bytes:
    lengths = b"".join(field(1, field(1, size)) for size in shape)
    return field(1, name) + field(2, field(1, field(1, 1) + field(2, lengths)))
