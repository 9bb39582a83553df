"""What was drawn and painted as bytes, to go on after a run was ended; hostile when it is read back."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import fields
from types import MappingProxyType
from typing import Any, Final

import numpy as np

from dpveil.errors import DataError
from dpveil.faces.drawn import traits
from dpveil.faces.drawn.figure import DrawnHead
from dpveil.faces.drawn.traits import MEASURES, Person
from dpveil.faces.geometry.dressed import Dressed
from dpveil.faces.geometry.spectacles import STYLES
from dpveil.mechanisms.placement import Step
from dpveil.video.drawing import Drawn
from dpveil.video.layer import Layer

FORMAT: Final = b"dpveil.video-draws/1\n"
MOST_FACTS: Final = 1 << 26
"""Most bytes of what is not pixels."""
MOST_SIDE: Final = 1 << 14
"""Largest side of a picture, in pixels."""
DAMAGED: Final = "what was drawn for the clip is damaged"
AGAIN: Final = "begin anew with {replace}, which draws and pays again"

Draws = Mapping[int, Drawn]
Layers = Mapping[int, Mapping[int | None, Layer]]


def to_bytes(draws: Draws, layers: Layers) -> bytes:
    """Return draws by the numbers of their subjects, and heads by track and class of yaw, as bytes."""
    pictures: list[np.ndarray] = []
    told = [{"subject": number, **_told(drawn, pictures)} for number, drawn in sorted(draws.items())]
    heads = [
        {"track": track, "yaw": yaw, **layer.facts(), "picture": _put(layer.picture, pictures)}
        for track, own in sorted(layers.items())
        for yaw, layer in own.items()
    ]
    shapes = [list(one.shape) for one in pictures]
    facts = json.dumps({"draws": told, "heads": heads, "pictures": shapes}).encode()
    size = len(facts).to_bytes(8, "big")
    return b"".join([FORMAT, size, facts, *(one.tobytes() for one in pictures)])


def from_bytes(
    data: bytes, steps: Sequence[Step] = ()
) -> tuple[dict[int, Drawn], dict[int, dict[int | None, Layer]]]:
    """Return what `to_bytes` was given; `steps` follow the drawing of figures. Raises `DataError`."""
    try:
        facts, pictures = _parted(data)
        draws = {int(one["subject"]): _drawn(one, pictures, tuple(steps)) for one in facts["draws"]}
        layers: dict[int, dict[int | None, Layer]] = {}
        for one in facts["heads"]:
            yaw = None if one["yaw"] is None else int(one["yaw"])
            layers.setdefault(int(one["track"]), {})[yaw] = Layer.of(pictures[one["picture"]], one)
    except (KeyError, IndexError, TypeError, ValueError, OverflowError, RecursionError) as error:
        raise DataError(DAMAGED, hint=AGAIN, arguments={"replace": "replace=True"}) from error
    return draws, layers


def _put(picture: np.ndarray, pictures: list[np.ndarray]) -> int:
    """Keep a picture; return its place among all."""
    pictures.append(np.ascontiguousarray(picture, np.uint8))
    return len(pictures) - 1


def _told(drawn: Drawn, pictures: list[np.ndarray]) -> dict[str, Any]:
    """Return a draw as JSON, with its pictures by their places."""
    face = drawn.face
    if face is None:
        return {} if drawn.raster is None else {"raster": _put(drawn.raster, pictures)}
    if isinstance(face, Dressed):
        return {"crop": _put(face.face, pictures), "style": face.style}
    if isinstance(face, DrawnHead):
        person = {field.name: getattr(face.person, field.name) for field in fields(Person)}
        return {"person": person | {"measures": dict(face.person.measures)}}
    return {"crop": _put(np.asarray(face), pictures)}


def _drawn(told: Mapping[str, Any], pictures: Sequence[np.ndarray], steps: tuple[Step, ...]) -> Drawn:
    """Return a draw; raises a built-in error for one that none can be."""
    if "person" in told:
        return Drawn(face=DrawnHead(_person(dict(told["person"])), steps))
    if "crop" in told:
        crop = pictures[told["crop"]]
        if crop.shape[0] != crop.shape[1] or crop.shape[2] != 3:
            raise ValueError("crop")
        if "style" not in told:
            return Drawn(face=crop)
        if told["style"] not in STYLES:
            raise ValueError("style")
        return Drawn(face=Dressed(crop, told["style"]))
    if "raster" in told and pictures[told["raster"]].shape[2] == 3:
        return Drawn(raster=pictures[told["raster"]])
    raise ValueError("draw")


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


def _parted(data: bytes) -> tuple[Mapping[str, Any], list[np.ndarray]]:
    """Return the facts and the pictures of a file; nothing larger than the file is made."""
    start = len(FORMAT) + 8
    size = int.from_bytes(data[len(FORMAT) : start], "big")
    if not data.startswith(FORMAT) or size > min(MOST_FACTS, len(data) - start):
        raise ValueError("format")
    facts = json.loads(data[start : start + size])
    at, pictures = start + size, []
    for height, width, channels in facts["pictures"]:
        if not (0 < height <= MOST_SIDE and 0 < width <= MOST_SIDE and channels in (3, 4)):
            raise ValueError("picture")
        count = height * width * channels
        pictures.append(np.frombuffer(data, np.uint8, count, at).reshape(height, width, channels))
        at += count
    if at != len(data):
        raise ValueError("length")
    return facts, pictures
