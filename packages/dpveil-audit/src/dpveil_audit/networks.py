"""The audit of `latent` with codecs of networks: that nothing leads around the noised code."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from typing import Any, Final
from unittest import mock

import numpy as np
from jaxtyping import Float32, Int64, UInt8

from dpveil.assets.file_reference import Reference
from dpveil.assets.model_cards import Card
from dpveil.assets.networks import Network
from dpveil.codecs import CODEC, GAN, StyleGAN, network_codecs
from dpveil.codecs.network_codecs import EncoderDecoder, ellipse_mask
from dpveil.codecs.statistics import Statistics
from dpveil.core.guarantee import Guarantee
from dpveil.core.rationals import show
from dpveil.faces import Latent
from dpveil.faces.attribute_model import VALUES
from dpveil.faces.attributes_method import READER
from dpveil.faces.latent import DecoderInputs
from dpveil.mechanisms.latent.base import LIKELY, SNAPPED, LatentMechanism
from dpveil.noise.bits import BitSource, SeededBits
from dpveil_audit import engine
from dpveil_audit.divergence import Outcomes, ProductLaw
from dpveil_audit.engine import (
    Audit,
    Drawn,
    Finding,
    Gate,
    Level,
    Version,
    count_finding,
    law_gates,
    planted,
)
from dpveil_audit.latent import SIDE as STEPS
from dpveil_audit.latent import LatentCase, noisy, own_ranges, own_scales

SIDE: Final = 16  # side of a crop in pixels
LENGTH: Final = 2  # coordinates of a code: how light the red and the green pixels are
UNUSED: Final = 64 * "0"  # stands for the hash of a file, where there is none
TRAINED: Final = 0.25  # largest coordinate of a training code; those of other crops reach 1
GENDER: Final = 0.3  # how much lighter blue pixels are for a unit of gender
Row = tuple[int, int, int]
"""A crop: its levels of red, green and blue, the same in every pixel."""
Planes = Float32[np.ndarray, "..."]
Crops = UInt8[np.ndarray, "n s s 3"]


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
    """Decode: every pixel as red and green as the code says, and as blue as gender says."""
    red, green, *told = given.ravel().tolist()
    blue = GENDER * told[0] if told else 0
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


def linear(kind: type[EncoderDecoder]) -> EncoderDecoder:
    """Return a codec of a kind with linear networks."""
    planes, told = (1, 3, SIDE, SIDE), len(kind.conditions)
    there = Stub(b"", planes, (1, LENGTH), "encodes faces", function=light)
    back = Stub(b"", (1, LENGTH + told), planes, "decodes faces", function=decode_colours)
    mean, basis = np.zeros(LENGTH, np.float32), np.eye(LENGTH, dtype=np.float32)
    return kind(there, back, mean, basis, np.ones(LENGTH), _statistics(), (SIDE, SIDE, 3), CARD)


CARD: Final = Card("audit", data="made levels", terms="none", seed=1)


@cache
def _statistics() -> Statistics:
    """Return those of training codes on a lattice, which no crop changes."""
    line = np.linspace(-TRAINED, TRAINED, 9)
    codes = np.stack(np.meshgrid(line, line), axis=-1).reshape(-1, LENGTH)
    return Statistics.of(codes, np.ones(LENGTH), seed=1, deviations=codes.std(axis=0))


@dataclass(frozen=True)
class NetworkCase(engine.Case):
    """`latent` with a codec of a kind, and its parameters as (name, value).

    `likely` is whether private codes become likely ones, whose law is not written down here.
    """

    kind: type[EncoderDecoder]
    given: tuple[tuple[str, Any], ...]
    likely: bool = False

    @property
    def codec(self) -> EncoderDecoder:
        return linear(self.kind)

    @property
    def method(self) -> Latent:
        own = Reference(self.kind.name, UNUSED, LENGTH, CODEC, self.codec)
        reads = Reference("attributes", UNUSED, None, READER, Reads())
        codes = LIKELY if self.likely else SNAPPED
        return Latent(codec=own, model=reads, codes=codes, **dict(self.given))

    @cached_property
    def guarantee(self) -> Guarantee:
        return self.method.guarantee(height=SIDE, width=SIDE, channels=3)

    @property
    def inputs(self) -> tuple[Row, ...]:
        return FACES

    @property
    def fits(self) -> tuple[Row, ...]:
        return FACES[:3]

    def __str__(self) -> str:
        words = (f"{name} = {value if isinstance(value, str) else show(value)}" for name, value in self.given)
        return f"{self.kind.name}, {', '.join(words)}"


# The law of a pixel


def law(case: NetworkCase, rows: Sequence[Row]) -> ProductLaw:
    """Return the law of the levels of a pixel: noised codes as red and green, what is told as blue."""
    mechanism, codec = case.method._own, case.codec
    codes = [tuple(level / 127.5 - 1 for level in row[:LENGTH]) for row in rows]
    own = LatentCase(mechanism, codec.statistics, tuple(codes))  # type: ignore[arg-type]
    drawn, found = noisy(*NOISE[mechanism.name])(own, codes), []
    for place in range(LENGTH):
        values = own.box.low[place] + own.box.width[place] * np.arange(STEPS + 1) / STEPS
        chances = [drawn.chances(number)[place] for number in range(len(rows))]
        found.append(np.stack([np.bincount(levels(values), mass, 256) for mass in chances]))
    told = np.array([[1.0]] * len(rows)), np.zeros(1)
    for _, budget in case.method.told.costs:
        kept = math.exp(budget) / (1 + math.exp(budget))
        reads = Reads().read(crops_of(np.array(rows)))["gender"]
        told = np.where(reads[:, None] == [0, 1], kept, 1 - kept), np.array(codec.attributes["gender"][1])
    blue = levels(GENDER * told[1])
    found.append(np.stack([np.bincount(blue, mass, 256) for mass in told[0]]))
    return ProductLaw.of(found)


def levels(values: np.ndarray) -> Int64[np.ndarray, " n"]:
    """Return decoded values, -1 to 1, as levels."""
    return np.asarray(np.clip(np.rint((values + 1) * 127.5), 0, 255).astype(np.int64))


def draw(case: NetworkCase, row: Row, count: int, bits: BitSource) -> Outcomes:
    """Return the levels of a pixel of releases of a face."""
    crops = crops_of(np.tile(np.array([row], np.int64), (count, 1)))
    return case.method.release(crops, bits=bits)[:, PIXEL, PIXEL].astype(np.int64)


# Gates for codecs of networks: what is released of equal codes, and of one face alone

ROWS: Final = ((20, 60, 200), (230, 150, 130), (128, 128, 128), (0, 255, 255))
"""Faces that differ in all that the networks read, and are read as one gender."""
CODE: Final = TRAINED * np.array([[0.4, -0.7]])
"""The private code of every face, in the gate that holds it fixed."""
PIXEL: Final = SIDE // 2  # a pixel within the ellipse, in both directions; all there are alike
GREY: Final = 128


def around_gate(version: Version, case: NetworkCase) -> Iterator[Finding]:
    """Yield how many pixels differ between releases of faces with equal private codes and answers."""
    by_face = np.stack([_release_fixed(case, row) for row in ROWS])
    yield count_finding("around", "pixels of equal codes that differ", case, by_face != by_face[:1])


def beyond_gate(version: Version, case: NetworkCase) -> Iterator[Finding]:
    """Yield how many coordinates of codes change with what is beyond the ellipse, and pixels drawn there."""
    hidden = ~ellipse_mask(SIDE)
    for row in ROWS:
        crop = crops_of(np.array([row], np.int64))
        other = np.where(hidden[..., None], 255 - crop, crop)
        codes = [case.codec.encode(one) for one in (crop, other)]
        yield count_finding("beyond", "coordinates that read beyond the ellipse", case, codes[0] != codes[1])
        drawn = case.method.release(crop, bits=SeededBits(1))
        yield count_finding("beyond", "levels drawn beyond the ellipse", case, drawn[:, hidden] != GREY)


def alone_gate(version: Version, case: NetworkCase) -> Iterator[Finding]:
    """Yield how many coordinates and levels of a face change with the other faces of its batch."""
    crops, codec = crops_of(np.array(ROWS, np.int64)), case.codec
    alone = np.concatenate([codec.encode(crop[None]) for crop in crops])
    single = np.concatenate([codec.decode(code[None]) for code in alone])
    for order in (slice(None), slice(None, None, -1)):
        both = codec.encode(crops[order]) != alone[order]
        yield count_finding("alone", "coordinates that see other faces", case, both)
        both = codec.decode(alone[order]) != single[order]
        yield count_finding("alone", "levels that see other faces", case, both)


def _release_fixed(case: NetworkCase, row: Row) -> Crops:
    """Return the release of a face whose code is drawn as `CODE`, with the same bits for every answer."""
    method = case.method
    codes = lambda self, given, *_, **__: np.repeat(CODE, len(given), axis=0)  # noqa: E731
    with mock.patch.object(LatentMechanism, "release", codes):
        (face,) = method.shown(crops_of(np.array([row], np.int64)), bits=SeededBits(1))
    return face.crop(method.frame)


# Faults in dpveil

PART: Final = 0.05  # how much of a code is shown beside the noise


def _beside(own: Any) -> Any:
    def released(self: Latent, crops: Crops, bits: BitSource) -> Any:
        codes, answers = own(self, crops, bits)
        return codes + PART * self._codec.encode(crops), answers

    return released


def _late(own: Any) -> Any:
    """Add the noise of the centre, then clip: codes beyond the box are as far apart as they come."""

    def release(self: LatentMechanism, codes: Any, space: Any, *, bits: BitSource) -> Any:
        return space.bounds(self.clip).clip(codes + own(self, 0 * codes, space, bits=bits))

    return release


def _batch(own: Any) -> Any:
    return lambda self, crops: (codes := own(self, crops)) - codes.mean(axis=0) / 4


def _moved(own: Any) -> Any:
    return lambda self, codes, space, *, bits: codes + own(self, 0 * codes, space, bits=bits)


INTACT: Final = Version(name="intact", law=law, draw=draw)
MUTANTS: Final = (
    planted("a part of the code beside the noise", Latent, "_released", _beside, "around"),
    planted("batch statistics in the encoder", EncoderDecoder, "_encode", _batch, "alone"),
    planted(
        "what is beyond the ellipse read",
        network_codecs,
        "ellipse_mask",
        lambda own: lambda side: np.ones((side, side), np.bool_),
        "beyond",
    ),
    planted("box around the code", LatentMechanism, "release", _moved, "fit"),
    planted("noise before clipping", LatentMechanism, "release", _late, "fit"),
    planted(
        "attribute of the face itself",
        DecoderInputs,
        "answers",
        lambda own: lambda self, crops, model, bits: {} if model is None else model.read(crops),
        "fit",
    ),
)
DRAWS: Final = 3000
FACES: Final[tuple[Row, ...]] = ((0, 0, 0), (140, 128, 255), (255, 255, 0), (128, 128, 255), (128, 128, 0))
"""Codes beyond opposite corners of the box, and inside; with two genders."""
NOISE: Final = {"box-laplace": ("laplace", own_scales), "box-truncated-laplace": ("truncated", own_ranges)}
"""The family of noise of a mechanism, and its amounts."""
TOLD: Final = NetworkCase(GAN, (("epsilon", "0.5"), ("attributes", "gender=0.5")))
CLIPPED: Final = NetworkCase(GAN, (("epsilon", 1), ("mechanism", "box-laplace")))
STYLED: Final = NetworkCase(StyleGAN, (("epsilon", 1),), likely=True)
AUDITS: Final = {
    Latent.name: Audit(
        method=Latent,
        intact=INTACT,
        mutants=MUTANTS,
        level=Level((TOLD, CLIPPED, STYLED), tuple(Drawn(case, DRAWS) for case in (TOLD, CLIPPED))),
        gates=(
            Gate("around", around_gate),
            Gate("alone", alone_gate),
            Gate("beyond", beyond_gate),
            *law_gates(INTACT, of=lambda level: [setting.case for setting in level.drawn]),
        ),
    )
}
