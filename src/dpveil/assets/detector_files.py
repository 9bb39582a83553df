"""Networks from anybody that find things: what a file says of itself, read before anything runs it.

Files that name other files, and parts that hold graphs or operators of others, are refused: no engine sees
them.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from dpveil.assets.protobuf import BYTES, VARINT, every, number_in
from dpveil.errors import InvalidParameter

MOST: Final = 1 << 29
"""Largest file in bytes; the largest networks of the kind have some 300 MB."""
MOST_NODES: Final = 20_000
MOST_NAMES: Final = 10_000
MOST_LETTERS: Final = 1 << 20
"""Most nodes, names of classes, and letters of the list of names."""
MOST_FIELDS: Final = 500_000
"""Most fields that are read of a file, of all its parts together; readers take a microsecond for each."""
RANDOM: Final = frozenset(
    {
        b"RandomUniform",
        b"RandomUniformLike",
        b"RandomNormal",
        b"RandomNormalLike",
        b"Bernoulli",
        b"Multinomial",
    }
)
"""Operators that give other numbers each time: what is found has to follow from the photo."""
ENTRY: Final = re.compile(r"""([0-9]{1,6}): (?:'([^'\\\n]{1,100})'|"([^"\\\n]{1,100})")""")
LIST: Final = re.compile(rf"\{{(?:{ENTRY.pattern}(?:, |(?=\}})))+\}}")
"""A list of names as Python writes a dictionary of them."""
DOMAINS: Final = (b"", b"ai.onnx")
"""The operators of ONNX itself."""
HINT: Final = "name the ONNX file of a YOLO or RT-DETR network that holds its own numbers"
SIDES: Final = range(32, 2049)
"""Sides of images that a network may take, in pixels."""
USUAL: Final = 640
"""The side where it is free."""


@dataclass(frozen=True)
class DetectorFile:
    """A file: its contents, their SHA-256, the height and width that it takes, and its classes' names."""

    contents: bytes
    digest: str
    height: int
    width: int
    names: Mapping[int, str]

    @classmethod
    def of(cls, path: Path) -> DetectorFile:
        """Return what a file says of itself; raises `InvalidParameter`."""
        contents = _contents(path)
        try:
            (height, width), names = _read(contents)
        except (ValueError, RecursionError, MemoryError) as error:
            told = str(error) if type(error) is ValueError else "the file is no ONNX file"
            raise _refused(path, f"cannot be used: {told}") from error
        return cls(contents, hashlib.sha256(contents).hexdigest(), height, width, names)


def _contents(path: Path) -> bytes:
    try:
        if not path.is_file() or path.stat().st_size > MOST:
            raise _refused(path, f"is no file of at most {MOST >> 20} MiB")
        with path.open("rb") as stream:
            contents = stream.read(MOST + 1)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "input error"
        raise _refused(path, f"is unreadable: {reason}") from error
    if len(contents) > MOST:
        raise _refused(path, f"is no file of at most {MOST >> 20} MiB")
    return contents


def _refused(path: Path, problem: str) -> InvalidParameter:
    return InvalidParameter("detector model", str(path), problem, hint=HINT)


class _Reader:
    """Yields the fields of messages, of which one file has at most `MOST_FIELDS`; raises `ValueError`."""

    def __init__(self) -> None:
        self.left = MOST_FIELDS

    def __call__(self, message: bytes) -> Iterator[tuple[int, int, bytes]]:
        for field in every(message):
            self.left -= 1
            if self.left < 0:
                raise ValueError(f"it has more than {MOST_FIELDS:,} parts")
            yield field


def _read(contents: bytes) -> tuple[tuple[int, int], dict[int, str]]:
    """Return the size of the image, and the names; raises `ValueError`."""
    graphs, names, read = [], dict[int, str](), _Reader()
    for number, kind, part in read(contents):
        if number in (20, 25):  # training_info, functions
            raise ValueError("it has parts that no detector needs")
        if number == 7:
            graphs.append(_bytes(kind, part))
        if number == 14:
            names = _names(_bytes(kind, part), read) or names
    if len(graphs) != 1:
        raise ValueError("the file is no ONNX file")
    return _graph(graphs[0], read), names


def _graph(graph: bytes, read: _Reader) -> tuple[int, int]:
    """Return the size of the image; refuses what refers to other files, and graphs within the graph."""
    nodes, inputs, arrays = 0, [], set[bytes]()
    for number, kind, part in read(graph):
        if number == 1:
            nodes += 1
            if nodes > MOST_NODES:
                raise ValueError(f"it has more than {MOST_NODES:,} nodes")
            _check_node(_bytes(kind, part), read)
        elif number == 5:
            arrays.add(_check_array(_bytes(kind, part), read))
        elif number == 11:
            inputs.append(_bytes(kind, part))
        elif number == 15:
            raise ValueError("it has parts that no detector needs")
    if not nodes:
        raise ValueError("it has no nodes")
    taken = [_shape(one, read) for one in inputs if _first(one, 1, read) not in arrays]
    if len(taken) not in (1, 2) or len(taken[0]) != 4 or taken[0][0] not in (None, 1) or taken[0][1] != 3:
        raise ValueError("it does not take one image of three channels")
    height, width = (USUAL if side is None else side for side in taken[0][2:])
    if height not in SIDES or width not in SIDES:
        raise ValueError(f"it takes images of {width} × {height} pixels")
    return height, width


def _check_node(node: bytes, read: _Reader) -> None:
    inputs, operators = [], set[bytes]()
    for number, kind, part in read(node):
        if number == 1:
            inputs.append(_bytes(kind, part))
        if number == 4:
            operators.add(_bytes(kind, part))
        if number == 7 and _bytes(kind, part) not in DOMAINS:
            raise ValueError("it has operators that are not ONNX's own")
        if number != 5:
            continue
        for inner, wire, value in read(_bytes(kind, part)):
            if inner in (6, 11, 22, 23):  # graphs, sparse tensors
                raise ValueError("it has branches or loops, which are not run")
            if inner in (5, 10):
                _check_array(_bytes(wire, value), read)
    if operators & RANDOM or (b"Dropout" in operators and any(inputs[2:])):
        raise ValueError("it draws random numbers, and what it finds has to follow from the photo")


def _check_array(array: bytes, read: _Reader) -> bytes:
    """Return the name of an array, which has its numbers in this file."""
    name = b""
    for number, kind, part in read(array):
        if number == 13 or (number == 14 and (kind != VARINT or number_in(part) != 0)):
            raise ValueError("its numbers are in another file, and no other file is opened")
        if number == 8:
            name = _bytes(kind, part)
    return name


def _shape(value: bytes, read: _Reader) -> list[int | None]:
    """Return the lengths of an input, None for those that are free."""
    shape = _first(_first(_first(value, 2, read), 1, read), 2, read)
    lengths = [[*read(_bytes(kind, part))] for number, kind, part in read(shape) if number == 1]
    sides = [[number_in(p) for n, k, p in length if n == 1 and k == VARINT] for length in lengths]
    return [side[0] if side and side[0] > 0 else None for side in sides]


def _first(message: bytes, wanted: int, read: _Reader) -> bytes:
    """Return the first field of this number that has a length, or nothing."""
    found = (part for number, kind, part in read(message) if number == wanted and kind == BYTES)
    return next(found, b"")


def _bytes(kind: int, part: bytes) -> bytes:
    if kind != BYTES:
        raise ValueError("the file is no ONNX file")
    return part


def _names(entry: bytes, read: _Reader) -> dict[int, str]:
    """Return the names in an entry of metadata, as Ultralytics writes them: {0: 'person', 1: 'bicycle'}."""
    key, text = _first(entry, 1, read), _first(entry, 2, read)
    if key != b"names":
        return {}
    if len(text) > MOST_LETTERS or not LIST.fullmatch(told := text.decode(errors="replace")):
        raise ValueError("its list of names cannot be read")
    found = [(int(number), one or other) for number, one, other in ENTRY.findall(told)]
    if len(found) > MOST_NAMES or [number for number, _ in found] != [*range(len(found))]:
        raise ValueError("its list of names cannot be read")
    return dict(found)
