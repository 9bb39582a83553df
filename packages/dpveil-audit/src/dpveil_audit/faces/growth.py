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
from dpveil.core.region import Box, Region
from dpveil.io.reading import read_bytes
from dpveil.mechanisms.pixel import DPPix, Fill, base
from dpveil.mechanisms.pixel.base import PixelMethod
from dpveil.noise.bits import BitSource, SeededBits
from dpveil.regions.growth import grow
from dpveil.release.plan import obfuscate
from dpveil.release.saving import Release
from dpveil.release.words import TRACES
from dpveil_audit.engine import Audit, Bits, Check, Finding, Gate, Level, Version, count_finding, planted

Pixels = UInt8[np.ndarray, "h w c"]
Places = Bool[np.ndarray, "h w"]

SAMPLINGS: Final = {"4:4:4": 0, "4:2:2": 1, "4:2:0": 2}  # chroma subsampling, as Pillow's option
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
    """The encoding of a synthetic photo; `sampling` is that of chroma, or "grey".

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

    def photo(self, upright: Pixels) -> Photo:
        picture = Image.fromarray(upright.squeeze(2) if upright.shape[2] == 1 else upright)
        picture = picture.transpose(STORED[self.turn]) if self.turn in STORED else picture
        exif = b"Exif\0\0" + TIFF + self.turn.to_bytes(4, "little") + bytes(4)
        options: dict[str, Any] = {"quality": self.quality, "exif": exif}
        if self.format == "jpeg" and self.sampling in SAMPLINGS:
            options["subsampling"] = SAMPLINGS[self.sampling]
        buffer = BytesIO()
        picture.save(buffer, self.format, progressive=self.progressive, **options)
        return read_bytes(buffer.getvalue(), "made photo")

    def __str__(self) -> str:
        name = "WebP" if self.format == "webp" else f"JPEG {self.sampling}"
        more = (", progressive" if self.progressive else "") + (
            f", turn {self.turn}" if self.turn > 1 else ""
        )
        return f"{name}, quality {self.quality}{more}"


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
        "red": np.broadcast_to(red, image.shape),
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

    def checks(self, bits: Bits) -> list[Check]:
        photos = Level(tuple(self.made(case, bits) for case in self.level.exact))
        return [check for gate in self.gates for check in gate.checks(photos, bits)]


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


def release_of(photo: Photo, asked: tuple[Region, ...], method: PixelMethod) -> Release:
    """Return the release of a photo, with the same draws for all."""
    return obfuscate(photo, method, regions=list(asked), bits=SeededBits(DRAWN_WITH))


def paint_twice(photo: Photo, asked: tuple[Region, ...]) -> tuple[Places, Release]:
    """Return which pixels are replaced, by painting them in two levels, and one of the releases."""
    black, white = (release_of(photo, asked, Fill(level=level)) for level in (0, 255))
    seen: Places = (black.image != white.image).any(axis=2)
    return seen, black


# Gates for growth: differences between releases of neighbours, and from what is stated

DRAWN: Final = DPPix(epsilon=1, block=4, neighbourhood=16)
DRAWN_WITH: Final = 1  # seed of draws that are to be the same for every photo


def release_gate(version: Version, made: MadePhotos) -> Iterator[Finding]:
    """Yield how many pixels differ between releases of neighbours with the same draws.

    After a fill, anywhere; after noise, outside the regions that the certificate lists.
    """
    asked, ((_, first), *others) = made.case.regions, made.photos
    for method, anywhere in ((Fill(level=0), True), (DRAWN, False)):
        one = release_of(first, asked, method)
        inside = np.zeros_like(_listed_boxes(one)) if anywhere else _listed_boxes(one)
        apart = {
            name: int(((release_of(other, asked, method).image != one.image).any(axis=2) & ~inside).sum())
            for name, other in others
        }
        what = f"pixels that tell releases by {method.name} apart"
        yield _worst("release", what, made, apart, named=_names_webp(one))


def stated_gate(version: Version, made: MadePhotos) -> Iterator[Finding]:
    """Yield how many pixels a certificate lists and a release does not replace, or vice versa."""
    asked, (_, photo) = made.case.regions, made.photos[0]
    replaced, release = paint_twice(photo, asked)
    wrong = {
        "asked for and not replaced": int((places(asked, *replaced.shape) & ~replaced).sum()),
        "replaced and not listed": int((replaced & ~_listed_boxes(release)).sum()),
        "changed and not listed": int(
            ((release.image != photo.image).any(axis=2) & ~_listed_boxes(release)).sum()
        ),
    }
    yield _worst("stated", "pixels that are not as the certificate says", made, wrong)


def _worst(gate: str, what: str, made: MadePhotos, counts: dict[str, int], *, named: bool = False) -> Finding:
    """Return the finding of the largest count; none if the certificate names what is left outside."""
    worst = max(counts, key=lambda name: counts[name])
    count = 0 if named else counts[worst]
    what = f"{what}, worst of {len(counts)}: {worst}"
    return count_finding(gate, what, made.case, count, "pixels")


def _names_webp(release: Release) -> bool:
    return all(
        TRACES.format("WebP") in guarantee.scope.in_the_clear for guarantee in release.certificate.guarantees
    )


def _listed_boxes(release: Release) -> Places:
    inside = np.zeros(release.image.shape[:2], np.bool_)
    for record in release.certificate.regions:
        inside[record.box.slices] = True
    return inside


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
QUALITIES: Final = (95, 100, 50)
KINDS: Final = (*SAMPLINGS, "grey")


def _case(where: tuple[Box, ...], masked: bool = False, **encoding: Any) -> GrowthCase:
    return GrowthCase(Encoding(**encoding), HEIGHT, WIDTH, where, masked)


def _cases() -> tuple[GrowthCase, ...]:
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
        for row, kind in enumerate(KINDS)
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


INTACT: Final = Version(name="intact")


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


def _short(paste: Any) -> Any:
    def short(self: Region, image: Pixels, released: Pixels) -> None:
        box = replace(self.box, w=max(1, self.box.w - 1))
        mask = None if self.mask is None else self.mask[:, : box.w]
        paste(replace(self, box=box, mask=mask), image, released[:, : box.w])

    return short


def _instead(new: Any) -> Callable[[Any], Any]:
    return lambda own: new


GROWN: Final[dict[str, Callable[[Region, Photo], Region]]] = {
    "regions not grown": lambda region, photo: region,
    "blocks of 8 for any chroma": _eights,
    "without the pixel for chroma interpolation": lambda region, photo: grow(
        region, _with(photo, margin=0, codec="none")
    ),
    "grown to the last whole block only": _without_ragged,
    "traces of WebP not stated": lambda region, photo: replace(grow(region, photo), origin=region.origin),
}
MUTANTS: Final = (
    *(planted(name, base, "grow", _instead(new), "release") for name, new in GROWN.items()),
    planted("last column not replaced", Region, "paste", _short, "stated"),
)
AUDIT: Final = PhotoAudit(
    made=MadePhotos,
    intact=INTACT,
    mutants=MUTANTS,
    level=Level(_cases()),
    gates=(Gate("release", release_gate), Gate("stated", stated_gate)),
)
