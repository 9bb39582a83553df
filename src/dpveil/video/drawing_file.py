"""What was drawn and painted in a file, to go on after a run was ended; hostile when it is read back.

After the format come the pictures, then facts as JSON, then the length of these. Heads are read when they
are shown, so that memory does not grow with the number of tracks.
"""

from __future__ import annotations

import json
import math
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields
from types import MappingProxyType
from typing import Any, BinaryIO, Final

import numpy as np
from jaxtyping import UInt8

from dpveil.errors import DataError
from dpveil.faces.drawn import traits
from dpveil.faces.drawn.figure import DrawnHead
from dpveil.faces.drawn.traits import MEASURES, Person
from dpveil.faces.geometry.dressed import Dressed
from dpveil.faces.geometry.spectacles import STYLES
from dpveil.mechanisms.placement import Step
from dpveil.video.drawing import Drawn
from dpveil.video.layer import Layer

MOST_SIDE: Final = 1 << 14
"""Largest side of a picture, in pixels."""
LEVEL: Final = 1
"""Level of zlib: higher ones take more time and save little."""

Picture = UInt8[np.ndarray, "h w c"]


def put(picture: Picture, file: BinaryIO) -> list[int]:
    """Write a picture at the end of a file; return its place: where, bytes, height, width, channels."""
    data = zlib.compress(np.ascontiguousarray(picture, np.uint8).data, LEVEL)
    at = file.seek(0, 2)
    file.write(data)
    return [at, len(data), *picture.shape]


def get(place: Sequence[int], file: BinaryIO) -> Picture:
    """Return the picture at a place that may be hostile: no more is read and made than it tells.

    Raises `ValueError` unless there is exactly this picture.
    """
    at, size, height, width, channels = (int(one) for one in place)
    if not (0 < height <= MOST_SIDE and 0 < width <= MOST_SIDE and channels in (3, 4)):
        raise ValueError("picture")
    if not 0 <= at <= at + size <= file.seek(0, 2):
        raise ValueError("place")
    file.seek(at)
    count, opened = height * width * channels, zlib.decompressobj()
    try:
        data = opened.decompress(file.read(size), count + 1)
    except zlib.error as error:
        raise ValueError("data") from error
    if len(data) != count or not opened.eof or opened.unused_data:
        raise ValueError("data")
    return np.frombuffer(data, np.uint8).reshape(height, width, channels)


FORMAT: Final = b"dpveil.video-draws/2\n"
MOST_FACTS: Final = 1 << 26
"""Most bytes of what is not pixels."""
DAMAGED: Final = "what was drawn for the clip is damaged"
AGAIN: Final = "begin anew with {replace}, which draws and pays again"

Heads = Mapping[int | None, Layer]
"""The heads of a track by their classes of yaw."""
Put = Callable[[Picture], list[int]]
Get = Callable[[Sequence[int]], Picture]


@dataclass(frozen=True)
class StoredHeads(Mapping[int | None, Layer]):
    """The heads of a track in an open file; each is read whenever it is asked for."""

    told: Mapping[int | None, Mapping[str, Any]]
    file: BinaryIO

    def __getitem__(self, yaw: int | None) -> Layer:
        """Return a head; raises `DataError` if it is damaged."""
        with _damaged():
            one = self.told[yaw]
            return Layer.of(get(one["picture"], self.file), one)

    def __contains__(self, yaw: object) -> bool:
        return yaw in self.told

    def __iter__(self) -> Iterator[int | None]:
        return iter(self.told)

    def __len__(self) -> int:
        return len(self.told)


def write(file: BinaryIO, draws: Mapping[int, Drawn], heads: Iterable[tuple[int, Heads]]) -> None:
    """Write draws by the numbers of their subjects, and heads by tracks, which are taken one by one."""

    def stored(picture: Picture) -> list[int]:
        return put(picture, file)

    file.write(FORMAT)
    told = [{"subject": number, **_told(drawn, stored)} for number, drawn in sorted(draws.items())]
    shown = [
        {"track": track, "yaw": yaw, **layer.facts(), "picture": stored(layer.picture)}
        for track, own in heads
        for yaw, layer in own.items()
    ]
    facts = json.dumps({"draws": told, "heads": shown}).encode()
    file.write(facts)
    file.write(len(facts).to_bytes(8, "big"))


def read(file: BinaryIO, steps: Sequence[Step] = ()) -> tuple[dict[int, Drawn], dict[int, Heads]]:
    """Return what `write` was given; `steps` follow the drawing of figures. Raises `DataError`.

    The file has to stay open as long as heads are read from it.
    """

    def found(place: Sequence[int]) -> Picture:
        return get(place, file)

    with _damaged():
        facts = _facts(file)
        draws = {int(one["subject"]): _drawn(one, found, tuple(steps)) for one in facts["draws"]}
        told: dict[int, dict[int | None, Mapping[str, Any]]] = {}
        for one in facts["heads"]:
            yaw = None if one["yaw"] is None else int(one["yaw"])
            told.setdefault(int(one["track"]), {})[yaw] = one
        return draws, {track: StoredHeads(own, file) for track, own in told.items()}


@contextmanager
def _damaged() -> Iterator[None]:
    """Turn what a hostile file raises into `DataError`."""
    try:
        yield
    except (KeyError, IndexError, TypeError, ValueError, OverflowError, RecursionError) as error:
        raise DataError(DAMAGED, hint=AGAIN, arguments={"replace": "replace=True"}) from error


def _facts(file: BinaryIO) -> Mapping[str, Any]:
    """Return the facts of a file."""
    rest = file.seek(0, 2) - len(FORMAT) - 8
    file.seek(0)
    if rest < 0 or file.read(len(FORMAT)) != FORMAT:
        raise ValueError("format")
    file.seek(-8, 2)
    size = int.from_bytes(file.read(8), "big")
    if size > min(MOST_FACTS, rest):
        raise ValueError("facts")
    file.seek(-8 - size, 2)
    facts: Mapping[str, Any] = json.loads(file.read(size))
    return facts


def _told(drawn: Drawn, stored: Put) -> dict[str, Any]:
    """Return a draw as JSON, with its pictures by their places."""
    face = drawn.face
    if face is None:
        return {} if drawn.raster is None else {"raster": stored(drawn.raster)}
    if isinstance(face, Dressed):
        return {"crop": stored(face.face), "style": face.style}
    if isinstance(face, DrawnHead):
        person = {field.name: getattr(face.person, field.name) for field in fields(Person)}
        return {"person": person | {"measures": dict(face.person.measures)}}
    return {"crop": stored(np.asarray(face))}


def _drawn(told: Mapping[str, Any], found: Get, steps: tuple[Step, ...]) -> Drawn:
    """Return a draw; raises a built-in error for one that none can be."""
    if "person" in told:
        return Drawn(face=DrawnHead(_person(dict(told["person"])), steps))
    if "crop" in told:
        crop = found(told["crop"])
        if crop.shape[0] != crop.shape[1] or crop.shape[2] != 3:
            raise ValueError("crop")
        if "style" not in told:
            return Drawn(face=crop)
        if told["style"] not in STYLES:
            raise ValueError("style")
        return Drawn(face=Dressed(crop, told["style"]))
    raster = found(told["raster"])
    if raster.shape[2] != 3:
        raise ValueError("raster")
    return Drawn(raster=raster)


def _person(told: dict[str, Any]) -> Person:
    """Return a person all of whose traits are values of their tables."""
    measures = told.pop("measures")
    known = {field.name for field in fields(Person)} - {"measures"}
    if {*told} != known or not {*measures} <= {*MEASURES}:
        raise ValueError("traits")
    for name, value in told.items():
        if value not in _values(name):
            raise ValueError(name)
    own = {name: float(value) for name, value in measures.items()}
    if not all(math.isfinite(value) and abs(value) <= 1 for value in own.values()):
        raise ValueError("measures")
    return Person(**told, measures=MappingProxyType(own))


def _values(trait: str) -> set[str]:
    """Return all values of a trait, whatever the others are."""
    found: set[str] = set()
    for name in (trait.upper(), f"OLD_{trait.upper()}", *(["WORN"] if trait == "glasses" else [])):
        table = getattr(traits, name, {})
        for key, value in table.items():
            found |= {*value} if isinstance(value, Mapping) else {key}
    return found | ({*traits.GROWN} if trait == "beard" else set())
