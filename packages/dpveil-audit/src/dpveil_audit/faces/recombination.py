"""The audit of recombination: photos with faces, a stub method, and hidden contents."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from functools import cache, cached_property, reduce
from typing import Any, ClassVar, Final

import cv2
import numpy as np
from jaxtyping import UInt8

from dpveil.core.guarantee import Guarantee, Relation, Scope
from dpveil.core.parameters import Between
from dpveil.core.photo import Photo
from dpveil.core.region import Box, Region
from dpveil.core.region_origin import FACE, WHOLE, Origin
from dpveil.faces import Attributes, FaceMethod
from dpveil.faces.drawn_face import Released
from dpveil.faces.embedding import LENGTH
from dpveil.faces.geometry import Frame, Landmarks, Placed, Predictor, place
from dpveil.faces.geometry.colour_match import match_of
from dpveil.faces.geometry.landmarks import SEEN, of_box
from dpveil.faces.head_gallery import HeadGallery
from dpveil.faces.head_placement import HeadPlacement, grown_to_blocks
from dpveil.faces.likeness import LINKED, Links
from dpveil.faces.paint_faces import paint_faces
from dpveil.mechanisms.method import Placement
from dpveil.noise.bits import BitSource, SeededBits
from dpveil.postprocessing import Step, parse_all
from dpveil.regions.chroma import chroma_beside, keep_blocks
from dpveil.release.plan import obfuscate
from dpveil_audit.engine import Finding, Gate, Level, Version, count_finding
from dpveil_audit.faces.growth import (
    SEES,
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
    an inner face is replaced, unless `heads` are shown, and else heads of a made gallery. Those that are
    `linked` are told from embeddings that follow from hidden pixels, and are those of as many persons.
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
    linked: bool = False

    @property
    def method(self) -> FaceMethod:
        if self.heads or self.protect != "face":
            heads, how = _heads(), {"protect": self.protect, "placing": "box"}
            return Attributes(attributes="none", gallery=heads, link=self.linked, **how)
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
        if self.linked and isinstance(treated, HeadPlacement):
            vars(treated.method)["rows"] = [_embedding(photo, box, n) for n, box in enumerate(self.boxes)]
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
        face += ", linked" * self.linked
        return f"{size}, {', '.join(more)}, {self.protect} of {where}{how}, {face}"


def _embedding(photo: Photo, box: Box, person: int) -> Pixels:
    """Return an embedding that is near that of a person, and follows from the pixels of a face."""
    moved = float(photo.image[box.slices].astype(np.float64).std()) % 1
    return np.eye(LENGTH)[[person]] * (1 + LINKED * moved / 2)


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

    @cached_property
    def placement(self) -> Placement:
        return self.case.placement(self.photo)

    def by(self, version: RecombinationVersion) -> Placement:
        if version not in self.kept:
            self.kept[version] = version.treated(self)
        treated: Placement = self.kept[version]
        return treated

    def draw(self, version: RecombinationVersion, number: int = 0) -> Pixels:
        """Return a version's release of a photo with the common draw, faces in the cells of the first one."""
        if (version, number) not in self.kept:
            treated = self._among(self.by(version), number)
            bits = SeededBits(DRAWN_WITH)
            image = version.released(treated, bits, self.case.following)
            self.kept[version, number] = keep_blocks(treated.photo, image, treated.regions)[0]
        released: Pixels = self.kept[version, number]
        return released

    def listed_places(self, version: RecombinationVersion) -> Places:
        return places(version.listed(self.by(version)), self.case.height, self.case.width)

    def _among(self, treated: Placement, number: int) -> Placement:
        """Return this placement applied to another photo; cells, and boxes alone, are in the clear."""
        photo = self.photos[number][1]
        if not isinstance(treated, HeadPlacement) or self.case.angle is not None or self.case.linked:
            return self.case.placement(photo, number)
        other = copy(treated)
        other.photo = photo
        return other


Draw = Callable[[Placement, BitSource, Sequence[Step]], Pixels]


@dataclass(frozen=True, kw_only=True)
class RecombinationVersion(Version):
    """One way to put faces back: dpveil's own, or a mutant; `listed` are its regions."""

    released: Draw = lambda treated, bits, steps: treated.draw(bits, steps)
    treated: Callable[[Made], Placement] = lambda made: made.placement
    listed: Callable[[Placement], Sequence[Region]] = lambda treated: treated.regions


# Gates for recombination: the influence of hidden pixels, unlisted changes, and unreplaced pixels

EVERYWHERE: Final = 3  # photos, including the first, that differ from one another in nearly all hidden pixels


def same_gate(version: RecombinationVersion, made: Made) -> Iterator[Finding]:
    """Yield how many pixels and regions seen by the other gates differ from the release of `obfuscate`."""
    case = made.case
    if case.angle is not None:
        return
    own = version.released(made.placement, SeededBits(DRAWN_WITH), case.following)
    own, _ = keep_blocks(made.photo, own, made.placement.regions)
    release = obfuscate(
        made.photo, case.method, regions=case.regions, bits=SeededBits(DRAWN_WITH), post_processing=case.steps
    )
    unlike = int((own != release.image).any(axis=2).sum())
    placed = [region.record for region in made.placement.regions]
    stated = release.certificate.regions
    unlike += sum(a.box != b.box or a.masked != b.masked for a, b in zip(placed, stated, strict=True))
    yield count_finding("same", "pixels and regions unlike a release", made.case, unlike, "pixels", sees=SEES)


def hidden_gate(version: RecombinationVersion, made: Made) -> Iterator[Finding]:
    """Yield how many released pixels change with hidden ones, under one draw."""
    apart = {
        name: int((made.draw(version, number) != made.draw(version)).any(axis=2).sum())
        for number, (name, _) in enumerate(made.photos[1:], 1)
    }
    worst = max(apart, key=lambda name: apart[name])
    what = f"pixels that hidden ones change, worst of {len(apart)}: {worst}"
    yield count_finding("hidden", what, made.case, apart[worst], "pixels", sees=SEES)


def outside_gate(version: RecombinationVersion, made: Made) -> Iterator[Finding]:
    """Yield how many pixels outside the listed regions differ between photo and release.

    Not counted are those of a JPEG's blocks of chroma that hold something of a region.
    """
    changed = (made.draw(version) != made.photo.image).any(axis=2) & ~made.listed_places(version)
    if made.photo.blocks is not None:
        regions = made.by(version).regions
        hidden = places(regions, made.case.height, made.case.width)
        changed &= ~chroma_beside(made.photo.blocks(), regions, hidden)
    count = int(changed.sum())
    yield count_finding(
        "outside", "pixels changed outside of the regions", made.case, count, "pixels", sees=SEES
    )


def copy_gate(version: RecombinationVersion, made: Made) -> Iterator[Finding]:
    """Yield how many listed pixels are released unchanged, in photos that differ in all of them."""
    images = [photo.image for _, photo in made.photos[:EVERYWHERE]]
    kept = made.listed_places(version)
    kept &= np.logical_or.reduce([(image != images[0]).any(axis=2) for image in images])
    for number, image in enumerate(images):
        kept &= (made.draw(version, number) == image).all(axis=2)
    yield count_finding(
        "copy", "pixels of regions released as they are", made.case, kept, "pixels", sees=SEES
    )


# The photos on which recombination is audited, and its mutants

ONE: Final = (Box(35, 22, 9, 11),)
CORNER: Final = (Box(0, 49, 9, 10),)
TWO: Final = (Box(22, 20, 9, 11), Box(38, 25, 11, 13))  # overlapping regions
BESIDE: Final = (Box(9, 20, 7, 9), Box(43, 20, 7, 9))  # regions with a common edge and no common pixel
POINT: Final = (Box(84, 60, 1, 1),)
LARGE: Final = (Box(10, 5, 65, 55),)  # a face whose region is the whole photo
WIDE: Final = (Box(140, 90, 105, 120),)
"""A face in a photo large enough for filling to scale its surroundings down: see `geometry.fill.FINE`."""
PAIR: Final = (Box(20, 30, 60, 75), Box(140, 35, 60, 75))  # faces of two persons
Faces = Sequence[Released]
Put = Callable[[Pixels, Sequence[Placed], Faces], Pixels]


def _quick() -> tuple[RecombinationCase, ...]:
    """Return settings of every kind; those that reject most mutants come first."""
    case = RecombinationCase
    return (
        case(TWO, protect="box"),
        case((), height=40, width=61),
        case(ONE, encoding=Encoding("4:2:0", 90)),
        case(CORNER),
        case(ONE, scene="dark"),
        case(ONE, scene="without colour"),
        case(ONE, scene="dark", channels=1),
        case(TWO, protect="head"),
        case(TWO, scene="dark"),
        case(ONE, channels=1, encoding=Encoding("grey", 60), margin="0"),
        case(WIDE, height=331, width=421, protect="head"),
        case(ONE, angle=0.4),
        case(BESIDE, protect="box"),
        case(TWO, steps=("median:3", "gaussian:2"), margin="0"),
        case(TWO, protect="box", steps=("median:3", "gaussian:2")),
        case(POINT),
        case(LARGE, protect="box"),
        case(TWO, protect="head", encoding=Encoding("4:2:2", 95, turn=6)),
        case(CORNER, protect="box", encoding=Encoding("grey", 60), channels=1),
        case(TWO, heads=True),
        case(PAIR, height=150, width=230, heads=True, linked=True),
        case(WIDE, height=331, width=421, encoding=Encoding("4:2:0", 90), protect="box"),
        case((), height=40, width=61, heads=True),
    )


def _deep() -> tuple[RecombinationCase, ...]:
    every = [
        RecombinationCase(boxes, scene=scene, protect=protect, angle=angle, margin=margin)
        for boxes in (ONE, TWO, BESIDE, CORNER, LARGE)
        for scene in SCENES
        for protect, angle, margin in (
            ("box", None, "0.5"),
            ("box", 1.2, "0.35"),
            ("head", 0.2, "0"),
            ("face", 0.3, "0"),
        )
    ]
    stored = [
        replace(case, encoding=Encoding(kind, 95, turn=turn), channels=1 if kind == "grey" else 3)
        for kind in ("4:4:4", "4:2:2", "4:2:0", "4:4:0", "4:1:1", "grey")
        for turn, case in enumerate(every[2::9][:5], 1)
    ]
    portraits = [RecombinationCase((), height=h, width=w, channels=1) for h, w in ((31, 9), (1, 1))]
    return *every, *stored, *portraits, RecombinationCase(WIDE, height=480, width=640, scene="without colour")


LEVELS: Final[dict[str, Level]] = {
    "quick": Level(_quick()),
    "deep": Level((*_quick(), *_deep())),
}
INTACT: Final = RecombinationVersion(name="intact")
HIDDEN: Final = ("hidden",)
OUTSIDE: Final = ("outside",)


def wrong(name: str, put: Put, **changes: Any) -> RecombinationVersion:

    def draw(treated: Placement, bits: BitSource, steps: Sequence[Step]) -> Pixels:
        if not isinstance(treated, HeadPlacement):
            return treated.draw(bits, steps)
        shown = treated.method.shown(_crops(treated), bits=bits)
        released = [reduce(lambda shown, step: shown.after(step), steps, face) for face in shown]
        return put(treated.photo.image, treated.places, released)

    return RecombinationVersion(name=name, released=draw, **changes)


def _crops(heads: HeadPlacement) -> Pixels:
    return np.stack([one.crop(heads.photo) for one in heads.places])


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


def _filled_from_hidden(image: Pixels, at: Sequence[Placed], faces: Faces) -> Pixels:
    """Fill a hole that leaves out the outermost hidden pixels."""
    out, inner = paint_faces(image, at, faces), _smaller(at, 2)
    inside = _hidden_places(image, inner)
    out[inside] = paint_faces(image, inner, faces)[inside]
    return out


def _take_photo_colours(image: Pixels, at: Sequence[Placed], faces: Faces) -> Pixels:
    match = match_of(image, np.zeros(image.shape[:2], np.bool_))
    return paint_faces(
        image, at, [face.after(lambda levels: _levels(match(levels.astype(np.float32)))) for face in faces]
    )


def _levels(levels: np.ndarray) -> Pixels:
    whole: Pixels = np.clip(np.rint(levels), 0, 255).astype(np.uint8)
    return whole


def _blend_seam(image: Pixels, at: Sequence[Placed], faces: Faces) -> Pixels:
    out, inside = paint_faces(image, at, faces), _hidden_places(image, at)
    seam = inside & ~_hidden_places(image, _smaller(at, 2))
    out[seam] = _levels((out[seam].astype(np.float32) + image[seam]) / 2)
    return out


def _one_by_one(image: Pixels, at: Sequence[Placed], faces: Faces) -> Pixels:
    out = image.copy()
    for one, face in zip(at, faces, strict=True):
        inside = _hidden_places(image, [one])
        out[inside] = paint_faces(image, [one], [face])[inside]
    return out


def _where_it_is(image: Pixels, at: Sequence[Placed], faces: Faces) -> Pixels:
    """Put every face exactly where the one that it replaces was."""
    return paint_faces(image, [replace(one, pose=one.exact or one.pose) for one in at], faces)


def _smooth_after(image: Pixels, at: Sequence[Placed], faces: Faces) -> Pixels:
    out = paint_faces(image, at, faces)
    inside = _hidden_places(image, at).astype(np.uint8)
    seam = (cv2.dilate(inside, np.ones((3, 3), np.uint8)) > inside)[..., None]
    return np.where(seam, cv2.blur(out, (3, 3)).reshape(out.shape), out)


def _left_out(image: Pixels, at: Sequence[Placed], faces: Faces) -> Pixels:
    out = paint_faces(image, at, faces)
    out[-1], out[:, -1] = image[-1], image[:, -1]
    return out


def _not_released(treated: Placement, bits: BitSource, steps: Sequence[Step]) -> Pixels:
    if not isinstance(treated, HeadPlacement):
        return treated.draw(bits, steps)
    crops = _crops(treated)
    faces = [_showing(*both) for both in zip(treated.method.shown(crops, bits=bits), crops, strict=True)]
    return paint_faces(treated.photo.image, treated.places, faces)


def _showing(face: Released, crop: Pixels) -> Released:
    return face.after(lambda levels: cv2.resize(crop, levels.shape[1::-1]))


def _beside(treated: Placement, bits: BitSource, steps: Sequence[Step]) -> Pixels:
    out = treated.draw(bits, steps)
    if isinstance(treated, HeadPlacement):
        return out
    image: Pixels = treated.photo.image
    height, width = image.shape[:2]
    side = min(height, width)
    top, left = (height - side) // 2, (width - side) // 2
    kept = np.ones((height, width, 1), np.bool_)
    kept[top : top + side, left : left + side] = False
    return np.where(kept, image, out).astype(np.uint8)


def _chroma_of_faces(treated: Placement, bits: BitSource, steps: Sequence[Step]) -> Pixels:
    if not isinstance(treated, HeadPlacement):
        return treated.draw(bits, steps)
    grid = treated.photo.grid
    small = None if grid is None else replace(grid, width=8, height=8, margin=0)
    return treated.draw_in(Photo(treated.photo.image, small), bits, steps)


class _ByLikeness(Links):
    """Shows every person as the one of the gallery that the embedding says."""

    def person(self, row: Pixels | None) -> int:
        number = super().person(row)
        if row is not None:
            self.shown[number] = int(1e9 * float(np.abs(row).sum())) % len(_heads())
        return number


def _linked_by_likeness(treated: Placement, bits: BitSource, steps: Sequence[Step]) -> Pixels:
    if isinstance(treated, HeadPlacement) and "rows" in vars(treated.method):
        vars(treated.method)["_links"] = _ByLikeness()
    return treated.draw(bits, steps)


MUTANTS: Final = (
    wrong("filled from hidden pixels", _filled_from_hidden, gates=HIDDEN),
    wrong("colours of the whole photo", _take_photo_colours, gates=HIDDEN),
    wrong("seam feathered into the photo", _blend_seam, gates=HIDDEN),
    wrong(
        "mask eroded by a pixel",
        lambda image, at, faces: paint_faces(image, _smaller(at, 1), faces),
        gates=("hidden", "copy"),
    ),
    wrong("each face filled on its own", _one_by_one, gates=HIDDEN),
    wrong("placement not rounded", _where_it_is, gates=HIDDEN),
    wrong("seam blurred after", _smooth_after, gates=OUTSIDE),
    wrong("last row and column left out", _left_out, gates=("hidden", "copy")),
    wrong(
        "less listed than replaced",
        paint_faces,
        gates=OUTSIDE,
        listed=lambda treated: [_erode(region, 1) for region in treated.regions],
    ),
    RecombinationVersion(name="original crop put back", gates=HIDDEN, released=_not_released),
    RecombinationVersion(
        name="faces in a JPEG not grown",
        gates=HIDDEN,
        treated=lambda made: made.case.placement(Photo(made.photo.image)),
    ),
    RecombinationVersion(name="chroma read from blocks with a face", gates=HIDDEN, released=_chroma_of_faces),
    RecombinationVersion(name="linked face by its likeness", gates=HIDDEN, released=_linked_by_likeness),
    RecombinationVersion(name="photo kept around a portrait", gates=("hidden", "copy"), released=_beside),
)
AUDIT: Final = PhotoAudit(
    made=Made,
    intact=INTACT,
    mutants=MUTANTS,
    levels=LEVELS,
    gates=(
        Gate("same", same_gate, ties=True),
        Gate("hidden", hidden_gate),
        Gate("outside", outside_gate),
        Gate("copy", copy_gate),
    ),
)
