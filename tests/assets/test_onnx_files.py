"""Operators in an ONNX file are found without running it, and what could hide others is refused."""

from __future__ import annotations

import numpy as np
import pytest

from dpveil.assets.onnx_files import constants, operators
from tiny_onnx import completion, field, model, node, numbers, tensor, value, varint


def test_the_operators_of_a_network_are_told() -> None:
    assert operators(completion()) == {"Conv"}


@pytest.mark.parametrize(
    ("more", "match"),
    [
        (field(25, field(1, "own")), "functions"),
        (field(7, field(1, field(4, "Conv") + field(7, "com.microsoft"))), "another domain"),
        (field(7, field(1, field(4, "Loop") + field(5, field(6, field(1, b""))))), "graphs within"),
        (field(7, field(1, field(4, "Loop") + field(5, field(11, field(1, b""))))), "graphs within"),
        (b"\x3a\x7f", "cut off"),
        (b"\xff" * 11, "no ONNX"),
        (b"\x3b", "no ONNX"),
        (varint((7 << 3 | 2) + (1 << 32)) + field(7, field(1, field(4, "Loop")))[1:], "no ONNX"),
    ],
)
def test_what_could_hide_operators_is_refused(more: bytes, match: str) -> None:
    with pytest.raises(ValueError, match=match):
        operators(completion() + more)


def test_operators_of_a_second_graph_count_too() -> None:
    """Readers of protobuf join the parts of a message that comes twice."""
    assert operators(completion() + field(7, field(1, field(4, "Loop")))) == {"Conv", "Loop"}


def test_no_contents_have_no_operators() -> None:
    for contents in (b"", b"ORTM" * 9, completion()[:40]):
        with pytest.raises(ValueError, match=r"operators|ONNX|cut off"):
            operators(contents)


SIDE = 64
SHAPES = (value("seen", (1, 3, SIDE, SIDE)),), field(12, value("made", (1, 3, SIDE, SIDE)))
START = field(5, tensor("c0", np.zeros((1, 1, 64, 64))))


def shown(last: str = "") -> bytes:
    """Return the node that copies the input, or adds the constant `last`."""
    inputs = ("seen", last) if last else ("seen",)
    return field(1, node("Add" if last else "Identity", inputs, "made"))


def doubled(times: int, start: str = "c") -> bytes:
    return b"".join(
        field(1, node("Concat", (f"{start}{n}", f"{start}{n}"), f"{start}{n + 1}")) for n in range(times)
    )


def test_what_an_engine_computes_of_constants_is_counted_without_an_engine() -> None:
    assert constants(completion(side=SIDE)) == 10 * 7 + 7
    for times in (0, 1, 14):
        used = model(doubled(times) + shown(f"c{times}"), START, *SHAPES)
        dead = model(doubled(times) + shown(), START, *SHAPES)
        assert constants(used) == constants(dead) == 4096 * (2 ** (times + 1) - 1)


def test_shapes_are_constants_and_so_is_what_is_made_of_them() -> None:
    first = field(1, node("Shape", ("seen",), "c0"))
    assert constants(model(first + doubled(3) + shown(), b"", *SHAPES)) == 8 * 15
    wide = START + field(5, tensor("d0", np.zeros((1, 4096, 1, 1))))
    outer = field(1, node("Mul", ("c0", "d0"), "e"))
    assert constants(model(outer + shown(), wide, *SHAPES)) == 2 * 4096 + 4096**2


def test_roots_keep_the_size_and_quotients_are_at_most_the_product() -> None:
    wide = START + field(5, tensor("d0", np.zeros((1, 8, 1, 1))))
    root = field(1, node("Sqrt", ("c0",), "e"))
    assert constants(model(root + shown(), START, *SHAPES)) == 2 * 4096
    outer = field(1, node("Div", ("c0", "d0"), "e"))
    assert constants(model(outer + shown(), wide, *SHAPES)) == 4096 + 8 + 8 * 4096


def test_numbers_in_nodes_are_counted() -> None:
    inside = field(1, "value") + field(5, numbers("n", range(500)))
    constant = field(1, field(2, "k") + field(4, "Constant") + field(5, inside))
    assert constants(model(constant + shown(), b"", *SHAPES)) >= 500


@pytest.mark.parametrize(
    ("nodes", "tensors", "problem"),
    [
        (field(1, node("Conv", ("c0", "c0"), "c1")), START, "Conv of constants"),
        (field(1, node("Resize", ("c0", "c0", "c0"), "c1")), START, "Resize of constants"),
        (field(1, node("Concat", ("c9", "c9"), "c1")), START, "not in order"),
        (b"", field(15, b""), "sparse"),
        (field(1, field(4, "Constant") + field(2, "k") + field(5, field(22, b""))), b"", "sparse"),
        (b"", field(5, field(1, 1 << 40) + field(8, "huge")), "impossible"),
        (b"", field(5, field(1, (1 << 64) - 1) + field(8, "negative")), "impossible"),
    ],
)
def test_what_cannot_be_counted_is_refused(nodes: bytes, tensors: bytes, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        constants(model(nodes + shown(), tensors, *SHAPES))


def test_two_graphs_are_none() -> None:
    with pytest.raises(ValueError, match="single graph"):
        constants(completion(side=SIDE) + field(7, shown()))
