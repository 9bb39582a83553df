"""Training of a dictionary by stochastic gradient descent and soft thresholding (FaceIDP §V-A, DLNet)."""

from __future__ import annotations

from typing import Final

import numpy as np
from jaxtyping import Float32, Float64

from dpveil.assets.cards import Card
from dpveil.assets.store import Tensors
from dpveil.codecs.base import Crops
from dpveil.codecs.dictionary import SMALLEST, Dictionary, sparse, sparse_codes
from dpveil.codecs.statistics import Statistics, energies
from dpveil.core.parameters import check_count
from dpveil.errors import InvalidParameter
from dpveil.training.checkpoint import NOWHERE, Checkpoint
from dpveil.training.source import Source, mean_of

RATE: Final = 0.01
"""η, for each image (FaceIDP §IX-A)."""
BATCH: Final = 32
EPOCHS: Final = 10
"""Passes over the training crops to learn the atoms."""
PASSES: Final = EPOCHS + 3
"""Passes over the training crops in all."""
STEPS: Final = 50
"""Soft thresholdings of a code while atoms are learned."""
MEMORY: Final = 0.9
ALIKE: Final = 0.999
"""The least correlation of two crops that count as one."""

Rows = Float32[np.ndarray, "n pixels"]
Atoms = Float32[np.ndarray, "m pixels"]


def train_dictionary(
    source: Source, *, card: Card, seed: int, length: int = 100, checkpoint: Checkpoint = NOWHERE
) -> Dictionary:
    """Return a dictionary of `length` atoms, learned by stochastic gradients.

    `PASSES` passes over `source`, in the memory of a batch and the atoms of two layers. `checkpoint` keeps
    what is finished, and training goes on from what it holds. Raises `InvalidParameter` where crops are no
    more than atoms, or an atom was used by none.
    """
    check_count(length, "length")
    mean, _, canvas = mean_of(source, length)
    atoms = learn(source, mean, length, EPOCHS, checkpoint)
    atoms = atoms.astype(np.float16).astype(np.float32)  # what a file keeps
    codes = np.concatenate([sparse_codes(crops, mean, atoms) for crops in source()])
    unused = int(np.sum(codes.min(axis=0) >= codes.max(axis=0)))
    if unused:
        problem = f"is too many: {unused} of the atoms are used by no image"
        raise InvalidParameter("length", length, problem, hint="lower it or give more images")
    return Dictionary(mean, atoms, Statistics.of(codes, energies(atoms), seed=seed), canvas, card)


def learn(
    source: Source, mean: Float32[np.ndarray, " pixels"], length: int, epochs: int, checkpoint: Checkpoint
) -> Atoms:
    """Return `length` atoms of norm 1 as rows.

    Reads the crops once for the first atoms, which are crops themselves, and once for every epoch. Layers of
    the DLNet only ever act as their product (FaceIDP eq. 24), so that the product is learned itself.
    """
    state: Tensors = checkpoint.read()
    done = int(state["done"]) if "done" in state else 0
    atoms, use = (state["atoms"], state["use"]) if done else _start(source, mean, length)
    for number in range(done, epochs):
        for crops in source():
            for start in range(0, len(crops), BATCH):
                atoms, use = _step(atoms, use, _rows(crops[start : start + BATCH], mean), number + 1)
        checkpoint.write({"done": np.array(number + 1), "atoms": atoms, "use": use})
    return atoms


def _step(
    atoms: Atoms, use: Float64[np.ndarray, " m"], rows: Rows, epoch: int
) -> tuple[Atoms, Float64[np.ndarray, " m"]]:
    """Return the atoms moved against the gradient of the squared error of a few crops (FaceIDP eqs. 20-21).

    The gradient of an atom is divided by how much codes use it, so that η has no unit: η = 1 would go to the
    least error of one crop at once. It falls as 1/epoch, which lets the atoms settle.
    """
    gram = (atoms @ atoms.T).astype(np.float64)
    codes = sparse((rows @ atoms.T).astype(np.float64), gram, STEPS)
    rest = rows - codes.astype(np.float32) @ atoms
    use = MEMORY * use + (1 - MEMORY) * (codes**2).mean(axis=0)
    scaled = (codes / (use + SMALLEST)).astype(np.float32)
    return unit(atoms + np.float32(RATE / epoch) * (scaled.T @ rest)), use


def _rows(crops: Crops, mean: Float32[np.ndarray, " pixels"]) -> Rows:
    rows: Rows = crops.reshape(len(crops), -1).astype(np.float32) - mean
    return rows


def unit(rows: Rows) -> Rows:
    """Return rows of norm 1."""
    lengths = np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), SMALLEST)
    return np.ascontiguousarray(rows / lengths.astype(np.float32))


def _start(
    source: Source, mean: Float32[np.ndarray, " pixels"], length: int
) -> tuple[Atoms, Float64[np.ndarray, " m"]]:
    """Return the first crops as atoms, none like another or its negative, and how much codes use each."""
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
