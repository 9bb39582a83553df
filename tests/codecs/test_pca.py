"""Eigenfaces against a full singular value decomposition."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from made_faces import CARD, faces, source_of, train

from dpveil.codecs import PCA
from dpveil.errors import InvalidParameter
from dpveil_train import train_pca


def full(crops):
    """The mean, the components and their variances, all at once and in double precision."""
    rows = crops.reshape(len(crops), -1).astype(np.float64)
    mean = rows.mean(axis=0)
    _, sizes, components = np.linalg.svd(rows - mean, full_matrices=False)
    return mean, components, sizes**2 / len(rows)


def test_same_subspace_as_a_full_decomposition(crops):
    codec = train(PCA, source_of(crops), length=6)
    mean, components, _ = full(crops)
    assert np.allclose(codec.mean, mean, atol=1e-3)
    overlap = np.abs(codec.components.astype(np.float64) @ components[:6].T)
    assert np.allclose(overlap, np.eye(6), atol=2e-2)  # order, too; all is rounded to 16 bits
    codes = codec.encode(crops)
    expected = (crops.reshape(90, -1) - mean) @ components[:6].T
    assert np.allclose(np.abs(codes), np.abs(expected), atol=1 + 0.01 * np.abs(expected).max())


def test_variance_explained_is_the_most_there_is(crops):
    """To a part in 10 000 of the best that as many directions can do; one pass alone keeps visibly less."""
    _, _, variances = full(crops)
    codec = train(PCA, source_of(crops), length=8)
    kept = codec.encode(crops).var(axis=0).sum()
    assert kept > (1 - 1e-4) * variances[:8].sum()
    assert kept < (1 + 1e-3) * variances[:8].sum()


def test_components_are_orthonormal_and_in_order(crops):
    codec = train(PCA, source_of(crops), length=8)
    assert np.allclose(codec.components @ codec.components.T, np.eye(8), atol=2e-3)
    assert np.allclose(codec.statistics.column_energy, 1, atol=2e-3)
    spread = codec.encode(crops).var(axis=0)
    assert np.all(np.diff(spread) <= 1e-3 * spread[0])
    assert np.all(codec.components.sum(axis=1) >= -1e-3)  # the sign is ours to choose, and chosen


def test_as_many_components_as_the_crops_have_directions():
    crops = faces(10, seed=4)
    codec = train(PCA, source_of(crops), length=9)
    assert np.abs(codec.decode(codec.encode(crops)).astype(int) - crops).max() <= 2
    with pytest.raises(InvalidParameter, match="number of training images"):
        train(PCA, source_of(crops), length=10)


def test_directions_without_variance_are_refused():
    rng = np.random.default_rng(1)
    two = rng.integers(0, 50, (2, 6, 5, 1))
    crops = (130 + rng.integers(-1, 2, (30, 2)) @ two.reshape(2, -1)).reshape(30, 6, 5, 1).astype(np.uint8)
    assert train(PCA, source_of(crops), length=2).length == 2
    with pytest.raises(InvalidParameter, match="more than the 2 directions"):
        train(PCA, source_of(crops), length=3)


def test_memory_does_not_grow_with_the_number_of_crops():
    """A batch, the chunk as floats, and a few times the basis: never the 12 MB of all crops."""
    canvas = (32, 32, 3)
    batch = faces(50, seed=5, canvas=canvas)

    def source(times):
        return lambda: (np.roll(batch, shift, axis=2) for shift in range(times))

    peaks = []
    for times in (8, 80):
        tracemalloc.start()
        train_pca(source(times), card=CARD, seed=1, length=5)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    codes = 8 * (80 - 8) * 50 * (5 + 16)  # double precision, and the sum of squares of a few of them
    assert peaks[1] - peaks[0] < 4 * codes
    assert peaks[1] < 80 * batch.nbytes / 2


def test_deviations_are_those_of_the_training_codes(codecs, crops):
    codec = codecs[("pca", 3)]
    codes = codec.encode(crops)
    assert np.allclose(codec.statistics.deviations, codes.std(axis=0), rtol=1e-6)
    assert np.allclose(codes.mean(axis=0), 0, atol=0.2)  # grey levels; deviations are from 60 to 1 500
    assert np.all(np.diff(codec.statistics.deviations) < 0)
