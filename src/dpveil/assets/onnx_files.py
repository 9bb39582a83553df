"""What an ONNX file asks an engine to do, read without running anything."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

GRAPH: Final = 7
FUNCTIONS: Final = 25
"""Fields of a model (ONNX, onnx.proto: ModelProto)."""
NODE: Final = 1
"""Field of a graph."""
OPERATOR: Final = 4
ATTRIBUTE: Final = 5
DOMAIN: Final = 7
"""Fields of a node."""
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


def _fields(message: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield number and contents of every field of a protobuf message; numbers have no contents."""
    at = 0
    while at < len(message):
        key, at = _varint(message, at)
        if key >= KEYS:  # which other readers take for a small one
            raise ValueError("the file is no ONNX file")
        kind, size = key & 7, 0
        if kind == 0:
            _, at = _varint(message, at)
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
