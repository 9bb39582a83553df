"""What networks take is known before an engine sees them, and layers that do not fit together are refused."""

from __future__ import annotations

import numpy as np
import pytest

from dpveil.assets.engines import OnnxRuntime, OpenCV
from dpveil.assets.onnx_files import read
from dpveil.assets.shapes import Measured, measured
from tiny_onnx import (
    completion,
    decoder,
    encoder,
    field,
    in_8_bits,
    model,
    node,
    numbers,
    small,
    tensor,
    value,
)

SIDE = 64
PICTURE = (1, 3, SIDE, SIDE)
SHAPES = (value("seen", PICTURE),), field(12, value("made", PICTURE))
START = field(5, tensor("c0", np.zeros((1, 1, 64, 64))))
EYE = field(5, tensor("w", np.eye(3)[..., None, None]))


def whole(name: str, value_: int) -> bytes:
    return field(5, field(1, name) + field(3, value_ % (1 << 64)) + field(20, 2))


def shown(last: str = "") -> bytes:
    """Return the node that copies the input, or adds the constant `last`."""
    inputs = ("seen", last) if last else ("seen",)
    return field(1, node("Add" if last else "Identity", inputs, "made"))


def doubled(times: int, start: str = "c") -> bytes:
    return b"".join(
        field(1, node("Concat", (f"{start}{n}", f"{start}{n}"), f"{start}{n + 1}") + whole("axis", 0))
        for n in range(times)
    )


def of(nodes: bytes, tensors: bytes = b"") -> Measured:
    return measured(read(model(nodes, tensors, *SHAPES)), PICTURE, PICTURE)


def test_a_convolution_is_measured() -> None:
    found = measured(read(completion(side=SIDE)), (1, 18, SIDE, SIDE), (1, 7, SIDE, SIDE))
    assert found == Measured(25 * SIDE**2 + 1, 18 * 7 + 7, 2 * 18 * 7 * SIDE**2)


def test_encoders_and_decoders_are_measured() -> None:
    there, back = np.ones((5, 3, 8, 8)), np.ones((5, 3, 8, 8))
    assert measured(read(encoder(there, np.ones(5))), (1, 3, 8, 8), (1, 5)).work == 2 * 5 * 192 + 5
    found = measured(read(decoder(back, np.ones((3, 8, 8)))), (1, 5), (1, 3, 8, 8))
    assert (found.fixed, found.work) == (5 * 192 + 192 + 4, 2 * 5 * 192 + 192)


def test_what_an_engine_computes_of_constants_is_counted_without_an_engine() -> None:
    for times in (0, 1, 14):
        assert of(doubled(times) + shown(), START).fixed == 4096 * (2 ** (times + 1) - 1)


def test_shapes_are_constants_and_so_is_what_is_made_of_them() -> None:
    first = field(1, node("Shape", ("seen",), "c0"))
    assert of(first + doubled(3) + shown()).fixed == 4 * 15


def test_roots_keep_the_size_and_quotients_have_the_shape_of_both() -> None:
    wide = START + field(5, tensor("d0", np.zeros((8, 1, 1, 1))))
    root = field(1, node("Sqrt", ("c0",), "e"))
    assert of(root + shown(), START).fixed == 2 * 4096
    outer = field(1, node("Div", ("c0", "d0"), "e"))
    assert of(outer + shown(), wide).fixed == 4096 + 8 + 8 * 4096


def test_numbers_in_nodes_are_counted() -> None:
    inside = field(1, "value") + field(5, numbers("n", range(500))) + field(20, 4)
    constant = field(1, field(2, "k") + field(4, "Constant") + field(5, inside))
    assert of(constant + shown()).fixed == 500


NEAREST = field(5, field(1, "mode") + field(4, "nearest") + field(20, 3))
LONGS = field(5, numbers("two", (2,))) + field(5, numbers("zero", (0,))) + field(5, numbers("back", (-1,)))
LONGS += field(5, numbers("one", (1,)))
FOUR = field(5, tensor("four", np.zeros((4, 1, 1, 1))))
HALF = field(5, field(1, 1) * 4 + field(2, 10) + field(8, "h") + field(9, b"\0\0"))
SCALES = field(5, tensor("s", np.array([1, 1, 0.5, 2])))


STEP = field(5, tensor("step", np.array(0.5)))
STEPS = field(5, tensor("steps", np.full(3, 0.5)))
ZEROS = small("u", 2) + small("i", 3) + small("l", 6) + small("many", 3, (3,)) + small("most", 3, (4,))
QUANTISED = STEP + STEPS + ZEROS + small("w8", 3, (3, 3, 1, 1))


@pytest.mark.parametrize(
    "part",
    [
        node("Conv", ("c0", "c0"), "x"),
        node("Conv", ("seen", "seen"), "x"),
        node("Conv", ("seen", "c0"), "x"),
        node("Conv", ("seen", "w"), "x", kernel_shape=(3, 3)),
        node("Conv", ("seen", "w"), "x", strides=(1, 1, 1)),
        node("Conv", ("seen", "w"), "x") + whole("group", 3),
        node("Conv", ("seen", "w", "c0"), "x"),
        node("Conv", ("seen",), "x"),
        node("Conv", ("seen", "h"), "x"),
        node("Add", ("c0",), "x"),
        node("Add", ("seen", "h"), "x"),
        node("Add", ("seen", "two"), "x"),
        node("Add", ("two", "two"), "x"),
        node("Add", ("seen", "s"), "x"),
        node("Concat", ("seen", "w"), "x") + whole("axis", 1),
        node("Concat", ("seen", "seen"), "x"),
        node("Gemm", ("seen", "w"), "x"),
        node("Reshape", ("seen", "two"), "x"),
        node("Reshape", ("seen", "c0"), "x"),
        node("Reshape", ("seen", "seen"), "x"),
        node("Resize", ("seen", "", "s", "two"), "x"),
        node("Resize", ("seen", "", "two"), "x"),
        node("Resize", ("c0", "", "s"), "x"),
        node("Slice", ("seen", "two", "zero"), "x"),
        node("Slice", ("seen", "zero", "two", "zero", "zero"), "x"),
        node("Slice", ("seen", "two", "zero", "one", "back"), "x"),
        node("Conv", ("seen", "four"), "x") + whole("group", 3),
        node("DepthToSpace", ("seen",), "x") + whole("blocksize", 2),
        node("InstanceNormalization", ("seen", "w", "w"), "x"),
        node("Softmax", ("two",), "x"),
        node("Cast", ("seen",), "x") + whole("to", 10),
        node("Cast", ("seen",), "x"),
        node("Flatten", ("seen",), "x") + whole("axis", -1),
        node("Identity", ("",), "x"),
        node("QuantizeLinear", ("seen", "step"), "x"),
        node("QuantizeLinear", ("seen", "step", "l"), "x"),
        node("QuantizeLinear", ("seen", "step", "s"), "x"),
        node("QuantizeLinear", ("u", "step", "u"), "x"),
        node("QuantizeLinear", ("seen", "seen", "u"), "x"),
        node("QuantizeLinear", ("seen", "steps", "u"), "x"),
        node("QuantizeLinear", ("seen", "steps", "many"), "x") + whole("axis", 4),
        node("QuantizeLinear", ("seen", "steps", "many"), "x") + whole("axis", 2),
        node("DequantizeLinear", ("seen", "step", "u"), "x"),
        node("DequantizeLinear", ("w8", "step", "u"), "x"),
        node("DequantizeLinear", ("w8", "steps", "most"), "x"),
        node("DequantizeLinear", ("w8", "u", "i"), "x"),
        node("Conv", ("seen", "w8"), "x"),
    ],
)
def test_layers_that_do_not_fit_together_are_refused(part: bytes) -> None:
    with pytest.raises(ValueError, match=r"do not fit together|make nothing"):
        of(field(1, part) + shown(), START + EYE + LONGS + HALF + SCALES + FOUR + QUANTISED)


@pytest.mark.parametrize(("scale", "zero"), [("step", "i"), ("steps", "many")])
def test_a_network_in_8_bits_is_measured_and_runs(scale: str, zero: str) -> None:
    graph = read(in_8_bits(scale, zero))
    found = measured(graph, PICTURE, PICTURE)
    assert (found.numbers, found.work) == (6 * 12288 + 1, 2 * 9 + 2 * 4 * 12288 + 2 * 3 * 12288)
    for engine in (OpenCV, OnnxRuntime)[: 1 + OnnxRuntime.installed()]:
        made = engine(graph.written(PICTURE, PICTURE), threads=1)(np.ones(PICTURE, np.float32))[0]
        assert (made == 0).all()


def test_an_output_of_another_shape_is_refused() -> None:
    graph = read(model(shown(), b"", *SHAPES))
    assert measured(graph, (1, 3, 8, 8), (1, 3, 8, 8)).numbers == 2 * 192 + 1
    with pytest.raises(ValueError, match="something else"):
        measured(graph, (1, 3, 8, 8), (1, 3, 8, 9))


def test_layers_give_the_shapes_that_an_engine_gives() -> None:
    """The chains of layers whose shapes depend on constants, against OpenCV's."""
    longs = {"from": (0, 2), "to": (3, (1 << 63) - 1), "axes": (1, 2), "steps": (1, 3), "flat": (0, -1, 4)}
    arrays = b"".join(field(5, numbers(name, values)) for name, values in longs.items())
    arrays += (
        SCALES + field(5, tensor("v", np.ones((16, 3, 3, 3)))) + field(5, numbers("sizes", (1, 3, 5, 64)))
    )
    wide = {"kernel_shape": (3, 3), "strides": (2, 1), "pads": (1, 0, 2, 1), "dilations": (2, 3)}
    chains = [
        (node("Slice", ("seen", "from", "to", "axes", "steps"), "made"), (1, 3, 21, 64)),
        (node("Resize", ("seen", "", "s"), "made") + NEAREST, (1, 3, 32, 128)),
        (node("Resize", ("seen", "", "", "sizes"), "made") + NEAREST, (1, 3, 5, 64)),
        (node("Reshape", ("seen", "flat"), "made"), (1, 3072, 4)),
        (node("Conv", ("seen", "v"), "made", **wide), (1, 16, 32, 59)),
        (node("Flatten", ("seen",), "made"), (1, 3 * 64 * 64)),
    ]
    for part, shape in chains:
        shapes = (value("seen", PICTURE),), field(12, value("made", shape))
        graph = read(model(field(1, part), arrays, *shapes))
        assert measured(graph, PICTURE, shape).numbers > 0
        picture = np.zeros(PICTURE, np.float32)
        assert OpenCV(graph.written(PICTURE, shape))(picture)[0].shape == shape
