"""Audit cases for recombination: photos with faces, a stub method, and hidden contents."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar, Final

import numpy as np
from jaxtyping import UInt8

from dpveil.core.guarantee import Guarantee, Relation, Scope
from dpveil.core.origin import FACE, WHOLE, Origin
from dpveil.core.parameters import Between
from dpveil.core.photo import Photo
from dpveil.core.region import Box, Region
from dpveil.faces import Attributes, FaceMethod
from dpveil.faces.geometry import Frame, Landmarks, Placed, Predictor, place
from dpveil.faces.geometry.landmarks import SEEN, of_box
from dpveil.faces.heads import Heads
from dpveil.mechanisms.placement import Placement
from dpveil.noise.bits import BitSource, SeededBits
from dpveil.postprocessing import Step, parse_all
from dpveil.regions import grow
from dpveil_audit.entry import Bits, Variant
from dpveil_audit.faces.photos import Encoding, Pixels, Places, neighbours, places, scene

SIDE: Final = 32
NEARBY: Final = 0.002
"""Angle in radians between the synthetic landmarks of two photos."""
DRAWN_WITH: Final = 1
"""Seed of draws that are to be the same for every photo."""
SCENES: Final[dict[str, Callable[[Pixels], Pixels]]] = {
    "textured": lambda image: image,
    "dark": lambda image: image // 6,
    "without colour": lambda image: np.ascontiguousarray(np.broadcast_to(image[..., :1], image.shape)),
}


@dataclass(frozen=True, kw_only=True)
class MadeFaces(FaceMethod):
    """A stub that draws pictures from its bits alone, so that a release can show a face only in other
    ways.
    """

    name: ClassVar[str] = "made-faces"
    kinds: ClassVar[tuple[str, ...]] = ("pure",)
    summary: ClassVar[str] = "pictures of bits alone"
    source: ClassVar[str] = "the audit"

    margin: Between = Between(0, 2, hint="such as 0.35", default=0)

    @property
    def frame(self) -> Frame:
        """Small crops."""
        return Frame(SIDE, float(self.margin))

    def guarantee(self, *, height: int, width: int, channels: int) -> Guarantee:
        """Return a nominal guarantee of ε = 1."""
        return Guarantee(kind="pure", epsilon=1, relation=Relation("any-image"), scope=Scope("a face"))

    def _draw(self, crops: UInt8[np.ndarray, "n s s 3"], bits: BitSource) -> UInt8[np.ndarray, "n s s 3"]:
        return np.stack([scene(bits, SIDE, SIDE, 3) for _ in crops])


class MadeLandmarks(Predictor):
    """Landmarks of a mean face in a box, rotated by an angle in radians; no pixel is read."""

    def __init__(self, angle: float) -> None:
        self.angle = angle

    def near(self, image: UInt8[np.ndarray, "H W c"], box: Box, angle: float = 0.0) -> Landmarks:
        """Return the landmarks of the face in `box`."""
        upright = of_box(box).back(SEEN.points())
        c, s = np.cos(self.angle), np.sin(self.angle)
        middle = upright.mean(axis=0)
        return Landmarks((upright - middle) @ np.array([[c, s], [-s, c]]) + middle, 0.0, 1.0)


@dataclass(frozen=True)
class RecombinationCase:
    """A synthetic photo and the boxes of its faces; none for a portrait.

    `angle` is that of synthetic landmarks, in radians, which differs by `NEARBY` from photo to photo, within
    one cell of the public grid; None places faces by their boxes alone. With
    `figures` heads are drawn (`gallery="drawn"`) instead of made of bits alone.
    """

    boxes: tuple[Box, ...]
    height: int = 61
    width: int = 85
    channels: int = 3
    scene: str = "textured"
    protect: str = "box"
    angle: float | None = None
    margin: str = "0.5"
    steps: tuple[str, ...] = ()
    encoding: Encoding | None = None
    figures: bool = False

    @property
    def method(self) -> FaceMethod:
        """The stub method, or the one that draws heads."""
        if self.figures:
            return Attributes(attributes="none", gallery="drawn", protect=self.protect, placing="box")
        return MadeFaces(margin=self.margin, protect=self.protect, placing="box", inpainting="telea")

    @property
    def regions(self) -> list[Region]:
        """The regions as a finder would return them."""
        if not self.boxes:
            return [Region(Box(0, 0, self.width, self.height), origin=Origin(WHOLE, WHOLE))]
        return [
            Region(box, origin=Origin(FACE, "faces", number=n, found=True))
            for n, box in enumerate(self.boxes, 1)
        ]

    @property
    def following(self) -> tuple[Step, ...]:
        """The post-processing steps."""
        return parse_all(self.steps)

    def treated(self, photo: Photo, number: int = 0) -> Placement:
        """Return dpveil's own placement for a photo with this number, with faces placed as in this case."""
        treated = self.method.place(photo, self.regions)
        if self.angle is not None and isinstance(treated, Heads):
            treated.places = [
                replace(one, region=grow(one.region, photo))
                for one in self._by_landmarks(photo, self.angle + number * NEARBY)
            ]
            treated.regions = tuple(one.region for one in treated.places)
        return treated

    def _by_landmarks(self, photo: Photo, angle: float) -> Iterator[Placed]:
        for region in self.regions:
            yield place(
                photo,
                region.box,
                frame=self.method.frame,
                protect=self.protect,
                landmarks=MadeLandmarks(angle),
                origin=region.origin,
            )

    def photos(self, bits: BitSource) -> Iterator[tuple[str, Photo]]:
        """Yield a photo and others that differ in hidden pixels, before they are encoded, if they are.

        The hidden pixels of an encoded photo are those without growth.
        """
        image = SCENES[self.scene](scene(bits, self.height, self.width, self.channels))
        stored = Photo if self.encoding is None else self.encoding.photo
        first = stored(image)
        inside = places(self.treated(Photo(first.image)).regions, self.height, self.width)
        yield "as it was", first
        for name, other in neighbours(image, inside, bits):
            yield name, stored(other)

    def __str__(self) -> str:
        where = " and ".join(map(str, self.boxes)) or "portrait"
        how = "" if self.angle is None else f", landmarks at {self.angle}"
        more = [self.scene, *self.steps, *([] if self.encoding is None else [str(self.encoding)])]
        size = f"{self.width} × {self.height} × {self.channels}"
        face = "drawn heads" if self.figures else f"margin {self.margin}"
        return f"{size}, {', '.join(more)}, {self.protect} of {where}{how}, {face}"


@dataclass(frozen=True, eq=False)
class Made:
    """The photos of a case and the versions' releases of them, each made once for all gates."""

    case: RecombinationCase
    bits: Bits
    kept: dict[Any, Any] = field(default_factory=dict)

    @cached_property
    def photos(self) -> list[tuple[str, Photo]]:
        """The photo and its neighbours, by their hidden contents."""
        return list(self.case.photos(self.bits(f"{self.case} photos")))

    @property
    def photo(self) -> Photo:
        """The first photo."""
        return self.photos[0][1]

    @cached_property
    def treated(self) -> Placement:
        """The placement for the first photo."""
        return self.case.treated(self.photo)

    def by(self, version: RecombinationVersion) -> Placement:
        """Return a version's placement for the first photo."""
        if version not in self.kept:
            self.kept[version] = version.treated(self)
        treated: Placement = self.kept[version]
        return treated

    def drawn(self, version: RecombinationVersion, number: int = 0) -> Pixels:
        """Return a version's release of a photo with the common draw, with faces in the same cells as in the
        first photo.
        """
        if (version, number) not in self.kept:
            treated = self._among(self.by(version), number)
            bits = SeededBits(DRAWN_WITH)
            self.kept[version, number] = version.draw(treated, bits, self.case.following)
        released: Pixels = self.kept[version, number]
        return released

    def listed(self, version: RecombinationVersion) -> Places:
        """Return which pixels a version says it replaces."""
        return places(version.listed(self.by(version)), self.case.height, self.case.width)

    def _among(self, treated: Placement, number: int) -> Placement:
        """Return this placement applied to another photo; cells, and boxes alone, are in the clear."""
        photo = self.photos[number][1]
        if not isinstance(treated, Heads) or self.case.angle is not None:
            return self.case.treated(photo, number)
        other = copy(treated)
        other.photo = photo
        return other


Draw = Callable[[Placement, BitSource, Sequence[Step]], Pixels]


@dataclass(frozen=True, kw_only=True)
class RecombinationVersion(Variant):
    """One way to put faces back: dpveil's own, or a mutant; `listed` are its regions."""

    draw: Draw = lambda treated, bits, steps: treated.draw(bits, steps)
    treated: Callable[[Made], Placement] = lambda made: made.treated
    listed: Callable[[Placement], Sequence[Region]] = lambda treated: treated.regions
