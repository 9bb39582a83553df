"""Small networks, written byte by byte.

For the first a red cell of 8 × 8 pixels is a face of 32 × 40; the second shows what it is shown.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


def varint(value: int) -> bytes:
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes([*out, value])


def field(number: int, value: int | bytes | str) -> bytes:
    """Return one field of a Protocol Buffers message: a number, or something with a length."""
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    data = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(data)) + data


def tensor(name: str, array: np.ndarray) -> bytes:
    dims = b"".join(field(1, size) for size in array.shape)
    return dims + field(2, 1) + field(8, name) + field(9, array.astype("<f4").tobytes())


def numbers(name: str, values: Sequence[int]) -> bytes:
    """Return a tensor of 64-bit whole numbers in one dimension."""
    return field(1, len(values)) + field(2, 7) + field(8, name) + field(9, np.array(values, "<i8").tobytes())


def ints(name: str, values: Sequence[int]) -> bytes:
    return field(1, name) + b"".join(field(8, value) for value in values) + field(20, 7)


def node(operator: str, inputs: Sequence[str], output: str, **attributes: Sequence[int]) -> bytes:
    names = b"".join(field(1, name) for name in inputs) + field(2, output) + field(3, output)
    made = b"".join(field(5, ints(name, values)) for name, values in attributes.items())
    return names + field(4, operator) + made


def value(name: str, shape: Sequence[int | str]) -> bytes:
    dims = b"".join(field(1, field(1 if isinstance(size, int) else 2, size)) for size in shape)
    return field(1, name) + field(2, field(1, field(1, 1) + field(2, dims)))


def mixing(*, side: int = 64, gain: float = 1.0, channels: int = 7, behind: float = 0.0) -> bytes:
    """Return the file of a network that mixes 18 channels: `gain` times the first three, and a fourth."""
    picture = np.eye(channels, 18)[:, :, None, None] * gain
    picture[3:] = 0
    picture[3:4, 4] = -behind
    layout = np.where(np.arange(channels) == 3, behind, 0)
    tensors = field(5, tensor("w", picture)) + field(5, tensor("b", layout))
    nodes = field(1, node("Conv", ("seen", "w", "b"), "painted", kernel_shape=(1, 1)))
    output = field(12, value("painted", (1, channels, side, side)))
    return model(nodes, tensors, (value("seen", (1, 18, side, side)),), output)


def encoder(weights: np.ndarray, bias: np.ndarray) -> bytes:
    """Return the file of a network that takes inner products of a picture, n × c × s × s, plus a bias."""
    count, channels, side, _ = weights.shape
    tensors = field(5, tensor("w", weights)) + field(5, tensor("b", bias))
    nodes = field(1, node("Conv", ("picture", "w", "b"), "all", kernel_shape=(side, side)))
    nodes += field(1, node("Flatten", ("all",), "code"))
    shapes = (value("picture", (1, channels, side, side)),), field(12, value("code", (1, count)))
    return model(nodes, tensors, *shapes)


def decoder(rows: np.ndarray, bias: np.ndarray, *, gain: float = 1.0) -> bytes:
    """Return the file of a network that adds rows, n × c × s × s, by a code of n numbers, to a bias."""
    count, channels, side, _ = rows.shape
    flat = rows.reshape(count, -1) * gain
    tensors = field(5, tensor("w", flat)) + field(5, tensor("b", bias.ravel()))
    tensors += field(5, numbers("to", (1, channels, side, side)))
    nodes = field(1, node("Gemm", ("given", "w", "b"), "all"))
    nodes += field(1, node("Reshape", ("all", "to"), "picture"))
    shapes = (value("given", (1, count)),), field(12, value("picture", (1, channels, side, side)))
    return model(nodes, tensors, *shapes)


def model(nodes: bytes, tensors: bytes, inputs: Sequence[bytes], outputs: bytes) -> bytes:
    """Return the file of a network."""
    shapes = b"".join(field(11, shape) for shape in inputs)
    graph = nodes + field(2, "tiny") + tensors + shapes + outputs
    return field(1, 8) + field(8, field(1, "") + field(2, 13)) + field(7, graph)


def repainter(*, side: int = 32, gain: float = 1.0, bias: float = 0.0) -> bytes:
    """Return the file of a network that gives `gain` times a picture, plus a bias."""
    tensors = field(5, tensor("w", np.eye(3)[..., None, None] * gain))
    tensors += field(5, tensor("b", np.full(3, bias)))
    nodes = field(1, node("Conv", ("picture", "w", "b"), "made", kernel_shape=(1, 1)))
    shape = (1, 3, side, side)
    return model(nodes, tensors, (value("picture", shape),), field(12, value("made", shape)))
