"""Networks from anybody that find things: what a file says of itself, as onnxruntime reads it elsewhere."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from dpveil.assets.confined import Confined
from dpveil.errors import InvalidParameter, ModelError

MOST: Final = 1 << 29
"""Largest file in bytes; the largest networks of the kind have some 300 MB."""
HINT: Final = "name the ONNX file of a YOLO or RT-DETR network that holds its own numbers"
SIDES: Final = range(32, 2049)
"""Sides of images that a network may take, in pixels."""
USUAL: Final = 640
"""The side where it is free."""


@dataclass(frozen=True)
class DetectorFile:
    """A file: the SHA-256 of its contents, the height and width that it takes, and its classes' names."""

    digest: str
    height: int
    width: int
    names: Mapping[int, str]
    network: Confined = field(repr=False, compare=False)

    @classmethod
    def of(cls, path: Path) -> DetectorFile:
        """Return what a file says of itself; raises `InvalidParameter`."""
        contents = _contents(path)
        if find_spec("onnxruntime") is None:
            problem = "is run by onnxruntime, which is not installed"
            raise InvalidParameter("detector model", str(path), problem, hint="pip install 'dpveil[faces]'")
        network = Confined("everything", contents)
        try:
            shapes, names = network.described()
            height, width = _sides(shapes)
        except ModelError as error:
            raise _refused(path, f"cannot be used: {error.message}") from error
        return cls(hashlib.sha256(contents).hexdigest(), height, width, names, network)


def _sides(shapes: list[list[int]]) -> tuple[int, int]:
    """Return height and width of the image; raises `ModelError`."""
    if len(shapes) not in (1, 2) or len(shapes[0]) != 4 or shapes[0][0] > 1 or shapes[0][1] != 3:
        raise ModelError("it does not take one image of three channels")
    height, width = (side if side > 0 else USUAL for side in shapes[0][2:])
    if height not in SIDES or width not in SIDES:
        raise ModelError(f"it takes images of {width} × {height} pixels")
    return height, width


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
