"""Training of eigenfaces: subspace iteration over the crops."""

from __future__ import annotations

from typing import Final

import numpy as np
from jaxtyping import Float32

from dpveil.assets.model_cards import Card
from dpveil.codecs.base import flat
from dpveil.codecs.pca import PCA, project
from dpveil.codecs.statistics import Statistics, energies
from dpveil.core.parameters import check_count
from dpveil.errors import InvalidParameter
from dpveil.noise.bits import SeededBits
from dpveil_train.order import Source, mean_of

SPARE: Final = 16  # oversampling: additional directions, so that the last components converge too
ROUNDS: Final = 6  # passes over the training crops to find the components
PASSES: Final = ROUNDS + 3  # passes over the training crops in all
LEAST: Final = 1e-3  # least variance of a component, in squared grey levels over the whole crop


def train_pca(source: Source, *, card: Card, seed: int, length: int = 100) -> PCA:
    """Return the first `length` principal components, by randomised subspace iteration over the crops.

    Makes `PASSES` passes over `source`, with memory for a batch and `length` + 16 components. Raises
    `InvalidParameter` if there are no more crops than components, or they vary in fewer directions. Source:
    Halko, Martinsson & Tropp 2011, algorithm 4.4.
    """
    check_count(length, "length")
    mean, count, canvas = mean_of(source, length)
    basis = _start(mean.size, min(length + SPARE, count - 1, mean.size), seed)
    for _ in range(ROUNDS):
        basis = np.linalg.qr(_spread(source, mean, basis))[0]
    codes = np.concatenate([project(crops, mean, basis) for crops in source()])
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
    components = components.astype(np.float16).astype(np.float32)  # as stored in a file
    final = np.concatenate([project(crops, mean, components.T) for crops in source()])
    spread = final.std(axis=0)
    statistics = Statistics.of(final, energies(components), seed=seed, deviations=spread)
    return PCA(mean, components, statistics, canvas, card)


def _start(pixels: int, size: int, seed: int) -> Float32[np.ndarray, "pixels k"]:
    """Return a random start of signs, scaled to columns of norm 1."""
    words = SeededBits(seed, "pca").words(-(-pixels * size // 64))
    signs = np.unpackbits(words.astype("<u8").view(np.uint8), count=pixels * size).reshape(pixels, size)
    start: Float32[np.ndarray, "pixels k"] = 2 * signs.astype(np.float32) - 1
    return start / np.float32(np.sqrt(pixels))


def _spread(
    source: Source, mean: Float32[np.ndarray, " pixels"], basis: Float32[np.ndarray, "pixels k"]
) -> Float32[np.ndarray, "pixels k"]:
    """Return the product of the crops' scatter matrix (covariance times their number) with the basis."""
    out = np.zeros_like(basis)
    for crops in source():
        for chunk in flat(crops):
            chunk -= mean
            out += chunk.T @ (chunk @ basis)
    return out
