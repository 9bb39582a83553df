"""The interface of a pixel-space method: region pixels in, private pixels of the same shape out."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence

import numpy as np
from jaxtyping import UInt8

from dpveil.core.parameters import check_count
from dpveil.core.photo import Photo, check_image
from dpveil.core.region import Region
from dpveil.errors import InvalidParameter
from dpveil.mechanisms.method import Method
from dpveil.mechanisms.pixel.placement import Pixels
from dpveil.noise.bits import BitSource, check_bits

__all__ = ["PixelMethod", "check_size"]


class PixelMethod(Method):
    """A method that reads the pixels of a region and returns pixels of the same shape."""

    @abstractmethod
    def _draw(self, image: UInt8[np.ndarray, "h w c"], bits: BitSource) -> UInt8[np.ndarray, "h w c"]:
        """Return the private image; the only place where noise meets this region."""

    def place(self, photo: Photo, regions: Sequence[Region]) -> Pixels:
        """Return the regions, grown to whole blocks of a lossy format."""
        return Pixels(photo, regions, self)

    def release(self, image: UInt8[np.ndarray, ...], *, bits: BitSource) -> UInt8[np.ndarray, ...]:
        """Return a private image of the shape of `image`.

        `image` is uint8, h × w or h × w × (1 or 3), with levels 0..255. `bits` is the only source of
        randomness. Raises `InvalidParameter` for other input.
        """
        pixels = check_image(image)
        check_bits(bits)
        height, width = pixels.shape[:2]
        return self._draw(pixels.reshape(height, width, -1), bits).reshape(pixels.shape)


def check_size(height: int, width: int, channels: int) -> tuple[int, int, int]:
    """Return the size of a region in pixels and channels. Raises `InvalidParameter` if it is not valid."""
    if check_count(channels, "channels") not in (1, 3):
        raise InvalidParameter("channels", channels, "is neither 1 nor 3", hint="1 is grey, 3 is colour")
    return check_count(height, "height"), check_count(width, "width"), channels
