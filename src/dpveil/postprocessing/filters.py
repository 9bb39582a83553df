"""Median filter (Reilly & Fan 2021 §3.4 follows Snow with a 3 × 3 median)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, fields
from fractions import Fraction
from typing import ClassVar, Final, Self

import cv2
import numpy as np
from jaxtyping import UInt8

from dpveil.core.numbers import to_json
from dpveil.core.parameters import Between, Value, check_count
from dpveil.errors import InvalidParameter


class Step(ABC):
    """A post-processing step: a frozen dataclass with one parameter, a number or a trained file.

    `name` is what users write before the colon, `usual` the step with its default, `summary` one line.
    """

    name: ClassVar[str]
    usual: ClassVar[str]
    summary: ClassVar[str]

    @abstractmethod
    def __call__(self, image: UInt8[np.ndarray, "h w c"]) -> UInt8[np.ndarray, "h w c"]:
        """Return the processed levels; `image` are the released levels 0..255 of one region."""

    @classmethod
    def of(cls, number: str) -> Self:
        """Return the step with this number, given as text."""
        return cls(number)  # type: ignore[call-arg]

    @classmethod
    def stated(cls, text: str) -> Self:
        """Return the step with this text after the colon, as a certificate states it; opens no file."""
        return cls.of(text)

    @property
    def description(self) -> str:
        """The step as users and certificates write it: name, colon, number or reference."""
        value = getattr(self, fields(self)[0].name)  # type: ignore[arg-type]
        return f"{self.name}:{to_json(value) if isinstance(value, Fraction) else value}"


ITERATIONS: Final = 60
"""Iterations of the solver."""


@dataclass(frozen=True)
class TotalVariation(Step):
    """TV-L1 denoising: minimises total variation plus the L1 distance to the release divided by `weight`.

    `weight` is from 0.001 to 1000 and has no unit: 1 keeps edges, 3 keeps only large areas. Raises
    `InvalidParameter`. Source: Chambolle & Pock 2011, by OpenCV.

    >>> TotalVariation(1)(np.full((8, 8, 1), 9, np.uint8)).max()
    np.uint8(9)
    """

    name: ClassVar[str] = "total-variation"
    usual: ClassVar[str] = "total-variation:1"
    summary: ClassVar[str] = "least total variation near the release; weight without unit"

    weight: Between = Between("0.001", 1000, hint="such as 1")

    def __call__(self, image: UInt8[np.ndarray, "h w c"]) -> UInt8[np.ndarray, "h w c"]:
        """Return the denoised levels, channel by channel."""
        weight, out = 1 / float(self.weight), np.empty_like(image)
        for k in range(image.shape[2]):
            plane = np.ascontiguousarray(image[:, :, k])
            smooth = np.empty_like(plane)
            cv2.denoise_TVL1([plane], smooth, weight, ITERATIONS)
            out[:, :, k] = smooth
        return out


PATCH: Final = 7
"""Side of the compared patches in pixels."""
WINDOW: Final = 21
"""Side of the area in which similar patches are searched, in pixels."""


@dataclass(frozen=True)
class NonLocalMeans(Step):
    """Each level becomes a mean of levels with similar patches around them; `strength` is in grey levels.

    Patches of 7 × 7 pixels are compared within 21 × 21. The strength is usually close to the standard
    deviation of the noise.
    Raises `InvalidParameter`. Source: Buades, Coll & Morel 2005, by OpenCV.

    >>> NonLocalMeans(10)(np.full((8, 8, 1), 9, np.uint8)).max()
    np.uint8(9)
    """

    name: ClassVar[str] = "non-local-means"
    usual: ClassVar[str] = "non-local-means:10"
    summary: ClassVar[str] = "mean over patches that look alike; strength in grey levels"

    strength: Between = Between("0.001", 1000, hint="in grey levels, such as 10")

    def __call__(self, image: UInt8[np.ndarray, "h w c"]) -> UInt8[np.ndarray, "h w c"]:
        """Return the denoised levels, channel by channel."""
        planes = [
            cv2.fastNlMeansDenoising(
                np.ascontiguousarray(image[:, :, k]), None, float(self.strength), PATCH, WINDOW
            )
            for k in range(image.shape[2])
        ]
        return np.stack(planes, axis=2).astype(np.uint8)


@dataclass(frozen=True)
class GaussianBlur(Step):
    """Gaussian blur of each channel; `sigma` is the standard deviation in pixels, 0.001 to 1000.

    Raises `InvalidParameter`. Source: Croft 2022 §6.

    >>> GaussianBlur(1)(np.full((4, 4, 1), 9, np.uint8)).max()
    np.uint8(9)
    """

    name: ClassVar[str] = "gaussian"
    usual: ClassVar[str] = "gaussian:1"
    summary: ClassVar[str] = "Gaussian blur; standard deviation in pixels"

    sigma: Between = Between("0.001", 1000, hint="in pixels, such as 1")

    def __call__(self, image: UInt8[np.ndarray, "h w c"]) -> UInt8[np.ndarray, "h w c"]:
        """Return the blurred levels; the edge is replicated."""
        sigma = float(self.sigma)
        blurred = cv2.GaussianBlur(image, (0, 0), sigma, borderType=cv2.BORDER_REPLICATE)
        return np.asarray(blurred, np.uint8).reshape(image.shape)


class OddSide(Value[int | str, int]):
    """The side of a square window in pixels: odd, from 3 to 15."""

    def check(self, value: int | str) -> int:
        """Return `value` as an odd integer; raises `InvalidParameter`."""
        digits = isinstance(value, str) and value.isdecimal() and len(value) < 10
        side = check_count(int(value) if digits else value, self.name)
        if side % 2 == 0 or not 3 <= side <= 15:
            raise InvalidParameter(self.name, value, "is not an odd number from 3 to 15", hint="such as 3")
        return side


@dataclass(frozen=True)
class Median(Step):
    """Median filter of each channel over `side` × `side` pixels; `side` is odd, 3 to 15.

    Raises `InvalidParameter`. Source: Reilly & Fan 2021 §3.4.

    >>> Median(3)(np.array([[[9], [200], [9]]], np.uint8)).ravel().tolist()
    [9, 9, 9]
    """

    name: ClassVar[str] = "median"
    usual: ClassVar[str] = "median:3"
    summary: ClassVar[str] = "median filter; side of the window in pixels, odd"

    side: OddSide = OddSide()

    def __call__(self, image: UInt8[np.ndarray, "h w c"]) -> UInt8[np.ndarray, "h w c"]:
        """Return the filtered levels, channel by channel; the edge is replicated."""
        return np.asarray(cv2.medianBlur(np.ascontiguousarray(image), self.side), np.uint8).reshape(
            image.shape
        )
