"""The role of a pixel-space method: region pixels in, private pixels of the same shape out."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import fields
from fractions import Fraction
from typing import ClassVar

import numpy as np
from jaxtyping import UInt8

from dpveil.core.guarantee import Guarantee
from dpveil.core.numbers import Json, to_json
from dpveil.core.parameters import check_count
from dpveil.core.photo import check_image
from dpveil.errors import InvalidParameter
from dpveil.noise.bits import BitSource


class PixelMethod(ABC):
    """A frozen dataclass of parameters that states its guarantee before it draws.

    Concrete methods are never subclassed. `name` is the kebab-case name of command line and certificates,
    `kind` the guarantee's kind, `summary` one line for tables. `typical` are values of required parameters
    that comparisons and demonstrations use where the user chose none.
    """

    name: ClassVar[str]
    kind: ClassVar[str]
    summary: ClassVar[str]
    source: ClassVar[str]
    typical: ClassVar[Mapping[str, Json]] = {}

    @abstractmethod
    def guarantee(self, *, height: int, width: int, channels: int) -> Guarantee:
        """Return what one release of a height × width × channels region will cost, before spending it."""

    @property
    def calibration(self) -> str:
        """Which accountant chose the noise; empty where it follows from the budget by a formula."""
        return ""

    @abstractmethod
    def noise_scale(self, *, height: int, width: int, channels: int) -> float | None:
        """Return the noise scale in grey levels on the largest cell of such a region.

        That is Laplace's scale or Gauss's standard deviation; for a method that draws levels instead of
        noise, the root of the mean squared error that it makes on mid-grey, or on the photos that it is tuned
        to; None where levels get no noise.
        """

    def prepare(self, *, height: int, width: int, channels: int) -> None:
        """Raise what would keep a region of this size from being drawn: asked before anything is paid.

        Whatever can be known from parameters and sizes alone is known here, and may be kept for the draw.
        """
        self.noise_scale(height=height, width=width, channels=channels)

    @abstractmethod
    def _draw(self, image: UInt8[np.ndarray, "h w c"], bits: BitSource) -> UInt8[np.ndarray, "h w c"]:
        """Return the private image: the only place where noise meets this region."""

    def release(self, image: UInt8[np.ndarray, ...], *, bits: BitSource) -> UInt8[np.ndarray, ...]:
        """Return a private image of the shape of `image`.

        `image` is uint8, h × w or h × w × (1 or 3), levels 0..255. `bits` is the only randomness. Raises
        `InvalidParameter` for other input.
        """
        pixels = check_image(image)
        check_bits(bits)
        height, width = pixels.shape[:2]
        return self._draw(pixels.reshape(height, width, -1), bits).reshape(pixels.shape)

    def parameters(self) -> dict[str, Json]:
        """Return every parameter as JSON, rationals exact."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}  # type: ignore[arg-type]
        return {name: to_json(v) if isinstance(v, Fraction) else v for name, v in values.items()}


def check_bits(bits: object) -> BitSource:
    """Return a source of bits, or raise `InvalidParameter`."""
    if not isinstance(bits, BitSource):
        raise InvalidParameter(
            "bits", type(bits).__name__, "is not a source of bits", hint="give dpveil.SecureBits()"
        )
    return bits


def check_size(height: int, width: int, channels: int) -> tuple[int, int, int]:
    """Return the size of a region in pixels and channels, or raise `InvalidParameter`."""
    if check_count(channels, "channels") not in (1, 3):
        raise InvalidParameter("channels", channels, "is neither 1 nor 3", hint="1 is grey, 3 is colour")
    return check_count(height, "height"), check_count(width, "width"), channels
