"""Eigenfaces: principal components of aligned crops (Croft thesis §6.5; Turk & Pentland 1991)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod
from typing import ClassVar, Final, Self

import numpy as np
from jaxtyping import Float32, Float64

from dpveil.codecs.base import PERCENTILES, Card, Codec, Codes, Crops, Source, Tensors, quantiles_of
from dpveil.core.parameters import check_count
from dpveil.errors import InvalidParameter, ModelError

SPARE: Final = 16
"""Directions that are followed beside those that are kept, so that the last ones settle too."""
PASSES: Final = 4
"""Times that the training crops are read to find the components."""
CHUNK: Final = 128


@dataclass(frozen=True, eq=False)
class PCA(Codec):
    """A code is the part of a crop, in grey levels, along each of the first principal components.

    `mean` and the orthonormal rows of `components` were learned from public crops, the components in the
    order of their variance. Source: Croft thesis §6.5.
    """

    name: ClassVar[str] = "pca"
    summary: ClassVar[str] = "eigenfaces: principal components of aligned crops"
    source: ClassVar[str] = "Croft thesis §6.5"

    mean: Float32[np.ndarray, " pixels"]
    components: Float32[np.ndarray, "m pixels"]
    sides: Float64[np.ndarray, "2 percentiles m"]
    canvas: tuple[int, int, int]
    card: Card

    @property
    def length(self) -> int:
        """Components that are kept."""
        return len(self.components)

    @property
    def quantiles(self) -> Float64[np.ndarray, "2 percentiles m"]:
        """Bounds of the training codes."""
        return self.sides

    @property
    def column_energy(self) -> Float64[np.ndarray, " m"]:
        """1 for every component: they are orthonormal."""
        return np.ones(self.length)

    def _encode(self, crops: Crops) -> Codes:
        parts = [(chunk - self.mean) @ self.components.T for chunk in _flat(crops)]
        codes: Codes = np.concatenate([*parts, np.empty((0, self.length))]).astype(np.float64)
        return codes

    def _decode(self, codes: Codes) -> Crops:
        out = np.empty((len(codes), *self.canvas), np.uint8)
        for start in range(0, len(codes), CHUNK):
            part = codes[start : start + CHUNK].astype(np.float32) @ self.components + self.mean
            out[start : start + CHUNK] = np.clip(np.rint(part), 0, 255).reshape(-1, *self.canvas)
        return out

    @classmethod
    def train(cls, source: Source, *, card: Card, seed: int, length: int = 100) -> Self:  # type: ignore[override]
        """Return the first `length` components, found by subspace iteration over the crops.

        `PASSES` + 2 passes over `source`, in the memory of a batch and `length` + 16 components. Raises
        `InvalidParameter` where there are not more crops than components.
        """
        check_count(length, "length")
        mean, count, canvas = _mean(source)
        if count <= length:
            raise InvalidParameter(
                "length", length, f"is not below the number of crops, {count}", hint="give more crops"
            )
        kept = min(length + SPARE, count - 1, mean.size)
        basis = np.random.default_rng(seed).standard_normal((mean.size, kept)).astype(np.float32)
        for _ in range(PASSES):
            basis = _spread(source, mean, np.linalg.qr(basis)[0])
        basis = np.linalg.qr(basis)[0]
        codes = np.concatenate([(chunk - mean) @ basis for crops in source() for chunk in _flat(crops)])
        values, turn = np.linalg.eigh(codes.T.astype(np.float64) @ codes)
        largest = turn[:, np.argsort(values)[::-1][:length]].astype(np.float32)
        components = np.ascontiguousarray((basis @ largest).T)
        components *= np.where(components.sum(axis=1) < 0, np.float32(-1), np.float32(1))[:, None]
        final = codes @ (basis.T @ components.T)
        return cls(mean, components, quantiles_of(final.astype(np.float64)), canvas, card)

    def tensors(self) -> dict[str, np.ndarray]:
        """Return mean, components (16-bit floats are enough for grey levels) and quantiles."""
        return {"mean": self.mean, "components": self.components.astype(np.float16), "quantiles": self.sides}

    @classmethod
    def of_tensors(cls, tensors: Tensors, canvas: tuple[int, int, int], card: Card) -> Self:
        """Return the codec of a file."""
        mean, components = (tensors[name].astype(np.float32) for name in ("mean", "components"))
        shape = (2, len(PERCENTILES), len(components))
        if mean.shape != (prod(canvas),) or components.shape[1:] != mean.shape:
            raise ModelError("the file's mean and components do not fit its canvas")
        if tensors["quantiles"].shape != shape:
            raise ModelError(f"the file's quantiles are not {shape}")
        return cls(mean, components, tensors["quantiles"].astype(np.float64), canvas, card)


def _flat(crops: Crops) -> Iterator[Float32[np.ndarray, "n pixels"]]:
    for start in range(0, len(crops), CHUNK):
        part = crops[start : start + CHUNK]
        yield part.reshape(len(part), -1).astype(np.float32)


def _mean(source: Source) -> tuple[Float32[np.ndarray, " pixels"], int, tuple[int, int, int]]:
    total, count, canvas = np.zeros(0), 0, (0, 0, 0)
    for crops in source():
        if not count:
            canvas = (crops.shape[1], crops.shape[2], crops.shape[3])
            total = np.zeros(crops[0].size)
        total += crops.reshape(len(crops), -1).sum(axis=0, dtype=np.float64)
        count += len(crops)
    if not count:
        raise InvalidParameter("images", None, "are missing", hint="give at least two crops")
    return (total / count).astype(np.float32), count, canvas


def _spread(
    source: Source, mean: Float32[np.ndarray, " pixels"], basis: Float32[np.ndarray, "pixels k"]
) -> Float32[np.ndarray, "pixels k"]:
    """Return the covariance of the crops, times the basis."""
    out = np.zeros_like(basis)
    for crops in source():
        for chunk in _flat(crops):
            chunk -= mean
            out += chunk.T @ (chunk @ basis)
    return out
