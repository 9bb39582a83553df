"""Masks: any set of pixels, from an image file, an array or a region."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from jaxtyping import Bool

from dpveil.core.origin import MASK, Origin
from dpveil.core.photo import Photo, check_unmasked
from dpveil.core.region import Box, Region, check_inside
from dpveil.errors import InvalidParameter, NoRegion, RegionError
from dpveil.io import read_mask
from dpveil.regions.finder import Finder


@dataclass(frozen=True, eq=False)
class GivenMask(Finder):
    """One mask of the photo's size, true where protected."""

    mask: Bool[np.ndarray, "h w"]

    kind = MASK
    data_dependent = False
    at_once = 2

    @property
    def description(self) -> str:
        """Return "mask sha256:…", the `digest` of the mask."""
        return f"mask sha256:{digest(self.mask)}"

    def __call__(self, photo: Photo) -> list[Region]:
        """Return the mask in its bounding box; raises `RegionError` for a photo of another size."""
        height, width = self.mask.shape
        if (height, width) != (photo.height, photo.width):
            raise RegionError(
                f"the mask is {width} × {height} pixels and the photo is {photo.width} × {photo.height}",
                hint="draw the mask on the photo as a viewer shows it, at full size",
            )
        rows, columns = np.flatnonzero(self.mask.any(axis=1)), np.flatnonzero(self.mask.any(axis=0))
        top, bottom, left, right = rows[0], rows[-1] + 1, columns[0], columns[-1] + 1
        box = Box(int(left), int(top), int(right - left), int(bottom - top))
        return [Region(box, self.mask[box.slices].copy(), Origin(MASK))]


@dataclass(frozen=True, eq=False)
class GivenRegion(Finder):
    """A ready-made region, the same in every photo."""

    region: Region

    data_dependent = False
    at_once = 2

    @property
    def description(self) -> str:
        """Return the box, and the `digest` of the mask if there is one."""
        mask = self.region.mask
        return str(self.region.box) + ("" if mask is None else f" mask sha256:{digest(mask)}")

    def __call__(self, photo: Photo) -> list[Region]:
        """Return the region, or raise `RegionError` if it is not wholly inside the photo."""
        check_inside(self.region.box, photo.width, photo.height)
        return [self.region]


def mask_of_file(path: str | Path) -> GivenMask:
    """Return the mask in an image file; raises as `dpveil.io.read_mask`, and `NoRegion` for an empty mask."""
    return _checked(read_mask(path))


def mask_of_array(array: np.ndarray) -> GivenMask:
    """Return the mask of an h × w array of booleans, or of uint8 levels of which 128 to 255 are protected.

    Raises `InvalidParameter` for any other array and `NoRegion` for an empty mask.
    """
    check_unmasked(array, "mask")
    if array.ndim != 2 or array.dtype not in (np.bool_, np.uint8) or not array.size:
        shape = "×".join(map(str, array.shape))
        raise InvalidParameter(
            "mask", f"{array.dtype} array of {shape}", "is not a mask", hint="give h×w booleans or uint8"
        )
    return _checked(array.copy() if array.dtype == np.bool_ else array >= 128)


def _checked(mask: Bool[np.ndarray, "h w"]) -> GivenMask:
    if not mask.any():
        raise NoRegion(
            "the mask has no pixel set", hint="paint what is to be protected white (levels 128 to 255)"
        )
    mask.flags.writeable = False
    return GivenMask(mask)


def digest(mask: Bool[np.ndarray, "h w"]) -> str:
    """Return SHA-256, in hexadecimal, of "width×height:" and the mask's bits, row by row, eight a byte."""
    height, width = mask.shape
    return hashlib.sha256(f"{width}×{height}:".encode() + np.packbits(mask).tobytes()).hexdigest()
