"""The audit of `latent` with codecs of networks: that nothing leads around the noised code."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any, Final

import numpy as np
from jaxtyping import Float32, Int64, UInt8

from dpveil.assets import Card, Reference
from dpveil.assets.networks import Network
from dpveil.codecs import CODEC, GAN, StyleGAN, UpConv
from dpveil.codecs.network_codecs import EncoderDecoder, ellipse_mask, pictures
from dpveil.codecs.statistics import Statistics
from dpveil.codecs.upconv import CONDITIONS
from dpveil.core.rationals import show
from dpveil.faces import Latent
from dpveil.faces.attribute_model import VALUES
from dpveil.faces.attributes_method import READER
from dpveil.mechanisms.latent.base import LIKELY, SNAPPED
from dpveil.noise.bits import BitSource, SeededBits
from dpveil_audit.engine import (
    Audit,
    Drawn,
    Finding,
    Gate,
    Level,
    Version,
    bound_finding,
    count_finding,
    drawing,
)
from dpveil_audit.fit import ALPHA

SIDE: Final = 16  # side of a crop in pixels
LENGTH: Final = 2  # coordinates of a code: how light the red and the green pixels are
UNUSED: Final = 64 * "0"  # stands for the hash of a file, where there is none
TRAINED: Final = 0.25  # largest coordinate of a training code; those of other crops reach 1
GENDER: Final = 0.3  # how much lighter blue pixels are for a unit of gender
YAW: Final = 0.2  # how much lighter they are for a radian of yaw
PITCH: Final = 0.15  # how much lighter they are for a radian of pitch
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
        return np.asarray(self.function(given), np.float32).reshape(self.gives)


def light(given: Planes) -> Planes:
    """Encode: the mean of the red and of the green pixels that are shown, from -1 to 1."""
    seen = given.reshape(3, -1)[:LENGTH, ellipse_mask(SIDE).ravel()]
    return np.asarray(seen.mean(axis=1), np.float32)


def decode_colours(given: Planes) -> Planes:
    """Decode: every pixel as red and green as the code says, and as blue as gender, yaw and pitch say."""
    red, green, *told = given.ravel().tolist()
    blue = sum(weight * value for weight, value in zip((GENDER, YAW, PITCH), told, strict=False))
    return np.broadcast_to(np.array([red, green, blue], np.float32)[:, None, None], (3, SIDE, SIDE))


@dataclass(frozen=True)
class Reads:
    """A model that reads the gender of a crop from its blue pixels."""

    values: Mapping[str, tuple[str, ...]] = field(default_factory=lambda: {"gender": VALUES["gender"]})

    def read(self, crops: UInt8[np.ndarray, "n h w 3"]) -> dict[str, Int64[np.ndarray, " n"]]:
        return {"gender": (crops[..., 2].mean(axis=(1, 2)) > 255 / 2).astype(np.int64)}


def crops_of(rows: Int64[np.ndarray, "n 3"]) -> Crops:
    return np.ascontiguousarray(
        np.broadcast_to(rows.astype(np.uint8)[:, None, None], (len(rows), SIDE, SIDE, 3))
    )


def linear(kind: type[Audited], encode: Any = light, decode: Any = decode_colours) -> Audited:
    planes = (1, 3, SIDE, SIDE)
    back = Stub(b"", (1, LENGTH + len(conditions_of(kind))), planes, "decodes faces", function=decode)
    if issubclass(kind, UpConv):
        return _mixing(kind, encode, back)
    there = Stub(b"", planes, (1, LENGTH), "encodes faces", function=encode)
    mean, basis = np.zeros(LENGTH, np.float32), np.eye(LENGTH, dtype=np.float32)
    return kind(there, back, mean, basis, np.ones(LENGTH), _statistics(), (SIDE, SIDE, 3), CARD)


def conditions_of(kind: type[Audited]) -> tuple[str, ...]:
    return CONDITIONS if issubclass(kind, UpConv) else kind.conditions


def _mixing(kind: type[UpConv], encode: Any, back: Network) -> UpConv:
    """Return a codec that mixes four people, whose faces are as dark and as light as any in red and green.

    Its embedding is `light`, so that it encodes as that does; with another function, that takes its place.
    """
    seen = np.broadcast_to(ellipse_mask(SIDE), (SIDE, SIDE)).astype(np.float32)
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
        own = Reference(self.kind.name, UNUSED, LENGTH, CODEC, codec)
        reads = Reference("attributes", UNUSED, None, READER, Reads())
        codes = LIKELY if self.likely else SNAPPED
        return Latent(codec=own, model=reads, codes=codes, **dict(self.given))

    def __str__(self) -> str:
        words = (f"{name} = {value if isinstance(value, str) else show(value)}" for name, value in self.given)
        return f"{self.kind.name}, {', '.join(words)}"


@dataclass(frozen=True, kw_only=True)
class NetworkVersion(Version):
    """One way to release: `make` returns the method of a case, whole or with a fault.

    What it makes is used for one release only, as some faults remember what they have seen.
    """

    make: Callable[[NetworkCase], Latent]


# Gates for codecs of networks: what is released of equal codes, of one face alone, and of two faces

ROWS: Final = ((20, 60, 200), (230, 150, 130), (128, 128, 128), (0, 255, 255))
"""Faces that differ in all that the networks read, and are read as one gender."""
CODE: Final = TRAINED * np.array([[0.4, -0.7]])
"""The private code of every face, in the gate that holds it fixed."""
PIXEL: Final = SIDE // 2  # a pixel within the ellipse, in both directions; all there are alike
ANY: Final = "a pixel"
GREY: Final = 128


class Instead:
    """An object of which some methods are replaced."""

    def __init__(self, own: Any, **methods: Callable[..., Any]) -> None:
        self._own = own
        self.__dict__.update(methods)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._own, name)


def around_gate(version: NetworkVersion, case: NetworkCase) -> Iterator[Finding]:
    """Yield how many pixels differ between releases of faces with equal private codes and answers."""
    by_face = np.stack([_release_fixed(version, case, row) for row in ROWS])
    yield count_finding("around", "pixels of equal codes that differ", case, by_face != by_face[:1], sees=ANY)


def beyond_gate(version: NetworkVersion, case: NetworkCase) -> Iterator[Finding]:
    """Yield how many coordinates of codes change with what is beyond the ellipse, and pixels drawn there."""
    hidden = ~ellipse_mask(SIDE)
    for row in ROWS:
        crop = crops_of(np.array([row], np.int64))
        other = np.where(hidden[..., None], 255 - crop, crop)
        codes = [version.make(case).codec.held.encode(one) for one in (crop, other)]
        yield count_finding(
            "beyond", "coordinates that read beyond the ellipse", case, codes[0] != codes[1], sees=ANY
        )
        drawn = version.make(case).release(crop, bits=SeededBits(1))
        yield count_finding(
            "beyond", "levels drawn beyond the ellipse", case, drawn[:, hidden] != GREY, sees=ANY
        )


def alone_gate(version: NetworkVersion, case: NetworkCase) -> Iterator[Finding]:
    """Yield how many coordinates and levels of a face change with the other faces of its batch."""
    crops = crops_of(np.array(ROWS, np.int64))
    alone = np.concatenate([version.make(case).codec.held.encode(crop[None]) for crop in crops])
    for order in (slice(None), slice(None, None, -1)):
        codec = version.make(case).codec.held
        yield count_finding(
            "alone",
            "coordinates that see other faces",
            case,
            codec.encode(crops[order]) != alone[order],
            sees=ANY,
        )
        codec = version.make(case).codec.held
        single = np.concatenate([version.make(case).codec.held.decode(code[None]) for code in alone])
        both = codec.decode(alone[order]) != single[order]
        yield count_finding("alone", "levels that see other faces", case, both, sees=ANY)


def bound_gate(version: NetworkVersion, setting: Drawn, *, bits: BitSource) -> Iterator[Finding]:
    """Yield lower bounds on the cost of pairs of faces, from pixels alone; alpha covers all of them."""
    case = setting.case
    promised = version.make(case).guarantee(height=SIDE, width=SIDE, channels=3)

    @cache  # a face is in several pairs, whose bounds hold each by itself
    def draw(row: Row) -> np.ndarray:
        crops = crops_of(np.tile(np.array([row], np.int64), (2 * setting.draws, 1)))
        return version.make(case).release(crops, bits=bits)[:, PIXEL, PIXEL]

    for one, two in setting.pairs:
        limit, share = float(promised.epsilon or 0), ALPHA / len(setting.pairs)
        yield bound_finding(f"{case}, {one} and {two}", draw(one), draw(two), limit, share)


def _release_fixed(version: NetworkVersion, case: NetworkCase, row: Row) -> Crops:
    """Return the release of a face whose code is drawn as `CODE`, with the same bits for every answer."""
    method = version.make(case)
    codes = lambda given, *_, **__: np.repeat(CODE, len(given), axis=0)  # noqa: E731
    method.__dict__["_own"] = Instead(method._own, release=codes)
    (face,) = method.shown(crops_of(np.array([row], np.int64)), bits=SeededBits(1))
    return face.crop(method.frame)


# `latent` with codecs of networks, whole and with faults

PART: Final = 0.05  # how much of what it should not see a faulty network adds
Made = Callable[[NetworkCase], Audited]


class Memory:
    """Networks that remember the pictures that they have seen, as those with skip connections do."""

    def __init__(self) -> None:
        self.planes: list[Planes] = [np.zeros((3, SIDE, SIDE), np.float32)]

    def encode(self, given: Planes) -> Planes:
        """Encode a picture, and remember it."""
        self.planes.append(given[0])
        return light(given)

    def skipping(self, given: Planes) -> Planes:
        """Decode, and add a part of the last picture that was encoded."""
        return decode_colours(given) + PART * self.planes[-1]

    def encode_by_mean(self, given: Planes) -> Planes:
        """Encode a picture by how it differs from the mean of those seen, as with batch statistics."""
        self.planes.append(given[0])
        return light(np.asarray(given - np.mean(self.planes, axis=0) / 2))

    def mixing(self, given: Planes) -> Planes:
        """Decode, and let the last decoded face show through."""
        self.planes.append(decode_colours(given))
        return np.asarray(self.planes[-1] + PART * self.planes[-2])


def _codec(name: str, made: Callable[[Memory], dict[str, Any]], gates: tuple[str, ...]) -> NetworkVersion:
    """Return a version whose codec has other networks, which may remember."""
    return NetworkVersion(
        name=name, make=lambda case: case.method(linear(case.kind, **made(Memory()))), gates=gates
    )


def _wide(case: NetworkCase) -> Latent:
    return case.method(
        linear(type(case.kind.__name__, (case.kind,), {"_encode": _whole, "_rendered": _everywhere}))
    )


def _whole(codec: Any, crops: Crops) -> Any:
    planes = crops.transpose(0, 3, 1, 2)[:, :2].astype(np.float64) / 127.5 - 1
    return planes.mean(axis=(2, 3))


def _everywhere(codec: Any, codes: Any, conditions: Any) -> Crops:
    given = [np.concatenate([code, conditions])[None].astype(np.float32) for code in codes]
    drawn = np.array([codec.decoder(one)[0] for one in given]).reshape(-1, 3, SIDE, SIDE)
    return np.clip(np.rint((drawn.transpose(0, 2, 3, 1) + 1) * 127.5), 0, 255).astype(np.uint8)


def _own(name: str, release: Callable[..., Any]) -> NetworkVersion:
    """Return a version whose mechanism releases codes in another way: (mechanism, codes, space, bits)."""

    def make(case: NetworkCase) -> Latent:
        method = case.method(linear(case.kind))
        own = method._own
        method.__dict__["_own"] = Instead(
            own, release=lambda codes, space, *, bits: release(own, codes, space, bits)
        )
        return method

    return NetworkVersion(name=name, make=make, gates=("bound",))


def _release_moved(own: Any, codes: Any, space: Any, bits: Any) -> Any:

    def near(clip: Any = 0) -> Any:
        box = space.bounds(clip)
        return type(box)(box.low + codes[0], box.high + codes[0])

    return own.release(codes, Instead(space, bounds=near), bits=bits)


def _late(own: Any, codes: Any, space: Any, bits: Any) -> Any:
    """Add the noise of the centre, then clip: codes beyond the box are as far apart as they come."""
    box = space.bounds(own.clip)
    noise = own.release(np.zeros_like(codes), space, bits=bits)
    return box.clip(codes + noise)


def _unread(case: NetworkCase) -> Latent:
    method = case.method(linear(case.kind))
    names = method.told.responses

    def answers(crops: Crops, *_: object) -> Any:
        read = Reads().read(crops)
        return {name: read[name] for name in names}

    object.__setattr__(method.told, "answers", answers)
    return method


INTACT: Final = NetworkVersion(name="intact", make=lambda case: case.method(linear(case.kind)))
MUTANTS: Final = (
    _codec("skip connection", lambda m: {"encode": m.encode, "decode": m.skipping}, ("around",)),
    _codec("batch statistics in the encoder", lambda m: {"encode": m.encode_by_mean}, ("alone",)),
    _codec("faces of a batch mixed in the decoder", lambda m: {"decode": m.mixing}, ("alone",)),
    NetworkVersion(name="what is beyond the ellipse read", make=_wide, gates=("beyond",)),
    _own("box around the code", _release_moved),
    _own("noise before clipping", _late),
    NetworkVersion(name="attribute of the face itself", make=_unread, gates=("bound",)),
)
DRAWS: Final = 1500
PAIRS: Final[tuple[tuple[Row, Row], ...]] = (
    ((0, 0, 0), (255, 255, 0)),
    ((128, 128, 0), (128, 128, 255)),
    ((140, 128, 255), (0, 255, 0)),
)
"""Codes beyond opposite corners of the box; equal codes of two genders; one inside, and another gender."""


TOLD: Final = NetworkCase(GAN, (("epsilon", "0.5"), ("attributes", "gender=0.5")))
CLIPPED: Final = NetworkCase(GAN, (("epsilon", 1), ("mechanism", "box-laplace")))
STYLED: Final = NetworkCase(StyleGAN, (("epsilon", 1),), likely=True)
MIXED: Final = NetworkCase(UpConv, (("epsilon", "0.5"), ("attributes", "gender=0.5")))
MORE: Final = (
    NetworkCase(StyleGAN, (("epsilon", 4), ("mechanism", "box-laplace"), ("clip", 10))),
    NetworkCase(GAN, (("epsilon", 8), ("attributes", "gender=0.5")), likely=True),
)
QUICK: Final = Level(
    (TOLD, CLIPPED, STYLED, MIXED), tuple(Drawn(case, DRAWS, pairs=PAIRS) for case in (TOLD, CLIPPED))
)
LEVELS: Final = QUICK.levels(MORE)
AUDITS: Final = {
    Latent.name: Audit(
        method=Latent,
        intact=INTACT,
        mutants=MUTANTS,
        # Deep, with draws of `upconv`, too, whose encoder solves a linear program for every face.
        levels=LEVELS
        | {"deep": replace(LEVELS["deep"], drawn=(*LEVELS["deep"].drawn, Drawn(MIXED, DRAWS, pairs=PAIRS)))},
        gates=(
            Gate("around", around_gate),
            Gate("alone", alone_gate),
            Gate("beyond", beyond_gate),
            drawing("bound", bound_gate),
        ),
    )
}
