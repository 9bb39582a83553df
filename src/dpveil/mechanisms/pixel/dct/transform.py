"""Integer block cosine transforms: exact coefficients, their ranges, and their expected energy.

Levels x enter as 2x - 255, colours as R+G+B, R-B and R-2G+B (the three-point cosine transform), blocks with
⌊1024·cosine⌉ on both sides: a linear map of integers, without rounding of the data. Blocks beyond the right
or bottom edge are padded with mid-grey, 2x - 255 = 0: repeating the last column and row instead would count a
pixel twice.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Final

import numpy as np
from jaxtyping import Float64, Int64, UInt8

from dpveil.mechanisms.pixel.cells import TOP

UNIT: Final = 1 << 10
"""Factor on cosines before they are rounded to integers."""
COLOURS: Final = {1: ((1,),), 3: ((1, 1, 1), (1, 0, -1), (1, -2, 1))}
"""The colour transform, by number of channels."""
EXPECTED: Final = {1: ((60.0, 4.5),), 3: ((100.0, 8.0), (50.0, 2.5), (15.0, 1.0))}
"""For each colour plane: standard deviation of block means, and of frequencies, in grey levels.

Public round numbers, close to those of the four colour photographs that come with scikit-image.
"""
FALL: Final = -2 / 3
"""Exponent by which the expected spread falls with the squared frequency."""
CLIP: Final = 4
"""Multiple of the spread at which coefficients are clipped, except the mean of a grey or R+G+B block."""

Coefficients = Int64[np.ndarray, "blocks coefficients"]


def cosines(side: int) -> Int64[np.ndarray, "side side"]:
    """Return the orthonormal cosine transform times 1024, rounded; these integers define the transform."""
    rows, columns = np.arange(side)[:, None], np.arange(side)[None, :]
    exact = np.cos(np.pi * (2 * columns + 1) * rows / (2 * side)) * np.sqrt(np.where(rows == 0, 1, 2) / side)
    whole: Int64[np.ndarray, "side side"] = np.rint(exact * UNIT).astype(np.int64)
    return whole


@dataclass(frozen=True)
class BlockTransform:
    """The transform of `tall` × `wide` blocks; coefficients are ordered by colour plane, row and column.

    >>> BlockTransform(1, 1, 1).forward(np.array([[[0], [255]]], np.uint8)).ravel() // UNIT**2
    array([-255,  255])
    """

    tall: int
    wide: int
    channels: int

    @cached_property
    def matrices(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The integer matrices for colours, rows and columns."""
        return np.array(COLOURS[self.channels]), cosines(self.tall), cosines(self.wide)

    @cached_property
    def norms(self) -> Int64[np.ndarray, " coefficients"]:
        """The integer by which a squared coefficient is divided to be in orthonormal units, levels²."""
        planes = (self.matrices[0] ** 2).sum(axis=1) * 4 * UNIT**4
        return np.repeat(planes, self.tall * self.wide)

    @cached_property
    def stretch(self) -> Fraction:
        """An exact bound, close to 1, on the factor by which the transform increases squared lengths.

        The largest eigenvalue of a matrix is at most the largest sum of absolute values in a row.
        """
        bounds = [int(np.abs(m @ m.T).sum(axis=1).max()) for m in self.matrices[1:]]
        return Fraction(bounds[0] * bounds[1], UNIT**4)

    @cached_property
    def frequencies(self) -> Float64[np.ndarray, "tall wide"]:
        """The squared frequency of each coefficient of a plane, in half cycles per pixel."""
        rows, columns = np.arange(self.tall)[:, None] / self.tall, np.arange(self.wide)[None, :] / self.wide
        return rows**2 + columns**2

    @cached_property
    def expected(self) -> Float64[np.ndarray, " coefficients"]:
        """The public spread of each coefficient in orthonormal units: a power law of natural images."""
        falling = np.where(self.frequencies > 0, self.frequencies, 1) ** FALL
        planes = []
        for mean, detail in EXPECTED[self.channels]:
            spread = detail * falling
            spread[0, 0] = mean * np.sqrt(self.tall * self.wide)
            planes.append(spread.ravel())
        return np.concatenate(planes)

    @cached_property
    def moved(self) -> Int64[np.ndarray, "t frequencies"]:
        """The largest shift of a coefficient of one channel when 1, 2, ... pixels of its block change."""
        _, rows, columns = (np.abs(matrix) for matrix in self.matrices)
        weights = np.sort(np.einsum("ui,vj->uvij", rows, columns).reshape(self.frequencies.size, -1))
        return 2 * TOP * np.cumsum(weights[:, ::-1], axis=1).T

    @cached_property
    def bounds(self) -> Int64[np.ndarray, " coefficients"]:
        """The public bound on each coefficient's absolute value; larger ones are clipped before the noise."""
        mixed = np.abs(self.matrices[0]).sum(axis=1)
        reach = np.outer(mixed, self.moved[-1]).ravel() // 2
        usual = np.ceil(CLIP * self.expected * np.sqrt(self.norms)).astype(np.int64)
        bounds: Int64[np.ndarray, " coefficients"] = np.minimum(reach, usual)
        bounds[0] = reach[0]
        return bounds

    def forward(self, image: UInt8[np.ndarray, "h w c"]) -> Coefficients:
        """Return the exact coefficients of all blocks, row by row of blocks.

        Every partial sum is an integer below 2^53, so floating-point products are exact.
        """
        colours, rows, columns = self.matrices
        height, width, _ = image.shape
        levels = np.pad(2.0 * image - TOP, ((0, -height % self.tall), (0, -width % self.wide), (0, 0)))
        blocks = levels.reshape(-1, self.tall, levels.shape[1] // self.wide, self.wide, self.channels)
        planes = np.einsum("kc,aibjc->abkij", colours.astype(np.float64), blocks)
        found = rows.astype(np.float64) @ planes @ columns.T.astype(np.float64)
        exact: Coefficients = found.reshape(-1, self.norms.size).astype(np.int64)
        return exact

    def backward(
        self, coefficients: Float64[np.ndarray, "blocks coefficients"], height: int, width: int
    ) -> UInt8[np.ndarray, "height width c"]:
        """Return the clamped image of coefficients in orthonormal units: post-processing."""
        colours, rows, columns = self.matrices
        across = -(-width // self.wide)
        planes = coefficients * np.sqrt(self.norms)
        blocks = planes.reshape(-1, across, self.channels, self.tall, self.wide)
        levels = np.linalg.inv(rows) @ blocks @ np.linalg.inv(columns).T
        pixels = np.einsum("ck,abkij->aibjc", np.linalg.inv(colours), levels)
        whole = pixels.reshape(-1, across * self.wide, self.channels)[:height, :width]
        image: UInt8[np.ndarray, "height width c"]
        image = np.rint(np.clip((whole + TOP) / 2, 0, TOP)).astype(np.uint8)
        return image
