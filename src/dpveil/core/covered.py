"""Which photo a release is of, and which of its pixels it covers: what a ledger compares between releases."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from dpveil.core.guarantee import Relation
from dpveil.core.photo import Photo
from dpveil.core.region import Region

VECTORS: Final = "singular-values"
"""The relation whose neighbours agree on the singular vectors of each box, which are in the clear."""
LENGTH: Final = 32
ROWS: Final = 64
"""Rows that are compared at a time."""


@dataclass(frozen=True, repr=False)
class Covered:
    """A photo, and the pixels of it that a release replaces, as SHA-256 digests of 32 bytes.

    Both follow from the original: a ledger keeps HMACs of them, and nothing else may keep them. Costs of
    releases of one photo add up to a promise about what all of them cover, so they have to cover the same.
    `pixels` are compared between releases of one photo.

    >>> from dpveil.core.region import Box
    >>> photo, every = Photo(np.zeros((4, 4), np.uint8)), Relation("any-image")
    >>> halves = [Region(Box(0, 0, 2, 4)), Region(Box(2, 0, 2, 4))]
    >>> Covered.of(photo, halves, every) == Covered.of(photo, [Region.whole(photo)], every)
    True
    >>> Covered.of(photo, halves[:1], every) == Covered.of(photo, halves, every)
    False
    """

    photo: bytes
    pixels: bytes

    def __post_init__(self) -> None:
        """Raise `ValueError` unless both are digests."""
        if not all(type(each) is bytes and len(each) == LENGTH for each in (self.photo, self.pixels)):
            raise ValueError("no digests")

    @classmethod
    def of(cls, photo: Photo, regions: Sequence[Region], relation: Relation) -> Covered:
        """Return what a release of these regions covers, under a promise with this relation.

        A photo is its decoded levels and its size, so that copies without loss are the same photo, whatever
        their format; so is a grey photo in three equal channels. For most relations only the set of replaced
        pixels counts, however it is divided. The singular vectors of boxes are in the clear, and those of
        other boxes could give the singular values away: there the boxes count as well.
        """
        levels = photo.image
        if photo.channels > 1 and _is_grey(levels):
            levels = levels[..., :1]
        replaced = np.zeros((photo.height, photo.width), np.bool_)
        for region in regions:
            replaced[region.box.slices] |= True if region.mask is None else region.mask
        boxes = sorted(str(region.box) for region in regions) if relation.name == VECTORS else []
        return cls(
            _digest(levels.shape, np.ascontiguousarray(levels)),
            _digest(boxes, np.packbits(replaced)),
        )

    def to_json(self) -> dict[str, str]:
        """Return both in hexadecimal, for the process that pays."""
        return {"photo": self.photo.hex(), "pixels": self.pixels.hex()}

    @classmethod
    def parse(cls, data: Mapping[str, Any]) -> Covered:
        """Return what `to_json` wrote; raises `ValueError` for anything else."""
        try:
            return cls(bytes.fromhex(data["photo"]), bytes.fromhex(data["pixels"]))
        except (KeyError, TypeError, ValueError) as error:
            raise ValueError("no digests") from error


def _is_grey(levels: np.ndarray) -> bool:
    """Whether all channels are equal; of most colour photos only the first rows are compared."""
    strips = (levels[row : row + ROWS] for row in range(0, len(levels), ROWS))
    return all(bool((strip == strip[..., :1]).all()) for strip in strips)


def _digest(header: object, data: np.ndarray) -> bytes:
    digest = hashlib.sha256(f"{header}\n".encode())
    digest.update(data.data)
    return digest.digest()
