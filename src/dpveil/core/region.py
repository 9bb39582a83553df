"""A region: the pixels of an oriented photo that a guarantee covers."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Final, Self

import numpy as np

from dpveil.core import strict_json
from dpveil.core.array_types import Bool, UInt8
from dpveil.core.guarantee import Relation
from dpveil.core.parameters import CEILING
from dpveil.core.photo import ESCAPING, Photo, check_unmasked
from dpveil.core.rationals import Json
from dpveil.core.region_origin import BLOCKLESS, FACE, WHOLE, Origin
from dpveil.errors import InvalidParameter, RegionError


@dataclass(frozen=True)
class Box:
    """A rectangle in pixels of the oriented photo: left `x`, top `y`, width `w`, height `h`, all integers.

    Raises `InvalidParameter` for other numbers and for a width or height below 1.
    """

    x: int
    y: int
    w: int
    h: int

    def __post_init__(self) -> None:
        for name in ("x", "y", "w", "h"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int):
                raise InvalidParameter(f"box {name}", value, "is not a whole number", hint="write x,y,w,h")
        if self.w < 1 or self.h < 1:
            raise InvalidParameter("box", str(self), "is empty", hint="width and height are at least 1")

    def __str__(self) -> str:
        return f"{self.x},{self.y},{self.w},{self.h}"

    @classmethod
    def from_json(cls, data: object, where: str) -> Self:
        return cls(*strict_json.read(tuple[int, int, int, int], data, where))

    def inside(self, width: int, height: int) -> bool:
        """Whether the whole box lies in a photo of this size, in pixels."""
        return self.x >= 0 and self.y >= 0 and self.x + self.w <= width and self.y + self.h <= height

    def overlaps(self, other: Box) -> bool:
        across = self.x < other.x + other.w and other.x < self.x + self.w
        return across and self.y < other.y + other.h and other.y < self.y + self.h

    def beyond(self, inner: Box) -> tuple[int, int, int, int]:
        """Return by how many pixels this box extends beyond another one: left, top, right, below.

        >>> Box(1, 2, 10, 10).beyond(Box(4, 2, 5, 12))
        (3, 0, 2, -2)
        """
        left, top = inner.x - self.x, inner.y - self.y
        return left, top, self.w - inner.w - left, self.h - inner.h - top

    def wider(self, more: int, width: int, height: int) -> Box:
        """Return the box with `more` pixels on every side, clipped to a photo of width × height pixels."""
        left, top = max(0, self.x - more), max(0, self.y - more)
        right, bottom = min(width, self.x + self.w + more), min(height, self.y + self.h + more)
        return Box(left, top, right - left, bottom - top)

    @property
    def slices(self) -> tuple[slice, slice]:
        """Slices of rows and columns, to index an image array."""
        return slice(self.y, self.y + self.h), slice(self.x, self.x + self.w)


def check_inside(box: Box, width: int, height: int) -> None:
    """Raise `RegionError` if `box` is not wholly in a photo of this size, in pixels.

    NumPy would not: a negative index counts from the other end, and a slice beyond the edge is cut short.
    """
    if not box.inside(width, height):
        raise RegionError(
            f"the box {box} is outside the photo, which is {width} × {height} pixels",
            hint=f"x and y start at 0; keep x + w within {width} and y + h within {height}",
        )


def first_overlap(boxes: Sequence[Box]) -> tuple[int, tuple[int, int]]:
    """Return the number of pairs of boxes that overlap, and the indices of the first such pair.

    The indices are (0, 0) where no pair overlaps. Each box is compared with all later ones in one vectorised
    step, so that 10 000 boxes take less than a second.

    >>> first_overlap([Box(0, 0, 2, 2), Box(2, 0, 2, 2), Box(1, 1, 2, 2)])
    (2, (0, 2))
    """
    left, top, across, down = np.array([(b.x, b.y, b.w, b.h) for b in boxes], np.int64).reshape(-1, 4).T
    right, bottom = left + across, top + down
    pairs, first = 0, (0, 0)
    for i in range(len(boxes) - 1):
        later = slice(i + 1, None)
        common = (left[i] < right[later]) & (left[later] < right[i])
        common &= (top[i] < bottom[later]) & (top[later] < bottom[i])
        if found := int(np.count_nonzero(common)):
            first = first if pairs else (i, i + 1 + int(common.argmax()))
            pairs += found
    return pairs, first


@dataclass(frozen=True, eq=False)
class Region:
    """A box, optionally restricted by a mask (true where protected), in pixels of the oriented photo.

    The mechanism reads the whole box and only pixels under the mask are replaced, so a mask never reduces the
    noise. `origin` says how the region was determined, and is stored in the certificate. `kept` are regions
    that stay as they are: `regions.growth.grow` cuts them out, but refuses to cut the `core`. `score`, from 0
    to 1, says how sure the finder is; no certificate states it. `before` is what grew into this one. Raises
    `InvalidParameter` for a mask that is not boolean, not of the box's shape, or nowhere true.
    """

    box: Box
    mask: Bool[np.ndarray, "h w"] | None = None
    origin: Origin = Origin()
    kept: tuple[Region, ...] = ()
    score: float | None = None
    core: Region | None = None
    before: Region | None = None

    def __post_init__(self) -> None:
        if self.mask is None:
            return
        check_unmasked(self.mask, "mask")
        if self.mask.dtype != np.bool_ or self.mask.shape != (self.box.h, self.box.w) or not self.mask.any():
            raise InvalidParameter(
                "mask", None, "does not fit its box", hint="a boolean array of the box's size, not all false"
            )
        mask = self.mask.copy()  # the caller may change its array between plan and release
        mask.flags.writeable = False
        object.__setattr__(self, "mask", mask)

    @property
    def label(self) -> str:
        return self.origin.in_words()

    @property
    def pixels(self) -> int:
        return self.box.w * self.box.h if self.mask is None else int(self.mask.sum())

    @property
    def record(self) -> RegionRecord:
        """What a certificate states about this region: not the mask's pixels, and no score."""
        return RegionRecord(self.box, self.origin, None if self.mask is None else self.pixels)

    def covers(self, photo: Photo) -> bool:
        """Whether every pixel of `photo` is replaced."""
        return self.mask is None and self.box == Box(0, 0, photo.width, photo.height)

    def touches(self, box: Box) -> bool:
        if not self.box.overlaps(box):
            return False
        top, left = max(0, box.y - self.box.y), max(0, box.x - self.box.x)
        bottom, right = box.y + box.h - self.box.y, box.x + box.w - self.box.x
        return self.mask is None or bool(self.mask[top:bottom, left:right].any())

    def meets(self, other: Region) -> bool:
        """Whether a pixel of another region is replaced."""
        if other.mask is None or not self.box.overlaps(other.box):
            return self.touches(other.box)
        top, left = max(self.box.y, other.box.y), max(self.box.x, other.box.x)
        bottom = min(self.box.y + self.box.h, other.box.y + other.box.h)
        right = min(self.box.x + self.box.w, other.box.x + other.box.w)
        here, there = (
            (slice(top - box.y, bottom - box.y), slice(left - box.x, right - box.x))
            for box in (self.box, other.box)
        )
        both = other.mask[there] if self.mask is None else other.mask[there] & self.mask[here]
        return bool(both.any())

    def crop(self, image: UInt8[np.ndarray, "H W c"]) -> UInt8[np.ndarray, "h w c"]:
        """Return the box's pixels as a contiguous array."""
        return np.ascontiguousarray(image[self.box.slices])

    def paste(self, image: UInt8[np.ndarray, "H W c"], released: UInt8[np.ndarray, "h w c"]) -> None:
        """Write `released`, an array of the box's shape, over this region's pixels of `image` in place."""
        target = image[self.box.slices]
        if self.mask is None:
            target[...] = released
        else:
            target[self.mask] = released[self.mask]

    @classmethod
    def whole(cls, photo: Photo, *, fallback: bool = False) -> Region:
        """Return the region of every pixel; `fallback` says that it is used because nothing was found."""
        return cls(
            Box(0, 0, photo.width, photo.height),
            origin=Origin(WHOLE, "" if fallback else WHOLE, fallback=fallback),
        )


@dataclass(frozen=True)
class RegionRecord:
    """A region as certificates state it: its box, its origin, and how many pixels of the box a mask covers.

    >>> RegionRecord(Box(40, 52, 112, 96), Origin("face", number=2, found=True)).in_words()
    'face 2: 112×96 pixels at 40,52'
    >>> RegionRecord(Box(40, 52, 112, 96), Origin("mask"), masked=7351).in_words()
    'mask: 112×96 pixels at 40,52, of which 7,351 are replaced'
    """

    box: Box
    origin: Origin = Origin()
    masked: Annotated[int, strict_json.between(1, CEILING)] | None = None

    @property
    def label(self) -> str:
        return self.origin.in_words()

    @property
    def found(self) -> bool:
        """Whether the region was chosen by looking at the photo's pixels."""
        return self.origin.found

    @property
    def full(self) -> bool:
        """Whether every pixel of the box is replaced."""
        return self.masked is None or self.masked == self.box.w * self.box.h

    def in_words(self) -> str:
        """Return the region's name, size and place."""
        place = f"{self.label}: {self.box.w}×{self.box.h} pixels at {self.box.x},{self.box.y}"
        return place if self.masked is None else f"{place}, of which {self.masked:,} are replaced"

    def problem(self, *, width: int, height: int) -> str:
        """Return why no region of a photo of this size, in pixels, can have this record; empty if one can.

        >>> RegionRecord(Box(0, 0, 1, 1), Origin("whole")).problem(width=640, height=480)
        'is not the whole photo'
        """
        origin = self.origin
        if not self.box.inside(width, height):
            return "is outside the photo"
        if self.masked is not None and self.masked > self.box.w * self.box.h:
            return "masks an impossible number of pixels"
        if origin.kind == WHOLE and not (self.full and self.box == Box(0, 0, width, height)):
            return "is not the whole photo"
        if origin.kind == WHOLE and origin.grown_to is not None:
            return "is the whole photo, which does not grow"
        if origin.fallback and origin.kind != WHOLE:
            return "is a fallback and not the whole photo"
        if origin.kind == FACE and not origin.found:
            return "is not a detected face"
        if origin.outlined and self.masked is None:
            return "has no outline"
        due = {True, False} if origin.grown_to in BLOCKLESS else {origin.grown_to in ESCAPING}
        return "" if origin.escapes in due else "does not say what its format spreads"

    def to_json(self) -> dict[str, Json]:
        return {"box": [*vars(self.box).values()], "masked": self.masked, "origin": self.origin.to_json()}


VECTORS: Final = "singular-values"
"""The relation whose neighbours agree on the singular vectors of each box, which are in the clear."""
LENGTH: Final = 32
ROWS: Final = 64  # rows that are compared at a time


@dataclass(frozen=True, repr=False)
class CoverageDigests:
    """A photo, and the pixels of it that a release replaces, as SHA-256 digests of 32 bytes.

    Both follow from the original: a ledger keeps HMACs of them, and nothing else may keep them. Costs of
    releases of one photo add up to a promise about what all of them cover, so they have to cover the same.
    `pixels` are compared between releases of one photo.

    """

    photo: bytes
    pixels: bytes

    def __post_init__(self) -> None:
        """Raise `ValueError` unless both are digests."""
        if not all(type(each) is bytes and len(each) == LENGTH for each in (self.photo, self.pixels)):
            raise ValueError("no digests")

    @classmethod
    def of(cls, photo: Photo, regions: Sequence[Region], relation: Relation) -> CoverageDigests:
        """Return what a release of these regions covers, under a promise with this relation.

        A photo is its decoded levels and its size, so that copies without loss are the same photo, whatever
        their format; so is a grey photo in three equal channels. For most relations only the set of replaced
        pixels counts, however it is divided. The singular vectors of boxes are in the clear, and those of
        other boxes could give the singular values away: there the boxes count as well.
        """
        levels = photo.image
        strips = (levels[row : row + ROWS] for row in range(0, photo.height, ROWS))  # most are told by one
        if photo.channels > 1 and all(bool((strip == strip[..., :1]).all()) for strip in strips):
            levels = levels[..., :1]
        replaced = hidden_pixels(regions, photo.height, photo.width)
        boxes = sorted(str(region.box) for region in regions) if relation.name == VECTORS else []
        return cls(_digest(levels.shape, np.ascontiguousarray(levels)), _digest(boxes, np.packbits(replaced)))

    def to_json(self) -> dict[str, str]:
        return {"photo": self.photo.hex(), "pixels": self.pixels.hex()}

    @classmethod
    def from_json(cls, data: object, where: str = "covered") -> CoverageDigests:
        """Return what `to_json` wrote; raises `InvalidParameter` for anything else."""
        stated = strict_json.read(Mapping[str, strict_json.Hash], data, where)  # type: ignore[type-abstract]
        if {*stated} != {"photo", "pixels"}:
            raise InvalidParameter(where, None, "has other members")
        return cls(**{name: bytes.fromhex(each) for name, each in stated.items()})


def _digest(header: object, data: np.ndarray) -> bytes:
    digest = hashlib.sha256(f"{header}\n".encode())
    digest.update(data.data)
    return digest.digest()


def hidden_pixels(regions: Iterable[Region], height: int, width: int) -> Bool[np.ndarray, "h w"]:
    """Return which pixels of a photo of this size are in any of the regions."""
    hidden = np.zeros((height, width), np.bool_)
    for region in regions:
        part = hidden[region.box.slices]
        part |= True if region.mask is None else region.mask
    return hidden
