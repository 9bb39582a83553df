"""Releases of public faces by pixel methods, as a denoiser sees them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Final, TypeVar

import cv2
import numpy as np
from jaxtyping import UInt8

from dpveil.mechanisms.pixel import DPPix, DPPixGaussian, MSEExponential, Snow
from dpveil.noise.bits import SeededBits

BLOCKS: Final = (1, 2, 3, 4, 6, 8, 12, 16)
"""Sides of blocks, in pixels of the picture."""
SCALES: Final = (2.0, 400.0)
"""Noise scales, in grey levels."""
SHARES: Final = (0.05, 0.6)
"""Values of δ for Snow."""
RATES: Final = (30.0, 30_000.0)
"""Values of ε for the exponential mechanism of a pixel's error."""
LEVELS: Final = 255
ZOOM: Final = (0.7, 1.0)
"""Part of a crop that a picture shows: boxes of detectors hold less than the crops do."""

T = TypeVar("T")
Picture = UInt8[np.ndarray, "s s 3"]


class Draws:
    """Numbers at random, which follow from a seed and a label."""

    def __init__(self, seed: int, label: str) -> None:
        self.bits = SeededBits(seed, label)

    def uniform(self, low: float, high: float) -> float:
        """Return a number between two others."""
        return low + (high - low) * float(self.bits.words(1)[0]) / 2.0**64

    def scaled(self, low: float, high: float) -> float:
        """Return a number between two others, whose logarithm is uniform."""
        return math.exp(self.uniform(math.log(low), math.log(high)))

    def one_of(self, choices: Sequence[T]) -> T:
        """Return one of several."""
        return choices[int(self.uniform(0, 1) * len(choices)) % len(choices)]


def released(face: Picture, draws: Draws) -> Picture:
    """Return a release of a face by a method and a budget that are drawn at random."""
    method = draws.one_of(METHODS)(draws)
    out: Picture = method.release(face, bits=draws.bits)
    return out


def cut(crop: Picture, side: int, draws: Draws) -> Picture:
    """Return a random part of a crop, mirrored or not, as a picture."""
    size = len(crop) * draws.uniform(*ZOOM)
    left, top = (draws.uniform(0, len(crop) - size) for _ in range(2))
    scale = side / size
    matrix = scale * np.eye(2, 3)
    matrix[:, 2] = 0.5 * scale - 0.5 - scale * np.array([left, top])
    out = cv2.warpAffine(crop, matrix, (side, side), flags=cv2.INTER_LINEAR, borderMode=cv2.BORDER_REFLECT)
    return np.ascontiguousarray(out[:, ::-1] if draws.uniform(0, 1) < 0.5 else out)


def _scale(draws: Draws) -> tuple[int, float]:
    """Return a block and a noise scale; noise on a block is at most that on a pixel."""
    return draws.one_of(BLOCKS), draws.scaled(*SCALES)


def _laplace(draws: Draws) -> DPPix:
    """Return `dp-pix` with noise of scale 255·m/(b²·ε) levels, for m = 1."""
    block, scale = _scale(draws)
    return DPPix(epsilon=round(LEVELS * 3 / (block**2 * scale), 9), block=block, neighbourhood=1)


def _gaussian(draws: Draws) -> DPPixGaussian:
    """Return `dp-pix-gaussian` with a deviation of about that many levels."""
    block, scale = _scale(draws)
    rho = (LEVELS / block**2 / scale) ** 2 * 3 / 2
    return DPPixGaussian(rho=round(rho, 9), block=block, neighbourhood=1)


def _snow(draws: Draws) -> Snow:
    return Snow(delta=round(draws.uniform(*SHARES), 3))


def _exponential(draws: Draws) -> MSEExponential:
    block, rate = draws.one_of(BLOCKS[:5]), draws.scaled(*RATES)
    return MSEExponential(epsilon=round(rate, 3), block=block)


METHODS: Final[tuple[Callable[[Draws], Any], ...]] = (
    _laplace,
    _laplace,
    _gaussian,
    _snow,
    _exponential,
)
"""What makes a method at random; Laplace noise twice as often."""
