"""FaceIDP's dictionary: sparse codes of crops over learned atoms."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from typing import Any, ClassVar, Final, Self

import numpy as np
from jaxtyping import Float32, Float64

from dpveil.assets.cards import Card
from dpveil.assets.store import Tensors
from dpveil.codecs.base import CHUNK, Canvas, Crops, StoredCodec, canvas_of, flat, pictures_of
from dpveil.codecs.statistics import Codes, Statistics, energies
from dpveil.errors import ModelError

STEPS: Final = 200
"""Steps of ISTA per code: a fixed number, so that a code is a function of its crop alone."""
THRESHOLD: Final = 0.01
"""λ relative to the largest coordinate (FaceIDP §IX-A)."""
SMALLEST: Final = 1e-9
"""Smallest norm used as a divisor."""


@dataclass(frozen=True, eq=False)
class Dictionary(StoredCodec):
    """A code holds the weights of a sparse combination of atoms: min ½‖P - mean - D·F‖² + λ·‖F‖₁.

    `mean` and the columns of D, rows of `atoms`, were learned from public crops; an atom has norm 1, in grey
    levels. λ is 1 % of the largest inner product of the crop with an atom, as published. The minimum is
    approximated by `STEPS` steps of ISTA, with |F| in the soft threshold (FaceIDP eq. 23, errata E11).
    Source: FaceIDP §V-A (DLNet), eqs. 19-24.
    """

    name: ClassVar[str] = "dictionary"
    summary: ClassVar[str] = "sparse codes over learned atoms"
    source: ClassVar[str] = "FaceIDP §V-A, eqs. 19-24, errata E11"

    mean: Float32[np.ndarray, " pixels"]
    atoms: Float32[np.ndarray, "m pixels"]
    statistics: Statistics
    canvas: Canvas
    card: Card

    @property
    def length(self) -> int:
        """The number of atoms."""
        return len(self.atoms)

    def _encode(self, crops: Crops) -> Codes:
        return sparse_codes(crops, self.mean, self.atoms)

    def _decode(self, codes: Codes) -> Crops:
        starts = range(0, len(codes), CHUNK)
        rows = (codes[at : at + CHUNK].astype(np.float32) @ self.atoms + self.mean for at in starts)
        return pictures_of(rows, len(codes), self.canvas)

    def tensors(self) -> dict[str, np.ndarray]:
        """Return the arrays of the file: mean, atoms as 16-bit floats, and statistics."""
        stored = self.atoms.astype(np.float16)
        return {"mean": self.mean, "atoms": stored, **self.statistics.tensors()}

    @classmethod
    def of_file(cls, facts: Mapping[str, Any], tensors: Tensors, card: Card) -> Self:
        """Return the codec stored in a file; raises `ModelError` for contents that do not fit together."""
        canvas = canvas_of(facts)
        mean, atoms = (tensors[name].astype(np.float32) for name in ("mean", "atoms"))
        if mean.shape != (prod(canvas),) or atoms.ndim != 2 or atoms.shape[1:] != mean.shape:
            raise ModelError("the file's mean and atoms do not fit its canvas")
        if not np.isfinite(mean).all() or not np.isfinite(atoms).all() or not atoms.any(axis=1).all():
            raise ModelError("the file's mean or atoms are not finite, or an atom is empty")
        return cls(mean, atoms, Statistics.of_tensors(tensors, energies(atoms)), canvas, card)


def sparse_codes(
    crops: Crops, mean: Float32[np.ndarray, " pixels"], atoms: Float32[np.ndarray, "m pixels"]
) -> Codes:
    """Return the codes of crops after `STEPS` steps of ISTA."""
    gram = (atoms @ atoms.T).astype(np.float64)
    parts = [sparse(((chunk - mean) @ atoms.T).astype(np.float64), gram, STEPS) for chunk in flat(crops)]
    return np.concatenate([*parts, np.empty((0, len(atoms)))])


def soft(values: Codes, threshold: Float64[np.ndarray, "n 1"]) -> Codes:
    """Return the soft threshold of values: moved towards 0 by `threshold`, and 0 if smaller than that.

    Source: FaceIDP eq. 23, with |F| in place of F, which would set every negative value to 0 (errata E11).
    """
    shrunk: Codes = np.sign(values) * np.maximum(0, np.abs(values) - threshold)
    return shrunk


def sparse(products: Codes, gram: Float64[np.ndarray, "m m"], steps: int) -> Codes:
    """Return the codes F after `steps` steps of ISTA to minimise ½·F·G·Fᵀ - F·b + λ·‖F‖₁.

    b are the inner products of a crop with the atoms, G those of the atoms, and λ is 1 % of the largest |b|.
    Source: FaceIDP eqs. 20-23; Daubechies, Defrise & De Mol 2004 for the step 1/‖G‖.
    """
    largest = max(float(np.linalg.eigvalsh(gram)[-1]), SMALLEST)
    threshold = THRESHOLD * np.abs(products).max(axis=1, keepdims=True, initial=0) / largest
    codes = np.zeros_like(products)
    for _ in range(steps):
        codes = soft(codes + (products - codes @ gram) / largest, threshold)
    return codes
