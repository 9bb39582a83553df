"""Eigenfaces: principal components of aligned crops (Croft thesis §6.5; Turk & Pentland 1991)."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import ClassVar, Final, Self

import numpy as np
from jaxtyping import Float32, Float64

from dpveil.codecs.pair_distances import apart_of, checked_apart
from dpveil.codecs.base import (
    CHUNK,
    PERCENTILES,
    Canvas,
    Card,
    Codec,
    Codes,
    Crops,
    Source,
    checked_quantiles,
    energies,
    flat,
    mean_of,
    pictures_of,
    quantiles_of,
)
from dpveil.training.checkpoint import NOWHERE, Checkpoint, Tensors
from dpveil.core.parameters import check_count
from dpveil.errors import InvalidParameter, ModelError
from dpveil.noise.bits import SeededBits

SPARE: Final = 16
"""Directions that are followed beside those that are kept, so that the last ones settle too."""
PASSES: Final = 6
"""Times that the training crops are read to find the components."""
LEAST: Final = 1e-3
"""Variance in squared grey levels, over the whole crop, below which a component is nothing."""


@dataclass(frozen=True, eq=False)
class PCA(Codec):
    """A code is the part of a crop, in grey levels, along each of the first principal components.

    `mean` and the orthonormal rows of `components` were learned from public crops, the components in the
    order of their variance. Source: Croft thesis §6.5; Turk & Pentland 1991.
    """

    name: ClassVar[str] = "pca"
    summary: ClassVar[str] = "eigenfaces: principal components of aligned crops"
    source: ClassVar[str] = "Croft thesis §6.5; Turk & Pentland 1991"
    passes: ClassVar[int] = PASSES + 3

    mean: Float32[np.ndarray, " pixels"]
    components: Float32[np.ndarray, "m pixels"]
    sides: Float64[np.ndarray, "2 percentiles m"]
    between: Float64[np.ndarray, "measures percentiles shares"]
    spread: Float64[np.ndarray, " m"]
    canvas: Canvas
    card: Card

    @property
    def length(self) -> int:
        """Components that are kept."""
        return len(self.components)

    @property
    def deviations(self) -> Float64[np.ndarray, " m"]:
        """Standard deviations of the training codes."""
        return self.spread

    @property
    def column_energy(self) -> Float64[np.ndarray, " m"]:
        """1 for every component, but for the rounding of what is stored."""
        return energies(self.components)

    def _encode(self, crops: Crops) -> Codes:
        return self.codes_of(crops)

    def codes_of(self, pictures: np.ndarray) -> Codes:
        """Return the codes of pictures of the canvas, whose levels need not be whole numbers."""
        return _codes(pictures, self.mean, self.components.T)

    def _decode(self, codes: Codes) -> Crops:
        starts = range(0, len(codes), CHUNK)
        rows = (codes[at : at + CHUNK].astype(np.float32) @ self.components + self.mean for at in starts)
        return pictures_of(rows, len(codes), self.canvas)

    @classmethod
    def train(
        cls,
        source: Source,
        *,
        card: Card,
        seed: int,
        length: int = 100,
        checkpoint: Checkpoint = NOWHERE,
    ) -> Self:
        """Return the first `length` components, found by subspace iteration over the crops.

        `PASSES` + 3 passes over `source`, in the memory of a batch and `length` + 16 components. Raises
        `InvalidParameter` where crops are no more than components, or vary in fewer directions.
        Source: Halko, Martinsson & Tropp 2011, algorithm 4.4.
        """
        check_count(length, "length")
        mean, count, canvas = mean_of(source, length)
        basis = _subspace(source, mean, min(length + SPARE, count - 1, mean.size), seed, checkpoint)
        codes = np.concatenate([_codes(crops, mean, basis) for crops in source()])
        values, turn = np.linalg.eigh(codes.T @ codes / count)
        if length > len(values) or values[-length] < LEAST:
            found = int(np.sum(values >= LEAST))
            raise InvalidParameter(
                "length",
                length,
                f"is more than the {found} directions in which the images vary",
                hint="lower it or give more images",
            )
        largest = turn[:, np.argsort(values)[::-1][:length]].astype(np.float32)
        components = np.ascontiguousarray((basis @ largest).T)
        components *= np.where(components.sum(axis=1) < 0, np.float32(-1), np.float32(1))[:, None]
        components = components.astype(np.float16).astype(np.float32)  # what a file keeps
        final = np.concatenate([_codes(crops, mean, components.T) for crops in source()])
        sides = quantiles_of(final)
        between = apart_of(final, sides, seed)
        return cls(mean, components, sides, between, final.std(axis=0), canvas, card)

    def tensors(self) -> dict[str, np.ndarray]:
        """Return what was learned; 16-bit floats are enough for components, in grey levels."""
        return {
            "mean": self.mean,
            "components": self.components.astype(np.float16),
            "quantiles": self.sides,
            "apart": self.between,
            "deviations": self.spread,
        }

    @classmethod
    def of_tensors(cls, tensors: Tensors, canvas: Canvas, card: Card) -> Self:
        """Return the codec of a file."""
        mean, components = (tensors[name].astype(np.float32) for name in ("mean", "components"))
        if mean.shape != (prod(canvas),) or components.ndim != 2 or components.shape[1:] != mean.shape:
            raise ModelError("the file's mean and components do not fit its canvas")
        finite = np.isfinite(mean).all() and np.isfinite(components).all()
        if not finite or not components.any(axis=1).all():
            raise ModelError("the file's mean or components are not finite, or a component is empty")
        sides = checked_quantiles(tensors, len(components))
        between = checked_apart(tensors, len(PERCENTILES), len(components))
        spread = tensors["deviations"].astype(np.float64)
        if spread.shape != (len(components),) or not np.isfinite(spread).all() or np.any(spread <= 0):
            raise ModelError(f"the file's deviations are not {len(components)} numbers above 0")
        return cls(mean, components, sides, between, spread, canvas, card)


def _codes(
    crops: Crops, mean: Float32[np.ndarray, " pixels"], columns: Float32[np.ndarray, "pixels k"]
) -> Codes:
    parts = [(chunk - mean) @ columns for chunk in flat(crops)]
    codes: Codes = np.concatenate([*parts, np.empty((0, columns.shape[1]))]).astype(np.float64)
    return codes


def _subspace(
    source: Source, mean: Float32[np.ndarray, " pixels"], size: int, seed: int, checkpoint: Checkpoint
) -> Float32[np.ndarray, "pixels k"]:
    """Return an orthonormal basis of about the first `size` components."""
    state = checkpoint.read()
    done = int(state["done"]) if "done" in state else 0
    basis = state["basis"] if "basis" in state else _start(mean.size, size, seed)
    for number in range(done, PASSES):
        basis = np.linalg.qr(_spread(source, mean, basis))[0]
        checkpoint.write({"done": np.array(number + 1), "basis": basis})
    return basis


def _start(pixels: int, size: int, seed: int) -> Float32[np.ndarray, "pixels k"]:
    """Return random signs, which no component is likely to miss."""
    words = SeededBits(seed, "pca").words(-(-pixels * size // 64))
    signs = np.unpackbits(words.astype("<u8").view(np.uint8), count=pixels * size).reshape(pixels, size)
    start: Float32[np.ndarray, "pixels k"] = 2 * signs.astype(np.float32) - 1
    return start / np.float32(np.sqrt(pixels))


def _spread(
    source: Source, mean: Float32[np.ndarray, " pixels"], basis: Float32[np.ndarray, "pixels k"]
) -> Float32[np.ndarray, "pixels k"]:
    """Return the covariance of the crops, times the basis and their number."""
    out = np.zeros_like(basis)
    for crops in source():
        for chunk in flat(crops):
            chunk -= mean
            out += chunk.T @ (chunk @ basis)
    return out
