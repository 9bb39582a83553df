"""Audit cases for codecs of networks: linear ones, of which everything is known, and a model that reads."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Final

import numpy as np
from jaxtyping import Float32, Int64, UInt8

from dpveil.assets import Card, Reference
from dpveil.assets.network import Network
from dpveil.codecs import CODEC, UpConv
from dpveil.codecs.neural import EncoderDecoder, pictures, shown
from dpveil.codecs.statistics import Statistics
from dpveil.codecs.upconv import CONDITIONS
from dpveil.core.numbers import show
from dpveil.faces import Latent
from dpveil.faces.attribute_model import VALUES
from dpveil.faces.attributes import READER
from dpveil_audit.entry import Drawn, Level, Variant

SIDE: Final = 16
"""Side of a crop in pixels."""
LENGTH: Final = 2
"""Coordinates of a code: how light the red and the green pixels are."""
UNUSED: Final = 64 * "0"
"""Stands for the hash of a file, where there is none."""
TRAINED: Final = 0.25
"""Largest coordinate of a training code; those of other crops reach 1."""
GENDER: Final = 0.3
"""How much lighter blue pixels are for a unit of gender."""
YAW: Final = 0.2
"""How much lighter they are for a radian of yaw."""
PITCH: Final = 0.15
"""How much lighter they are for a radian of pitch."""
Row = tuple[int, int, int]
"""A crop: its levels of red, green and blue, the same in every pixel."""
Planes = Float32[np.ndarray, "..."]
Crops = UInt8[np.ndarray, "n s s 3"]
Audited = EncoderDecoder | UpConv


@dataclass(frozen=True, eq=False, kw_only=True)
class Stub(Network):
    """A network that is a function instead of a file."""

    function: Callable[[Planes], Planes] = field(repr=False)

    def raw(self, given: Planes) -> Planes:
        """Return what the function gives."""
        return np.asarray(self.function(given), np.float32).reshape(self.gives)


def light(given: Planes) -> Planes:
    """Encode: the mean of the red and of the green pixels that are shown, from -1 to 1."""
    seen = given.reshape(3, -1)[:LENGTH, shown(SIDE).ravel()]
    return np.asarray(seen.mean(axis=1), np.float32)


def coloured(given: Planes) -> Planes:
    """Decode: every pixel as red and green as the code says, and as blue as gender, yaw and pitch say."""
    red, green, *told = given.ravel().tolist()
    blue = sum(weight * value for weight, value in zip((GENDER, YAW, PITCH), told, strict=False))
    return np.broadcast_to(np.array([red, green, blue], np.float32)[:, None, None], (3, SIDE, SIDE))


@dataclass(frozen=True)
class Reads:
    """A model that reads the gender of a crop from its blue pixels."""

    values: Mapping[str, tuple[str, ...]] = field(default_factory=lambda: {"gender": VALUES["gender"]})

    def read(self, crops: UInt8[np.ndarray, "n h w 3"]) -> dict[str, Int64[np.ndarray, " n"]]:
        """Return the index of the gender of every crop."""
        return {"gender": (crops[..., 2].mean(axis=(1, 2)) > 255 / 2).astype(np.int64)}


def crops_of(rows: Int64[np.ndarray, "n 3"]) -> Crops:
    """Return the crop of each row."""
    return np.ascontiguousarray(
        np.broadcast_to(rows.astype(np.uint8)[:, None, None], (len(rows), SIDE, SIDE, 3))
    )


def linear(kind: type[Audited], encode: Any = light, decode: Any = coloured) -> Audited:
    """Return a codec of this kind whose networks are functions."""
    planes = (1, 3, SIDE, SIDE)
    back = Stub(b"", (1, LENGTH + len(conditions_of(kind))), planes, "decodes faces", function=decode)
    if issubclass(kind, UpConv):
        return _mixing(kind, encode, back)
    there = Stub(b"", planes, (1, LENGTH), "encodes faces", function=encode)
    mean, basis = np.zeros(LENGTH, np.float32), np.eye(LENGTH, dtype=np.float32)
    return kind(there, back, mean, basis, np.ones(LENGTH), _statistics(), (SIDE, SIDE, 3), CARD)


def conditions_of(kind: type[Audited]) -> tuple[str, ...]:
    """Return what the decoder of this kind is given beside a code."""
    return CONDITIONS if issubclass(kind, UpConv) else kind.conditions


def _mixing(kind: type[UpConv], encode: Any, back: Network) -> UpConv:
    """Return a codec that mixes four people, whose faces are as dark and as light as any in red and green.

    Its embedding is `light`, so that it encodes as that does; with another function, that takes its place.
    """
    seen = np.broadcast_to(shown(SIDE), (SIDE, SIDE)).astype(np.float32)
    axes = np.zeros((LENGTH, 3, SIDE, SIDE), np.float32)
    axes[range(LENGTH), range(LENGTH)] = seen / seen.sum()
    corners = np.array([(x, y) for x in (-1, 1) for y in (-1, 1)], np.float32)
    if encode is not light:

        def rows_of(_: UpConv, crops: Crops) -> np.ndarray:
            return np.array([encode(one[None]) for one in pictures(crops)], np.float64)

        kind = type(kind.__name__, (kind,), {"rows_of": rows_of})
    flat = axes.reshape(LENGTH, -1)
    mean, energy = np.zeros(flat.shape[1], np.float32), np.ones(LENGTH)
    return kind(back, corners, corners, mean, flat, energy, _statistics(), (SIDE, SIDE, 3), CARD)


CARD: Final = Card("audit", data="made levels", terms="none", seed=1)


@cache
def _statistics() -> Statistics:
    """Return those of training codes on a lattice, which no crop changes."""
    line = np.linspace(-TRAINED, TRAINED, 9)
    codes = np.stack(np.meshgrid(line, line), axis=-1).reshape(-1, LENGTH)
    return Statistics.of(codes, np.ones(LENGTH), seed=1, deviations=codes.std(axis=0))


@dataclass(frozen=True)
class NetworkCase:
    """`latent` with a codec of a kind, and its parameters as (name, value).

    `likely` is whether private codes become likely ones. Where draws are compared they do not, as that step
    hides most of what a code says.
    """

    kind: type[Audited]
    given: tuple[tuple[str, Any], ...]
    likely: bool = False

    def method(self, codec: Audited) -> Latent:
        """Return the method with a codec of this kind."""
        object.__setattr__(codec, "likely", self.likely)
        own = Reference(self.kind.name, UNUSED, LENGTH, CODEC, codec)
        reads = Reference("attributes", UNUSED, None, READER, Reads())
        return Latent(codec=own, model=reads, **dict(self.given))

    @property
    def told(self) -> bool:
        """Whether the decoder is told a gender that is read."""
        return "attributes" in dict(self.given)

    def __str__(self) -> str:
        words = (f"{name} = {value if isinstance(value, str) else show(value)}" for name, value in self.given)
        return f"{self.kind.name}, {', '.join(words)}"


@dataclass(frozen=True, kw_only=True)
class NetworkVersion(Variant):
    """One way to release: `make` returns the method of a case, whole or with a fault.

    What it makes is used for one release only, as some faults remember what they have seen.
    """

    make: Callable[[NetworkCase], Latent]


NetworkDrawn = Drawn[NetworkCase, Row]
NetworkLevel = Level[NetworkCase, Row]
