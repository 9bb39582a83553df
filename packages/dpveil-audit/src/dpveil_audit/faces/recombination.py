"""The audit of recombination: photos with faces, a stub method, and hidden contents."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any, ClassVar, Final

import cv2
import numpy as np
from jaxtyping import UInt8

from dpveil.core.guarantee import Guarantee, Relation, Scope
from dpveil.core.parameters import Between
from dpveil.core.photo import Photo
from dpveil.core.region import Box, Region
from dpveil.core.region_origin import FACE, WHOLE, Origin
from dpveil.faces import Attributes, FaceMethod, head_placement
from dpveil.faces.drawn_face import Released
from dpveil.faces.geometry.align import Frame
from dpveil.faces.geometry.colour_match import match_of
from dpveil.faces.geometry.landmarks import SEEN, Landmarks, Predictor, of_box
from dpveil.faces.geometry.place import Placed, place
from dpveil.faces.head_gallery import HeadGallery
from dpveil.faces.head_placement import HeadPlacement, grown_to_blocks
from dpveil.faces.portrait_placement import Portrait
from dpveil.mechanisms.method import Placement
from dpveil.noise.bits import BitSource, SeededBits
from dpveil.postprocessing import Step, parse_all
from dpveil.regions.chroma import chroma_beside, keep_blocks
from dpveil_audit.engine import Finding, Gate, Level, Version, count_finding, planted
from dpveil_audit.faces.growth import (
    Encoding,
    MadePhotos,
    PhotoAudit,
    Pixels,
    Places,
    neighbours,
    places,
    scene,
)
from dpveil_audit.faces.made_heads import made_heads

SIDE: Final = 32
NEARBY: Final = 0.002  # angle in radians between the synthetic landmarks of two photos
DRAWN_WITH: Final = 1  # seed of draws that are to be the same for every photo
SCENES: Final[dict[str, Callable[[Pixels], Pixels]]] = {
    "textured": lambda image: image,
    "dark": lambda image: image // 6,
    "without colour": lambda image: np.ascontiguousarray(np.broadcast_to(image[..., :1], image.shape)),
}


@dataclass(frozen=True, kw_only=True)
class MadeFaces(FaceMethod):
    """A stub that draws from its bits alone, so that a release shows a face only in other ways."""

    name: ClassVar[str] = "made-faces"
    kinds: ClassVar[tuple[str, ...]] = ("pure",)
    summary: ClassVar[str] = "pictures of bits alone"
    source: ClassVar[str] = "the audit"

    margin: Between = Between(0, 2, hint="such as 0.35", default=0)

    @property
    def frame(self) -> Frame:
        return Frame(SIDE, float(self.margin))

    def guarantee(self, *, height: int, width: int, channels: int) -> Guarantee:
        return Guarantee(kind="pure", epsilon=1, relation=Relation("any-image"), scope=Scope("a face"))

    def _draw(self, crops: UInt8[np.ndarray, "n s s 3"], bits: BitSource) -> UInt8[np.ndarray, "n s s 3"]:
        return np.stack([scene(bits, SIDE, SIDE, 3) for _ in crops])


class MadeLandmarks(Predictor):
    """Landmarks of a mean face in a box, rotated by an angle in radians; no pixel is read."""

    def __init__(self, angle: float) -> None:
        self.angle = angle

    def near(self, image: UInt8[np.ndarray, "H W c"], box: Box, angle: float = 0.0) -> Landmarks:
        upright = of_box(box).back(SEEN.points())
        c, s = np.cos(self.angle), np.sin(self.angle)
        middle = upright.mean(axis=0)
        return Landmarks((upright - middle) @ np.array([[c, s], [-s, c]]) + middle, 0.0, 1.0)


@dataclass(frozen=True)
class RecombinationCase:
    """A synthetic photo and the boxes of its faces; none for a portrait.

    `angle` is that of synthetic landmarks, in radians, which differs by `NEARBY` from photo to photo, within
    one cell of the public grid; None places faces by their boxes alone. Faces are made of bits alone where
    an inner face is replaced, unless `heads` are shown, and else heads of a made gallery.
    """

    boxes: tuple[Box, ...]
    height: int = 61
    width: int = 85
    channels: int = 3
    scene: str = "textured"
    protect: str = "face"
    angle: float | None = None
    margin: str = "0.5"
    steps: tuple[str, ...] = ()
    encoding: Encoding | None = None
    heads: bool = False

    @property
    def method(self) -> FaceMethod:
        if self.heads or self.protect != "face":
            return Attributes(attributes="none", gallery=_heads(), protect=self.protect, placing="box")
        return MadeFaces(margin=self.margin, placing="box")

    @property
    def regions(self) -> list[Region]:
        if not self.boxes:
            return [Region(Box(0, 0, self.width, self.height), origin=Origin(WHOLE, WHOLE))]
        return [
            Region(box, origin=Origin(FACE, "faces", number=n, found=True))
            for n, box in enumerate(self.boxes, 1)
        ]

    @property
    def following(self) -> tuple[Step, ...]:
        return parse_all(self.steps)

    def placement(self, photo: Photo, number: int = 0) -> Placement:
        """Return dpveil's own placement for a photo with this number, with faces placed as in this case."""
        treated = self.method.place(photo, self.regions)
        if self.angle is not None and isinstance(treated, HeadPlacement):
            treated.places = [
                replace(one, region=grown_to_blocks(one.region, self.method, photo))
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
        before = [region.before or region for region in self.placement(first).regions]
        inside = places(before, self.height, self.width)
        yield "as it was", first
        for name, other in neighbours(image, inside, bits):
            yield name, stored(other)

    def __str__(self) -> str:
        where = " and ".join(map(str, self.boxes)) or "portrait"
        how = "" if self.angle is None else f", landmarks at {self.angle}"
        more = [self.scene, *self.steps, *([] if self.encoding is None else [str(self.encoding)])]
        size = f"{self.width} × {self.height} × {self.channels}"
        face = f"margin {self.margin}" if isinstance(self.method, MadeFaces) else "heads"
        return f"{size}, {', '.join(more)}, {self.protect} of {where}{how}, {face}"


@cache
def _heads() -> HeadGallery:
    return made_heads()


@dataclass(frozen=True, eq=False)
class Made(MadePhotos):
    """The photos of a case and the versions' releases of them, each made once for all gates."""

    case: RecombinationCase
    kept: dict[Any, Any] = field(default_factory=dict)

    @property
    def photo(self) -> Photo:
        return self.photos[0][1]

    def by(self, version: Version) -> Placement:
        if version not in self.kept:
            self.kept[version] = self.case.placement(self.photo)
        treated: Placement = self.kept[version]
        return treated

    def draw(self, version: Version, number: int = 0) -> Pixels:
        """Return a version's release of a photo with the common draw, faces in the cells of the first one."""
        if (version, number) not in self.kept:
            treated = self._among(self.by(version), number)
            image = treated.draw(SeededBits(DRAWN_WITH), self.case.following)
            self.kept[version, number] = keep_blocks(treated.photo, image, treated.regions)[0]
        released: Pixels = self.kept[version, number]
        return released

    def listed_places(self, version: Version) -> Places:
        return places(self.by(version).regions, self.case.height, self.case.width)

    def _among(self, treated: Placement, number: int) -> Placement:
        """Return this placement applied to another photo; cells, and boxes alone, are in the clear."""
        photo = self.photos[number][1]
        if not isinstance(treated, HeadPlacement) or self.case.angle is not None:
            return self.case.placement(photo, number)
        other = copy(treated)
        other.photo = photo
        return other


# Gates for recombination: the influence of hidden pixels, unlisted changes, and unreplaced pixels

EVERYWHERE: Final = 3  # photos, including the first, that differ from one another in nearly all hidden pixels


def hidden_gate(version: Version, made: Made) -> Iterator[Finding]:
    """Yield how many released pixels change with hidden ones, under one draw."""
    apart = {
        name: int((made.draw(version, number) != made.draw(version)).any(axis=2).sum())
        for number, (name, _) in enumerate(made.photos[1:], 1)
    }
    worst = max(apart, key=lambda name: apart[name])
    what = f"pixels that hidden ones change, worst of {len(apart)}: {worst}"
    yield count_finding("hidden", what, made.case, apart[worst], "pixels")


def outside_gate(version: Version, made: Made) -> Iterator[Finding]:
    """Yield how many pixels outside the listed regions differ between photo and release.

    Not counted are those of a JPEG's blocks of chroma that hold something of a region.
    """
    changed = (made.draw(version) != made.photo.image).any(axis=2) & ~made.listed_places(version)
    if made.photo.blocks is not None:
        regions = made.by(version).regions
        hidden = places(regions, made.case.height, made.case.width)
        changed &= ~chroma_beside(made.photo.blocks(), regions, hidden)
    count = int(changed.sum())
    yield count_finding("outside", "pixels changed outside of the regions", made.case, count, "pixels")


def copy_gate(version: Version, made: Made) -> Iterator[Finding]:
    """Yield how many listed pixels are released unchanged, in photos that differ in all of them."""
    images = [photo.image for _, photo in made.photos[:EVERYWHERE]]
    kept = made.listed_places(version)
    kept &= np.logical_or.reduce([(image != images[0]).any(axis=2) for image in images])
    for number, image in enumerate(images):
        kept &= (made.draw(version, number) == image).all(axis=2)
    yield count_finding("copy", "pixels of regions released as they are", made.case, kept, "pixels")


# The photos on which recombination is audited, and its mutants

ONE: Final = (Box(35, 22, 9, 11),)
CORNER: Final = (Box(0, 49, 9, 10),)
TWO: Final = (Box(22, 20, 9, 11), Box(38, 25, 11, 13))  # overlapping regions
BESIDE: Final = (Box(9, 20, 7, 9), Box(43, 20, 7, 9))  # regions with a common edge and no common pixel
LARGE: Final = (Box(10, 5, 65, 55),)  # a face whose region is the whole photo
WIDE: Final = (Box(140, 90, 105, 120),)
"""A face in a photo large enough for filling to scale its surroundings down: see `geometry.fill.FINE`."""
Faces = Sequence[Released]


def _cases() -> tuple[RecombinationCase, ...]:
    """Return settings of every kind; those that reject most mutants come first."""
    case = RecombinationCase
    return (
        case(TWO, protect="box"),
        case((), height=40, width=61),
        case(ONE, encoding=Encoding("4:2:0", 90)),
        case(ONE, scene="dark"),
        case(ONE, scene="without colour"),
        case(TWO, protect="head"),
        case(ONE, channels=1, encoding=Encoding("grey", 60), margin="0"),
        case(WIDE, height=331, width=421, protect="head"),
        case(ONE, angle=0.4),
        case(BESIDE, protect="box"),
        case(TWO, steps=("median:3", "gaussian:2"), margin="0"),
        case(LARGE, protect="box"),
        case(TWO, protect="head", encoding=Encoding("4:2:2", 95, turn=6)),
        case(TWO, heads=True),
        case((), height=40, width=61, heads=True),
    )


def _hidden_places(image: Pixels, at: Sequence[Placed]) -> Places:
    return places([one.region for one in at], *image.shape[:2])


def _erode(region: Region, by: int) -> Region:
    """Return a region without its outermost pixels, or unchanged if none would be left."""
    box = region.box
    full = np.ones((box.h, box.w), np.bool_) if region.mask is None else region.mask
    window = np.ones((2 * by + 1, 2 * by + 1), np.uint8)
    inner = cv2.erode(full.astype(np.uint8), window, borderType=cv2.BORDER_CONSTANT, borderValue=0) > 0
    return replace(region, mask=inner) if inner.any() else region


def _smaller(at: Sequence[Placed], by: int) -> list[Placed]:
    return [replace(one, region=_erode(one.region, by)) for one in at]


# Faults in dpveil: what becomes of a function

Change = Callable[[Any], Any]


def _filled_from_hidden(own: Any) -> Any:
    """Fill a hole that leaves out the outermost hidden pixels."""

    def recombine(image: Pixels, at: Sequence[Placed], faces: Faces, **shown: bool) -> Pixels:
        out: Pixels = own(image, at, faces, **shown)
        inner = _smaller(at, 2)
        inside = _hidden_places(image, inner)
        out[inside] = own(image, inner, faces, **shown)[inside]
        return out

    return recombine


def _take_photo_colours(own: Any) -> Any:
    def recombine(image: Pixels, at: Sequence[Placed], faces: Faces, **shown: bool) -> Any:
        match = match_of(image, np.zeros(image.shape[:2], np.bool_))

        def matched(levels: Pixels) -> Any:
            return np.clip(np.rint(match(levels.astype(np.float32))), 0, 255).astype(np.uint8)

        return own(image, at, [face.after(matched) for face in faces], **shown)

    return recombine


def _not_released(own: Any) -> Any:
    def recombine(image: Pixels, at: Sequence[Placed], faces: Faces, **shown: bool) -> Any:
        back = [_showing(face, one.crop(Photo(image))) for one, face in zip(at, faces, strict=True)]
        return own(image, at, back, **shown)

    return recombine


def _showing(face: Released, crop: Pixels) -> Released:
    return face.after(lambda levels: cv2.resize(crop, levels.shape[1::-1]))


def _where_it_is(own: Any) -> Any:
    """Put every face exactly where the one that it replaces was."""

    def draw_in(self: HeadPlacement, *given: Any) -> Pixels:
        there = copy(self)
        there.places = [replace(one, pose=one.exact or one.pose) for one in self.places]
        out: Pixels = own(there, *given)
        return out

    return draw_in


def _less_listed(own: Any) -> Any:
    def init(self: HeadPlacement, *given: Any) -> None:
        own(self, *given)
        self.regions = tuple(_erode(region, 1) for region in self.regions)

    return init


def _beside(own: Any) -> Any:
    def draw(self: Portrait, *given: Any) -> Pixels:
        image: Pixels = self.photo.image
        height, width = image.shape[:2]
        side = min(height, width)
        top, left = (height - side) // 2, (width - side) // 2
        kept = np.ones((height, width, 1), np.bool_)
        kept[top : top + side, left : left + side] = False
        return np.where(kept, image, own(self, *given)).astype(np.uint8)

    return draw


WRONG: Final[dict[str, tuple[Any, str, Change, str]]] = {
    "filled from hidden pixels": (head_placement, "paint_faces", _filled_from_hidden, "hidden"),
    "colours of the whole photo": (head_placement, "paint_faces", _take_photo_colours, "hidden"),
    "mask eroded by a pixel": (
        head_placement,
        "paint_faces",
        lambda own: lambda image, at, faces, **shown: own(image, _smaller(at, 1), faces, **shown),
        "hidden, copy",
    ),
    "placement not rounded": (HeadPlacement, "draw_in", _where_it_is, "hidden"),
    "less listed than replaced": (HeadPlacement, "__init__", _less_listed, "outside"),
    "original crop put back": (head_placement, "paint_faces", _not_released, "hidden"),
    "faces in a JPEG not grown": (
        head_placement,
        "grow",
        lambda own: lambda region, photo: region,
        "hidden",
    ),
    "chroma read from blocks with a face": (
        head_placement,
        "without_their_chroma",
        lambda own: lambda photo, regions: photo,
        "hidden",
    ),
    "photo kept around a portrait": (Portrait, "draw", _beside, "hidden, copy"),
}
AUDIT: Final = PhotoAudit(
    made=Made,
    intact=Version(name="intact"),
    mutants=tuple(planted(name, *fault) for name, fault in WRONG.items()),
    level=Level(_cases()),
    gates=(
        Gate("hidden", hidden_gate),
        Gate("outside", outside_gate),
        Gate("copy", copy_gate),
    ),
)
