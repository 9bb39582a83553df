"""FaceIDP's dictionary: soft thresholds, ISTA against the optimum, and what learning gains."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from made_faces import source_of, train
from scipy.optimize import minimize

from dpveil.codecs import Dictionary
from dpveil.codecs.pca import THRESHOLD, soft, sparse
from dpveil_train.dictionary import learn
from dpveil_train.order import NOWHERE, mean_of


def printed(values, threshold):
    """FaceIDP eq. 23 as it is printed: F and not |F| inside of the maximum."""
    return np.sign(values) * np.maximum(0, values - threshold)


def test_soft_threshold_keeps_negative_numbers_where_the_printed_one_loses_them():
    """The part of errata E11 that is about FaceIDP (23)."""
    values = np.array([[-3.0, -0.5, 0.0, 0.5, 3.0]])
    limit = np.array([[1.0]])
    assert soft(values, limit).tolist() == [[-2, 0, 0, 0, 2]]
    assert printed(values, limit).tolist() == [[0, 0, 0, 0, 2]]


@pytest.mark.parametrize("seed", range(4))
def test_codes_are_the_least_of_what_they_minimise(seed):
    """Against a general solver on positive and negative parts; ISTA ends within 1e-6 of the optimum."""
    rng = np.random.default_rng(seed)
    atoms = rng.normal(size=(6, 30))
    atoms /= np.linalg.norm(atoms, axis=1, keepdims=True)
    row = rng.normal(size=30) * 10
    gram, product = atoms @ atoms.T, atoms @ row
    penalty = THRESHOLD * np.abs(product).max()

    def cost(code):
        return 0.5 * np.sum((row - code @ atoms) ** 2) + penalty * np.abs(code).sum()

    def parts(both):
        return cost(both[:6] - both[6:]) + penalty * 2 * np.minimum(both[:6], both[6:]).sum()

    best = minimize(parts, np.zeros(12), bounds=[(0, None)] * 12, tol=1e-12).fun
    code = sparse(product[None], gram, 400)[0]
    assert cost(code) < best + 1e-6 * abs(best)


def test_learning_beats_the_crops_that_it_starts_from(crops, other_crops):
    mean, _, _ = mean_of(source_of(crops), 8)
    start = learn(source_of(crops), mean, 8, 0, NOWHERE)
    learned = train(Dictionary, source_of(crops))
    wide = replace(learned.statistics, quantiles=learned.statistics.quantiles * 10)
    before = replace(learned, mean=mean, atoms=start, statistics=wide)
    errors = [
        np.mean((codec.decode(codec.encode(other_crops)).astype(float) - other_crops) ** 2)
        for codec in (before, learned)
    ]
    assert errors[1] < 0.8 * errors[0]


def test_a_code_does_not_depend_on_its_neighbours(codecs, other_crops):
    """ISTA takes a fixed number of steps, so that no crop decides how far another goes."""
    codec = codecs[("dictionary", 3)]
    together = codec.encode(other_crops)
    alone = np.concatenate([codec.encode(other_crops[i : i + 1]) for i in range(len(other_crops))])
    assert np.allclose(together, alone, atol=1e-2)


def test_atoms_have_norm_one(codecs):
    assert np.allclose(codecs[("dictionary", 3)].statistics.column_energy, 1, atol=2e-3)
    assert np.allclose(codecs[("dictionary", 1)].statistics.column_energy, 1, atol=2e-3)
