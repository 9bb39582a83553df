"""Training of a dictionary by stochastic gradient descent and soft thresholding (FaceIDP §V-A, DLNet)."""

from __future__ import annotations

from typing import Final

import numpy as np
from jaxtyping import Float32, Float64

from dpveil.assets.model_cards import Card
from dpveil.codecs.base import Crops
from dpveil.codecs.pca import SMALLEST_NORM, Dictionary, sparse, sparse_codes
from dpveil.codecs.statistics import Statistics, energies
from dpveil.core.parameters import check_count
from dpveil.errors import InvalidParameter
from dpveil_train.order import Source, mean_of

RATE: Final = 0.01  # the learning rate η, per image (FaceIDP §IX-A)
BATCH: Final = 32
EPOCHS: Final = 10  # passes over the training crops to learn the atoms
PASSES: Final = EPOCHS + 3  # passes over the training crops in all
STEPS: Final = 50  # steps of ISTA for a code while atoms are learned
MEMORY: Final = 0.9  # decay of the moving average of each atom's use
ALIKE: Final = 0.999  # least correlation of two crops that count as equal

Rows = Float32[np.ndarray, "n pixels"]
Atoms = Float32[np.ndarray, "m pixels"]


def train_dictionary(source: Source, *, card: Card, seed: int, length: int = 100) -> Dictionary:
    """Return a dictionary of `length` atoms, learned by stochastic gradient descent.

    Makes `PASSES` passes over `source`, with memory for a batch and the atoms. Raises `InvalidParameter` if
    there are no more crops than atoms, or no crop uses an atom. Source: FaceIDP §V-A, eqs. 19-24.
    """
    check_count(length, "length")
    mean, _, canvas = mean_of(source, length)
    atoms = learn(source, mean, length, EPOCHS)
    atoms = atoms.astype(np.float16).astype(np.float32)  # as stored in a file
    codes = np.concatenate([sparse_codes(crops, mean, atoms) for crops in source()])
    unused = int(np.sum(codes.min(axis=0) >= codes.max(axis=0)))
    if unused:
        problem = f"is too many: {unused} of the atoms are used by no image"
        raise InvalidParameter("length", length, problem, hint="lower it or give more images")
    return Dictionary(mean, atoms, Statistics.of(codes, energies(atoms), seed=seed), canvas, card)


def learn(source: Source, mean: Float32[np.ndarray, " pixels"], length: int, epochs: int) -> Atoms:
    """Return `length` atoms of norm 1 as rows.

    Makes one pass over the crops for the initial atoms, which are crops, and one for every epoch. The layers
    of the DLNet only act through their product (FaceIDP eq. 24), so the product is learned directly.
    """
    atoms, use = _start(source, mean, length)
    for number in range(epochs):
        for crops in source():
            for start in range(0, len(crops), BATCH):
                atoms, use = _step(atoms, use, _rows(crops[start : start + BATCH], mean), number + 1)
    return atoms


def _step(
    atoms: Atoms, use: Float64[np.ndarray, " m"], rows: Rows, epoch: int
) -> tuple[Atoms, Float64[np.ndarray, " m"]]:
    """Return the atoms after a gradient step on the squared error of a few crops (FaceIDP eqs. 20-21).

    The gradient of an atom is divided by the mean square of its codes, so that η has no unit: η = 1 would
    minimise the error of a single crop in one step. The learning rate falls as 1/epoch.
    """
    gram = (atoms @ atoms.T).astype(np.float64)
    codes = sparse((rows @ atoms.T).astype(np.float64), gram, STEPS)
    rest = rows - codes.astype(np.float32) @ atoms
    use = MEMORY * use + (1 - MEMORY) * (codes**2).mean(axis=0)
    scaled = (codes / (use + SMALLEST_NORM)).astype(np.float32)
    return unit(atoms + np.float32(RATE / epoch) * (scaled.T @ rest)), use


def _rows(crops: Crops, mean: Float32[np.ndarray, " pixels"]) -> Rows:
    rows: Rows = crops.reshape(len(crops), -1).astype(np.float32) - mean
    return rows


def unit(rows: Rows) -> Rows:
    lengths = np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), SMALLEST_NORM)
    return np.ascontiguousarray(rows / lengths.astype(np.float32))


def _start(
    source: Source, mean: Float32[np.ndarray, " pixels"], length: int
) -> tuple[Atoms, Float64[np.ndarray, " m"]]:
    """Return initial atoms, the first crops that differ from each other and their negatives, and their use.

    Raises `InvalidParameter` if there are too few such crops.
    """
    atoms, energy, count = np.empty((length, mean.size), np.float32), 0.0, 0
    for crops in source():
        for row in _rows(crops, mean):
            size = float(np.linalg.norm(row))
            if count < length and size > 1 and np.all(np.abs(atoms[:count] @ row) < ALIKE * size):
                atoms[count] = row / np.float32(size)
                energy, count = energy + size**2, count + 1
        if count == length:
            return atoms, np.full(length, energy / length**2)
    problem = f"is more than the {count} images that differ from their mean and from each other"
    raise InvalidParameter("length", length, problem, hint="lower it or give more images")
