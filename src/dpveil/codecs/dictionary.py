"""FaceIDP's dictionary: sparse codes of crops over atoms that were learned in layers (DLNet)."""

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
from dpveil.codecs.dlnet import learn, sparse
from dpveil.core.parameters import check_count
from dpveil.errors import InvalidParameter, ModelError

EPOCHS: Final = 10
"""Times that the training crops are read to learn the atoms."""
STEPS: Final = 200
"""Soft thresholdings that make a code: a fixed number, so that the same crop has the same code."""


@dataclass(frozen=True, eq=False)
class Dictionary(Codec):
    """A code is what a crop takes of each atom, mostly of few: min ½‖P - mean - D·F‖² + λ·‖F‖₁.

    `mean` and the columns of D, rows of `atoms`, were learned from public crops; an atom has norm 1, in grey
    levels. λ is 1 % of the largest product of the crop with an atom, as published; what is minimised is
    approached by `STEPS` steps of ISTA, with |F| in the soft threshold (FaceIDP eq. 23, errata E11).
    Source: FaceIDP §V-A (DLNet), eqs. 19-24.
    """

    name: ClassVar[str] = "dictionary"
    summary: ClassVar[str] = "sparse codes over learned atoms"
    source: ClassVar[str] = "FaceIDP §V-A, eqs. 19-24, errata E11"
    passes: ClassVar[int] = EPOCHS + 3

    mean: Float32[np.ndarray, " pixels"]
    atoms: Float32[np.ndarray, "m pixels"]
    sides: Float64[np.ndarray, "2 percentiles m"]
    between: Float64[np.ndarray, "measures percentiles shares"]
    canvas: Canvas
    card: Card

    @property
    def length(self) -> int:
        """Atoms."""
        return len(self.atoms)

    @property
    def column_energy(self) -> Float64[np.ndarray, " m"]:
        """Squared norms of the atoms (FaceIDP eq. 15), over all pixels and channels."""
        return energies(self.atoms)

    def _encode(self, crops: Crops) -> Codes:
        return _codes(crops, self.mean, self.atoms)

    def _decode(self, codes: Codes) -> Crops:
        starts = range(0, len(codes), CHUNK)
        rows = (codes[at : at + CHUNK].astype(np.float32) @ self.atoms + self.mean for at in starts)
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
        """Return a dictionary of `length` atoms, learned by stochastic gradients.

        `EPOCHS` + 3 passes over `source`, in the memory of a batch and the atoms of two layers. Raises
        `InvalidParameter` where crops are no more than atoms, or an atom was used by none.
        """
        check_count(length, "length")
        mean, _, canvas = mean_of(source, length)
        atoms = learn(source, mean, length, EPOCHS, checkpoint)
        atoms = atoms.astype(np.float16).astype(np.float32)  # what a file keeps
        codes = np.concatenate([_codes(crops, mean, atoms) for crops in source()])
        sides = quantiles_of(codes)
        unused = int(np.sum(sides[0, 0] >= sides[1, 0]))
        if unused:
            raise InvalidParameter(
                "length",
                length,
                f"is too many: {unused} of the atoms are used by no image",
                hint="lower it or give more images",
            )
        return cls(mean, atoms, sides, apart_of(codes, sides, seed), canvas, card)

    def tensors(self) -> dict[str, np.ndarray]:
        """Return mean, atoms (16-bit floats are enough for grey levels), quantiles and distances."""
        stored = self.atoms.astype(np.float16)
        return {"mean": self.mean, "atoms": stored, "quantiles": self.sides, "apart": self.between}

    @classmethod
    def of_tensors(cls, tensors: Tensors, canvas: Canvas, card: Card) -> Self:
        """Return the codec of a file."""
        mean, atoms = (tensors[name].astype(np.float32) for name in ("mean", "atoms"))
        if mean.shape != (prod(canvas),) or atoms.ndim != 2 or atoms.shape[1:] != mean.shape:
            raise ModelError("the file's mean and atoms do not fit its canvas")
        if not np.isfinite(mean).all() or not np.isfinite(atoms).all() or not atoms.any(axis=1).all():
            raise ModelError("the file's mean or atoms are not finite, or an atom is empty")
        sides = checked_quantiles(tensors, len(atoms))
        between = checked_apart(tensors, len(PERCENTILES), len(atoms))
        return cls(mean, atoms, sides, between, canvas, card)


def _codes(
    crops: Crops, mean: Float32[np.ndarray, " pixels"], atoms: Float32[np.ndarray, "m pixels"]
) -> Codes:
    gram = (atoms @ atoms.T).astype(np.float64)
    parts = [sparse(((chunk - mean) @ atoms.T).astype(np.float64), gram, STEPS) for chunk in flat(crops)]
    return np.concatenate([*parts, np.empty((0, len(atoms)))])
