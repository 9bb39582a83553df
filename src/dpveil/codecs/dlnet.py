"""Learning a dictionary by stochastic gradients and soft thresholds (FaceIDP §V-A, DLNet)."""

from __future__ import annotations

from typing import Final

import numpy as np
from jaxtyping import Float32, Float64

from dpveil.codecs.base import Crops, Source
from dpveil.training.checkpoint import Checkpoint, Tensors
from dpveil.errors import InvalidParameter

RATE: Final = 0.01
"""η, for each image (FaceIDP §IX-A)."""
THRESHOLD: Final = 0.01
"""λ, as a part of the largest coordinate (FaceIDP §IX-A)."""
BATCH: Final = 32
STEPS: Final = 50
"""Soft thresholdings of a code while atoms are learned."""
MEMORY: Final = 0.9
SMALLEST: Final = 1e-9
ALIKE: Final = 0.999
"""The least correlation of two crops that count as one."""

Rows = Float32[np.ndarray, "n pixels"]
Atoms = Float32[np.ndarray, "m pixels"]
Many = Float64[np.ndarray, "n m"]


def soft(values: Many, threshold: Float64[np.ndarray, "n 1"]) -> Many:
    """Return values moved towards 0 by the threshold, and 0 where they are smaller.

    Source: FaceIDP eq. 23 with |F| where it prints F, which would make every negative number 0 (errata E11).
    """
    shrunk: Many = np.sign(values) * np.maximum(0, np.abs(values) - threshold)
    return shrunk


def sparse(products: Many, gram: Float64[np.ndarray, "m m"], steps: int) -> Many:
    """Return codes F after `steps` steps of ISTA towards the least ½·F·G·Fᵀ - F·b + λ·‖F‖₁.

    b are the products of crops with atoms, G those of atoms, and λ is 1 % of the largest |b| of a crop.
    Source: FaceIDP eqs. 20-23; Daubechies, Defrise & De Mol 2004 for the step 1/‖G‖.
    """
    largest = max(float(np.linalg.eigvalsh(gram)[-1]), SMALLEST)
    threshold = THRESHOLD * np.abs(products).max(axis=1, keepdims=True, initial=0) / largest
    codes = np.zeros_like(products)
    for _ in range(steps):
        codes = soft(codes + (products - codes @ gram) / largest, threshold)
    return codes


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
