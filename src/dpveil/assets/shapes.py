"""What the layers of a network from anybody give, and take: shapes, memory and work, without an engine.

Engines are not asked: they end the whole process for layers whose shapes do not fit together.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from dpveil.assets.onnx_files import Array, Graph, Node
from dpveil.assets.shape_rules import FLOAT, LONG, RULES, SIDES, Known, Shape, constant, require

MOVING: Final = frozenset({"Concat", "Flatten", "Identity", "Reshape", "Slice"})
"""Operators that take numbers of either type, all of one, and give the same."""


@dataclass(frozen=True)
class Measured:
    """How many numbers all layers give that depend on the input, how many do not, and how many operations
    those take.
    """

    numbers: int
    fixed: int
    work: int


def measured(graph: Graph, takes: Shape, gives: Shape) -> Measured:
    """Return what a network takes for an input of the shape `takes`.

    Raises `ValueError` for layers whose shapes do not fit together, that need a constant and have none, or
    that make nothing, and for an output of another shape than `gives`.
    """
    known = {"": Known(()), graph.input.name: Known(takes)}
    known |= {name: constant(array) for name, array in graph.arrays.items()}
    work = 0
    for node in graph.nodes:
        given = [known[name] for name in node.inputs]
        try:
            kind = _type(node, given)
            out, took = RULES[node.operator](node, given)
        except (IndexError, KeyError, TypeError, ValueError) as error:
            raise ValueError(f"the file's layers do not fit together: {node.operator}") from error
        if any(not 0 < side < SIDES for side in out.shape):
            raise ValueError(f"the file's layers make nothing: {node.operator}")
        known[node.output] = replace(out, type=kind)
        work += took
    if known[graph.output.name].shape != gives or known[graph.output.name].fixed:
        raise ValueError("the network gives something else")
    fixed = sum(one.size for one in known.values() if one.fixed)
    return Measured(sum(one.size for one in known.values() if not one.fixed), fixed, work)


def _type(node: Node, given: Sequence[Known]) -> int:
    """Return the type of what a node gives; engines end the process for layers of two types."""
    if node.operator in ("Constant", "Shape"):
        value = node.attributes.get("value")
        return value.type if isinstance(value, Array) else LONG
    if node.operator == "Cast":
        kind = node.attributes["to"]
        require(kind in (FLOAT, LONG))
        return int(kind)  # type: ignore[arg-type]
    if node.operator in ("QuantizeLinear", "DequantizeLinear"):
        return given[-1].type if node.operator == "QuantizeLinear" else FLOAT
    data = given[:1] if node.operator in ("Reshape", "Resize", "Slice") else given
    (kind,) = {one.type for one in data}
    require(kind == FLOAT or (kind == LONG and node.operator in MOVING))
    return kind
