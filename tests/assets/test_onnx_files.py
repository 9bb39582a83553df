"""ONNX files from anybody are read strictly, without running them, and engines get them written anew."""

from __future__ import annotations

import struct

import numpy as np
import pytest

from dpveil.assets.engines import OpenCV
from dpveil.assets.onnx_files import read
from tiny_onnx import completion, encoder, field, ints, model, node, repainter, tensor, value, varint

SIDE = 64
PICTURE = (1, 3, SIDE, SIDE)
SHAPES = (value("seen", PICTURE),), field(12, value("made", PICTURE))
START = field(5, tensor("c0", np.zeros((1, 1, 64, 64))))
WEIGHTS = field(5, tensor("w", np.eye(3)[..., None, None]))
WHOLE = field(5, field(1, "unheard_of") + field(3, 1) + field(20, 2))


def shown(last: str = "") -> bytes:
    """Return the node that copies the input, or adds the constant `last`."""
    inputs = ("seen", last) if last else ("seen",)
    return field(1, node("Add" if last else "Identity", inputs, "made"))


def odd(number: int, contents: bytes = b"\0\0\0\0") -> bytes:
    """Return a field of 4 bytes, which readers of protobuf skip if another wire type is due."""
    return varint(number << 3 | 5) + contents


def test_the_operators_of_a_network_are_told() -> None:
    graph = read(completion())
    assert [(one.operator, one.inputs, one.output) for one in graph.nodes] == [
        ("Conv", ("seen", "w", "b"), "painted")
    ]
    assert graph.nodes[0].attributes == {"kernel_shape": (1, 1)}
    assert (graph.input.name, graph.output.name, set(graph.arrays)) == ("seen", "painted", {"w", "b"})
    assert (graph.input.shape, graph.output.shape) == ((1, 18, 64, 64), (1, 7, 64, 64))


def test_what_is_written_gives_the_same_numbers_and_nothing_else_is_in_it() -> None:
    contents = encoder(np.random.default_rng(0).normal(size=(5, 3, 8, 8)), np.arange(5.0))
    more = field(2, "maker") + field(6, "words") + field(14, field(1, "key"))
    written = read(contents + more).written((1, 3, 8, 8), (1, 5))
    picture = np.random.default_rng(1).normal(size=(1, 3, 8, 8)).astype(np.float32)
    assert (OpenCV(written)(picture)[0] == OpenCV(contents)(picture)[0]).all()
    assert read(written).written((1, 3, 8, 8), (1, 5)) == written
    assert all(word not in written for word in (b"maker", b"words", b"key", b"picture", b"code"))


@pytest.mark.parametrize(
    ("more", "match"),
    [
        (field(25, field(1, "own")), "field 25"),
        (field(7, field(1, field(4, "Conv") + field(7, "com.microsoft"))), "fields 7"),
        (field(8, field(2, 13)), "fields 8"),
        (b"\x3a\x7f", "cut off"),
        (b"\xff" * 11, "no ONNX"),
        (b"\x3b", "no ONNX"),
        (odd(7), "wire type 5"),
        (varint((7 << 3 | 2) + (1 << 32)) + field(7, b"")[1:], "no ONNX"),
        (b"\x28\x00" * 200_001, "more than 200000 parts"),
    ],
)
def test_what_readers_understand_differently_is_refused(more: bytes, match: str) -> None:
    with pytest.raises(ValueError, match=match):
        read(completion() + more)


@pytest.mark.parametrize(
    ("part", "match"),
    [
        (field(1, node("Loop", ("seen",), "x")), "operators that no"),
        (field(1, node("Conv", ("seen",), "x") + field(7, "com.microsoft")), "another domain"),
        (field(1, node("Conv", ("seen",), "x") + field(5, field(6, b""))), "field 6"),
        (field(1, node("Conv", ("seen",), "x") + field(5, field(11, b""))), "field 11"),
        (field(1, node("Conv", ("seen", "w"), "x", strides=(0, 0))), "Conv with an attribute"),
        (field(1, node("Conv", ("seen", "w"), "x", strides=(1,) * 9)), "Conv with an attribute"),
        (field(1, node("Conv", ("seen", "w"), "x", auto_pad=(1,))), "Conv with an attribute"),
        (field(1, node("Resize", ("seen",), "x", keep_aspect_ratio_policy=(1,))), "Resize with"),
        (field(1, node("Conv", ("seen", "w"), "x", pads=(0,), group=(1,))), "Conv with an attribute"),
        (
            field(1, node("Cast", ("seen",), "x") + field(5, field(1, "to") + field(3, 8) + field(20, 2))),
            "Cast",
        ),
        (field(1, node("Conv", ("seen",), "x") + odd(4, b"Cast")), "wire type"),
        (field(1, node("Conv", ("seen",), "x") + field(4, "Cast")), "fields 4"),
        (field(1, node("Conv", ("seen",), "x") + WHOLE), "Conv with an attribute"),
        (
            field(1, node("Cast", ("seen",), "x") + field(5, field(1, "group") + field(3, 1) + field(20, 2))),
            "Cast",
        ),
        (field(1, node("Identity", ("seen",), "made")), "of one name"),
        (field(1, node("Identity", ("seen",), "c0")), "of one name"),
        (field(1, node("Identity", ("later",), "x")), "not in order"),
        (field(1, node("Constant", (), "x")), "without a value"),
        (field(1, node("Add", ("seen",) * 33, "x")), "operators that no"),
        (field(5, tensor("c0", np.zeros(1))), "of one name"),
        (field(5, tensor("seen", np.zeros(1))), "of one name"),
        (field(5, tensor("q", np.zeros(1)) + odd(1)), "wire type"),
        (field(5, tensor("q", np.zeros(1)) + odd(8, b"zzzz")), "wire type"),
        (field(5, tensor("q", np.zeros(1)) + field(8, "p")), "fields 8"),
        (field(5, tensor("q", np.zeros(1)) + field(13, field(1, "location"))), "field 13"),
        (field(5, field(1, 9) + field(1, 3) + field(2, 1) + field(8, "q")), "fields 9"),
        (field(5, field(1, 9) + field(2, 1) + field(8, "q") + field(9, b"\0" * 35)), "without their"),
        (field(5, field(1, 1 << 40) + field(2, 1) + field(8, "q") + field(9, b"")), "impossible"),
        (field(5, field(1, (1 << 64) - 1) + field(2, 1) + field(8, "q") + field(9, b"")), "impossible"),
        (field(5, field(1, 0) * 2 + field(2, 1) + field(8, "q") + field(9, b"")), "impossible"),
        (field(5, field(1, 1) * 9 + field(2, 1) + field(8, "q") + field(9, b"\0" * 4)), "impossible"),
        (field(5, field(1, 1) + field(2, 8) + field(8, "q") + field(9, b"a")), "impossible"),
        (field(15, b""), "field 15"),
        (field(11, value("second", PICTURE)), "fields 11"),
        (field(12, value("second", PICTURE)), "fields 12"),
    ],
)
def test_parts_that_no_network_needs_are_refused(part: bytes, match: str) -> None:
    sound = model(shown(), START + WEIGHTS, *SHAPES)
    assert len(read(sound).nodes) == 1
    with pytest.raises(ValueError, match=match):
        read(model(shown() + part, START + WEIGHTS, *SHAPES))


def test_numbers_of_attributes_must_be_finite() -> None:
    def leaky(alpha: float) -> bytes:
        told = field(1, "alpha") + odd(2, struct.pack("<f", alpha)) + field(20, 1)
        return model(field(1, node("LeakyRelu", ("seen",), "made") + field(5, told)), b"", *SHAPES)

    assert read(leaky(0.25)).nodes[0].attributes == {"alpha": 0.25}
    with pytest.raises(ValueError, match="LeakyRelu"):
        read(leaky(float("nan")))


def test_an_output_that_no_node_makes_is_refused() -> None:
    with pytest.raises(ValueError, match="no node makes"):
        read(model(field(1, node("Identity", ("seen",), "x")), b"", *SHAPES))


def test_no_contents_are_no_network() -> None:
    for contents in (b"", b"ORTM" * 9, completion()[:40], model(b"", b"", *SHAPES)):
        with pytest.raises(ValueError, match=r"field|ONNX|cut off|nodes"):
            read(contents)


def test_free_lengths_fit_any_shape_and_others_only_theirs() -> None:
    free = (value("seen", ("n", 3, "h", "w")),), field(12, value("made", ("n", 3, "h", "w")))
    assert read(read(model(shown(), b"", *free)).written(PICTURE, PICTURE)).input.shape == PICTURE
    for takes, gives in (((1, 3, 64), PICTURE), ((1, 4, 64, 64), PICTURE), (PICTURE, (1, 1, 64, 64))):
        with pytest.raises(ValueError, match="other shapes"):
            read(model(shown(), b"", *free)).written(takes, gives)


def test_thousands_of_nodes_are_refused() -> None:
    nodes = b"".join(field(1, node("Identity", ("seen",), f"n{n}")) for n in range(5000))
    with pytest.raises(ValueError, match="has 5001 nodes"):
        read(model(nodes + shown(), b"", *SHAPES))


def test_a_network_of_every_kind_of_attribute_stays_the_same() -> None:
    wide = {"kernel_shape": (3, 3), "pads": (1, 1, 1, 1), "strides": (1, 1), "dilations": (1, 1)}
    words = field(5, field(1, "mode") + field(4, "nearest") + field(20, 3))
    nodes = field(1, node("Conv", ("seen", "w"), "a", **wide))
    nodes += field(1, node("LeakyRelu", ("a",), "b") + field(5, field(1, "alpha") + odd(2) + field(20, 1)))
    nodes += field(1, node("Resize", ("b", "", "twice"), "c") + words)
    nodes += field(1, node("Conv", ("c", "w"), "made", **{**wide, "strides": (2, 2)}))
    arrays = field(5, tensor("w", np.ones((3, 3, 3, 3)) / 27)) + field(
        5, tensor("twice", np.array([1, 1, 2, 2]))
    )
    contents = model(nodes, arrays, *SHAPES)
    written = read(contents).written(PICTURE, PICTURE)
    picture = np.random.default_rng(2).normal(size=PICTURE).astype(np.float32)
    assert (OpenCV(written)(picture)[0] == OpenCV(contents)(picture)[0]).all()
    assert read(repainter()).version == 13
    assert ints("pads", (1,)) not in written
