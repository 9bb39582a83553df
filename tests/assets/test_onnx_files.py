"""Operators in an ONNX file are found without running it, and what could hide others is refused."""

from __future__ import annotations

import pytest

from dpveil.assets.onnx_files import operators
from tiny_onnx import completion, field, varint


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
