"""Synthetic photos for the audits of growth and recombination: scenes, hidden contents, encoded files."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from io import BytesIO
from typing import Any, Final

import cv2
import numpy as np
from jaxtyping import Bool, UInt8
from PIL import Image

from dpveil.core.photo import BlockGrid, Photo
from dpveil.core.region import Box, Region, RegionRecord
from dpveil.io import read_bytes
from dpveil.mechanisms.pixel import DPPix, Fill
from dpveil.mechanisms.pixel.base import PixelMethod
from dpveil.noise.bits import BitSource, SeededBits
from dpveil.regions.growth import grow
from dpveil.release.plan import obfuscate
from dpveil.release.saving import Release
from dpveil.release.words import TRACES
from dpveil_audit.engine import Audit, Bits, Check, Finding, Gate, Level, Version, count_finding

Pixels = UInt8[np.ndarray, "h w c"]
Places = Bool[np.ndarray, "h w"]

SEES: Final = "one pixel by one level"
SAMPLINGS: Final = {"4:4:4": 0, "4:2:2": 1, "4:2:0": 2}  # chroma subsampling, as Pillow's option
FACTORS: Final = {"4:4:0": 0x121111, "4:1:1": 0x411111}
"""Subsampling that Pillow cannot write, as OpenCV's option."""
STORED: Final = {
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_90,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_270,
}
"""How the upright picture is transformed before it is stored with this orientation (EXIF 2.32, tag
0x0112).
"""
TIFF: Final = b"II*\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0"
"""EXIF with one entry, the orientation, up to its value."""


@dataclass(frozen=True)
class Encoding:
    """The encoding of a synthetic photo; `sampling` is that of chroma, "grey" or "CMYK".

    `turn` is the EXIF orientation; the picture is stored so that it is decoded upright.
    """

    sampling: str = "4:2:0"
    quality: int = 75
    progressive: bool = False
    turn: int = 1
    format: str = "jpeg"

    @property
    def channels(self) -> int:
        return 1 if self.sampling == "grey" else 3

    def file(self, upright: Pixels) -> bytes:
        picture = Image.fromarray(upright.squeeze(2) if upright.shape[2] == 1 else upright)
        picture = picture.convert("CMYK") if self.sampling == "CMYK" else picture
        picture = picture.transpose(STORED[self.turn]) if self.turn in STORED else picture
        exif = b"Exif\0\0" + TIFF + self.turn.to_bytes(4, "little") + bytes(4)
        if self.sampling in FACTORS:
            return _with_exif(exif, self._by_opencv(np.asarray(picture)))
        options: dict[str, Any] = {"quality": self.quality}
        if self.format == "webp":
            options["exif"] = exif
        elif self.sampling in SAMPLINGS:
            options |= {"subsampling": SAMPLINGS[self.sampling]}
        buffer = BytesIO()
        picture.save(buffer, self.format, progressive=self.progressive, **options)
        data = buffer.getvalue()
        return data if self.format == "webp" else _with_exif(exif, data)

    def _by_opencv(self, levels: np.ndarray) -> bytes:
        options = [cv2.IMWRITE_JPEG_SAMPLING_FACTOR, FACTORS[self.sampling]]
        options += [
            cv2.IMWRITE_JPEG_QUALITY,
            self.quality,
            cv2.IMWRITE_JPEG_PROGRESSIVE,
            int(self.progressive),
        ]
        _, contents = cv2.imencode(".jpg", cv2.cvtColor(levels, cv2.COLOR_RGB2BGR), options)
        return bytes(contents.tobytes())

    def photo(self, upright: Pixels) -> Photo:
        return read_bytes(self.file(upright), "made photo")

    def __str__(self) -> str:
        name = "WebP" if self.format == "webp" else f"JPEG {self.sampling}"
        more = (", progressive" if self.progressive else "") + (
            f", turn {self.turn}" if self.turn > 1 else ""
        )
        return f"{name}, quality {self.quality}{more}"


def _with_exif(exif: bytes, jpeg: bytes) -> bytes:
    return jpeg[:2] + b"\xff\xe1" + (len(exif) + 2).to_bytes(2, "big") + exif + jpeg[2:]


def noise(bits: BitSource, height: int, width: int, channels: int) -> Pixels:
    count = height * width * channels
    return bits.words(-(-count // 8)).view(np.uint8)[:count].reshape(height, width, channels)


def scene(bits: BitSource, height: int, width: int, channels: int) -> Pixels:
    patches = noise(bits, -(-height // 7), -(-width // 7), channels).repeat(7, 0).repeat(7, 1)
    rough = noise(bits, height, width, channels) // 4
    made: Pixels = (patches[:height, :width] // 4 * 3 + rough).astype(np.uint8)
    return made


def places(regions: Sequence[Region], height: int, width: int) -> Places:
    inside = np.zeros((height, width), np.bool_)
    for region in regions:
        view = inside[region.box.slices]
        view |= True if region.mask is None else region.mask
    return inside


def neighbours(image: Pixels, inside: Places, bits: BitSource) -> Iterator[tuple[str, Pixels]]:
    """Yield photos that differ from `image` only inside, as much and as irregularly as possible, by name."""
    height, width, channels = image.shape
    y, x = np.mgrid[:height, :width]
    odd = ((x + y) % 2)[..., None]
    red = np.array([255, 0, 0][-channels:], np.uint8)
    ring = inside & ~cv2.erode(inside.astype(np.uint8), np.ones((3, 3), np.uint8)).astype(np.bool_)
    contents = {
        "inverted": 255 - image,
        "red and cyan by pixels": np.where(odd, red, 255 - red).astype(np.uint8),
        "noise": noise(bits, height, width, channels),
        "black": np.zeros_like(image),
        "white": np.full_like(image, 255),
        "red and cyan by columns": np.where(x[..., None] % 2, red, 255 - red).astype(np.uint8),
        "red": np.broadcast_to(red, image.shape),
        "cyan": np.broadcast_to(255 - red, image.shape),
    }
    for name, levels in contents.items():
        yield name, np.where(inside[..., None], levels, image).astype(np.uint8)
    for name, level in (("edge in black", 0), ("edge in white", 255)):
        yield name, np.where(ring[..., None], level, image).astype(np.uint8)
    for name, at in (("first pixel", 0), ("last pixel", -1)):
        one = image.copy()
        place = np.unravel_index(np.flatnonzero(inside)[at], inside.shape)
        one[place] = np.where(image[place] < 128, 255, 0)
        yield name, one


@dataclass(frozen=True, kw_only=True)
class PhotoAudit(Audit):
    """The audit of a step around a draw; `made` makes the photos of a case, once."""

    made: Callable[[Any, Bits], Any]

    def checks(self, level: Level, bits: Bits) -> list[Check]:
        return super().checks(Level(tuple(self.made(case, bits) for case in level.exact)), bits)


SPARSE: Final = 24  # one in this many pixels of a mask's box is in the mask


@dataclass(frozen=True)
class GrowthCase:
    """A synthetic photo of height × width pixels, its encoding, and the regions to protect."""

    encoding: Encoding
    height: int
    width: int
    boxes: tuple[Box, ...]
    masked: bool = False

    @cached_property
    def regions(self) -> tuple[Region, ...]:
        """The requested regions; masks have few pixels."""
        if not self.masked:
            return tuple(Region(box) for box in self.boxes)
        bits = SeededBits(1, "masks")
        masks = [
            bits.words(box.w * box.h).reshape(box.h, box.w) % np.uint64(SPARSE) == 0 for box in self.boxes
        ]
        for mask in masks:
            mask[-1, -1] = True
        return tuple(Region(box, mask) for box, mask in zip(self.boxes, masks, strict=True))

    def photos(self, bits: BitSource) -> Iterator[tuple[str, Photo]]:
        """Yield one photo and its neighbours as decoded, which differ within the regions before encoding."""
        image = scene(bits, self.height, self.width, self.encoding.channels)
        yield "as it was", self.encoding.photo(image)
        for name, other in neighbours(image, places(self.regions, self.height, self.width), bits):
            yield name, self.encoding.photo(other)

    def __str__(self) -> str:
        where = " and ".join(map(str, self.boxes))
        return f"{self.width} × {self.height}, {self.encoding}, {'mask in ' if self.masked else ''}{where}"


@dataclass(frozen=True, eq=False)
class MadePhotos:
    """The photos of a case, made once for all gates and mutants."""

    case: Any
    bits: Bits

    @cached_property
    def photos(self) -> list[tuple[str, Photo]]:
        """The photo and its neighbours, by their hidden contents."""
        return list(self.case.photos(self.bits(f"{self.case} photos")))


ReleaseOf = Callable[[Photo, tuple[Region, ...], PixelMethod, BitSource], Release]


def own_release(photo: Photo, asked: tuple[Region, ...], method: PixelMethod, bits: BitSource) -> Release:
    return obfuscate(photo, method, regions=list(asked), bits=bits)


@dataclass(frozen=True, kw_only=True)
class GrowthVersion(Version):
    """One way to release regions of a lossy photo: dpveil's own, or a mutant."""

    release: ReleaseOf = own_release

    def paint_twice(self, photo: Photo, asked: tuple[Region, ...], bits: BitSource) -> tuple[Places, Release]:
        """Return which pixels are replaced, by painting them in two levels, and one of the releases."""
        black, white = (self.release(photo, asked, Fill(level=level), bits) for level in (0, 255))
        seen: Places = (black.image != white.image).any(axis=2)
        return seen, black


def with_growth(name: str, grown: Callable[[Region, Photo], Region]) -> GrowthVersion:

    def release(photo: Photo, asked: tuple[Region, ...], method: PixelMethod, bits: BitSource) -> Release:
        own = tuple(grown(region, photo) for region in asked)
        return own_release(Photo(photo.image), own, method, bits)

    return GrowthVersion(name=name, gates=("escape", "release"), release=release)


# Gates for growth: differences between neighbours outside the replaced pixels, before and after release

DRAWN: Final = DPPix(epsilon=1, block=4, neighbourhood=16)
DRAWN_WITH: Final = 1  # seed of draws that are to be the same for every photo


def escape_gate(version: GrowthVersion, made: MadePhotos) -> Iterator[Finding]:
    """Yield how many decoded pixels outside the replaced ones differ between neighbours."""
    asked, ((_, first), *others) = made.case.regions, made.photos
    replaced, release = version.paint_twice(first, asked, SeededBits(DRAWN_WITH))
    apart = {
        name: int(((other.image != first.image).any(axis=2) & ~replaced).sum()) for name, other in others
    }
    yield _worst("escape", "outside pixels that reveal a region", made, apart, named=_names_webp(release))


def release_gate(version: GrowthVersion, made: MadePhotos) -> Iterator[Finding]:
    """Yield how many pixels differ between releases of neighbours with the same draws.

    After a fill, anywhere; after noise, outside the regions that the certificate lists.
    """
    asked, ((_, first), *others) = made.case.regions, made.photos
    for method, anywhere in ((Fill(level=0), True), (DRAWN, False)):
        one = version.release(first, asked, method, SeededBits(DRAWN_WITH))
        inside = np.zeros_like(_listed_boxes(one)) if anywhere else _listed_boxes(one)
        apart = {}
        for name, other in others:
            two = version.release(other, asked, method, SeededBits(DRAWN_WITH))
            apart[name] = int(((two.image != one.image).any(axis=2) & ~inside).sum())
        what = f"pixels that tell releases by {method.name} apart"
        yield _worst("release", what, made, apart, named=_names_webp(one))


def stated_gate(version: GrowthVersion, made: MadePhotos) -> Iterator[Finding]:
    """Yield how many pixels a certificate lists and a release does not replace, or vice versa."""
    asked, (_, photo) = made.case.regions, made.photos[0]
    replaced, release = version.paint_twice(photo, asked, SeededBits(DRAWN_WITH))
    wrong = {
        "asked for and not replaced": int((_of(asked, photo) & ~replaced).sum()),
        "replaced and not listed": int((replaced & ~_listed_boxes(release)).sum()),
        "changed and not listed": int(
            ((release.image != photo.image).any(axis=2) & ~_listed_boxes(release)).sum()
        ),
        "listed and not replaced": abs(_count(release.certificate.regions, photo) - int(replaced.sum())),
    }
    yield _worst("stated", "pixels that are not as the certificate says", made, wrong)


def _worst(gate: str, what: str, made: MadePhotos, counts: dict[str, int], *, named: bool = False) -> Finding:
    """Return the finding of the largest count; none if the certificate names what is left outside."""
    worst = max(counts, key=lambda name: counts[name])
    count = 0 if named else counts[worst]
    what = f"{what}, worst of {len(counts)}: {worst}"
    return count_finding(gate, what, made.case, count, "pixels", sees=SEES)


def _names_webp(release: Release) -> bool:
    return all(
        TRACES.format("WebP") in guarantee.scope.in_the_clear for guarantee in release.certificate.guarantees
    )


def _of(regions: Sequence[Region], photo: Photo) -> Places:
    return places(regions, photo.height, photo.width)


def _listed_boxes(release: Release) -> Places:
    inside = np.zeros(release.image.shape[:2], np.bool_)
    for record in release.certificate.regions:
        inside[record.box.slices] = True
    return inside


def _count(records: Sequence[RegionRecord], photo: Photo) -> int:
    """Return the number of replaced pixels by a certificate; masks of several regions must not overlap."""
    if any(record.masked is not None for record in records):
        return sum(record.masked or 0 for record in records)
    return int(_of([Region(record.box) for record in records], photo).sum())


# The lossy photos on which growth is audited, and its mutants

HEIGHT, WIDTH = 45, 61
"""Neither 8 nor 16 divides them."""
PLACES: Final = (
    (Box(18, 17, 13, 9),),
    (Box(31, 15, 1, 1),),
    (Box(16, 16, 16, 16),),
    (Box(40, 33, 21, 12),),
    (Box(60, 44, 1, 1),),
    (Box(0, 0, 3, 2),),
    (Box(8, 8, 8, 8), Box(16, 8, 8, 8)),
    (Box(32, 0, 9, 45), Box(41, 20, 1, 1)),
)
"""In the middle, one pixel at the edge of a block, a block, ragged ends, corners, touching boxes."""
QUALITIES: Final = (95, 100, 50, 75, 20)
KINDS: Final = (*SAMPLINGS, *FACTORS, "grey", "CMYK")


def _case(where: tuple[Box, ...], masked: bool = False, **encoding: Any) -> GrowthCase:
    return GrowthCase(Encoding(**encoding), HEIGHT, WIDTH, where, masked)


def _quick() -> tuple[GrowthCase, ...]:
    """Return every sampling in every place, and every orientation; qualities alternate."""
    turned = [
        _case(PLACES[turn % 4], sampling=kind, turn=turn, quality=95)
        for turn in range(2, 9)
        for kind in ("4:2:2", "4:2:0")
    ]
    straight = [
        _case(
            where, sampling=kind, quality=QUALITIES[(row + column) % 3], progressive=(row + column) % 4 == 3
        )
        for row, kind in enumerate(KINDS[:-1])
        for column, where in enumerate(PLACES)
    ]
    masks = [
        _case(where, True, sampling=kind, quality=95) for kind in ("4:2:0", "grey") for where in PLACES[:4:3]
    ]
    masks += [_case(PLACES[0], True, sampling="4:2:0", turn=turn, quality=95) for turn in (3, 6)]
    lossy = [
        _case(where, format="webp", masked=masked)
        for where, masked in ((PLACES[0], False), (PLACES[3], True))
    ]
    first = (*straight[::9], straight[6], *turned[::3], *masks, *lossy)
    return tuple(dict.fromkeys((*first, *straight, *turned)))


def _deep() -> tuple[GrowthCase, ...]:
    """Return every place with every kind, quality and orientation, boxes and masks, and photos of other
    sizes.
    """
    cases = [
        _case(where, turn == 3, sampling=kind, quality=quality, turn=turn, progressive=turn % 2 == 0)
        for kind in KINDS
        for quality in QUALITIES
        for turn, where in enumerate(PLACES, 1)
    ]
    cases += [_case(where, format="webp", quality=10, turn=6) for where in PLACES]
    ends = [(1, 1), (2, 40), (40, 2), (16, 16), (17, 33)]
    return *cases, *(
        replace(case, height=h, width=w, masked=False, boxes=(Box(w - 1, h - 1, 1, 1), Box(0, 0, 1, 1)))
        for h, w in ends
        for case in cases[:: len(PLACES)]
    )


LEVELS: Final[dict[str, Level]] = {
    "quick": Level(_quick()),
    "deep": Level((*_quick(), *_deep())),
}
INTACT: Final = GrowthVersion(name="intact")


def _with(photo: Photo, **changes: Any) -> Photo:
    return Photo(photo.image, photo.grid and replace(photo.grid, **changes))


def _eights(region: Region, photo: Photo) -> Region:
    grid = photo.grid or BlockGrid(8, 8)
    return grow(region, _with(photo, width=8, height=8, x0=grid.x0 % 8, y0=grid.y0 % 8))


def _without_ragged(region: Region, photo: Photo) -> Region:
    grid, box, wide = photo.grid or BlockGrid(8, 8), region.box, grow(region, photo).box
    right = max(box.x + box.w, min(wide.x + wide.w, photo.width // grid.width * grid.width))
    bottom = max(box.y + box.h, min(wide.y + wide.h, photo.height // grid.height * grid.height))
    return (
        grow(region, photo)
        if region.mask is not None
        else replace(grow(region, photo), box=Box(wide.x, wide.y, right - wide.x, bottom - wide.y))
    )


def _upright(region: Region, photo: Photo) -> Region:
    return grow(region, _with(photo, x0=0, y0=0))


def _lying(region: Region, photo: Photo) -> Region:
    grid = photo.grid or BlockGrid(8, 8)
    return grow(region, _with(photo, width=grid.height, height=grid.width))


def _thin(region: Region, photo: Photo) -> Region:
    wide = grow(region, photo)
    if region.mask is None or wide.mask is None:
        return wide
    mask = np.zeros_like(wide.mask)
    y, x = region.box.y - wide.box.y, region.box.x - wide.box.x
    mask[y : y + region.box.h, x : x + region.box.w] = region.mask
    return replace(wide, mask=mask)


def _last_left_out(photo: Photo, asked: tuple[Region, ...], method: PixelMethod, bits: BitSource) -> Release:
    release = own_release(photo, asked, method, bits)
    some = own_release(photo, asked[: max(1, len(asked) - 1)], method, bits)
    return replace(release, image=some.image)


def _listed_as_asked(
    photo: Photo, asked: tuple[Region, ...], method: PixelMethod, bits: BitSource
) -> Release:
    release = own_release(photo, asked, method, bits)
    records = tuple(region.record for region in asked)
    return replace(release, certificate=replace(release.certificate, regions=records))


MUTANTS: Final = (
    with_growth("regions not grown", lambda region, photo: region),
    with_growth("blocks of 8 for any chroma", _eights),
    with_growth(
        "without the pixel for chroma interpolation",
        lambda region, photo: grow(region, _with(photo, margin=0, codec="none")),
    ),
    with_growth("block lines not mirrored", _upright),
    with_growth("block sizes not rotated", _lying),
    with_growth("grown to the last whole block only", _without_ragged),
    with_growth("box grown, mask not", _thin),
    GrowthVersion(name="last of several regions not grown", release=_last_left_out),
    GrowthVersion(name="ungrown regions listed", gates=("release", "stated"), release=_listed_as_asked),
    with_growth(
        "traces of WebP not stated", lambda region, photo: replace(grow(region, photo), origin=region.origin)
    ),
)
AUDIT: Final = PhotoAudit(
    made=MadePhotos,
    intact=INTACT,
    mutants=MUTANTS,
    levels=LEVELS,
    gates=(Gate("escape", escape_gate), Gate("release", release_gate), Gate("stated", stated_gate)),
)
