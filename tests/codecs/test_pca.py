"""Eigenfaces against a full singular value decomposition."""

from __future__ import annotations

import numpy as np
import pytest
from made_faces import CARD, LENGTH, PLACES, faces, marks, source_of, train
from scipy.optimize import minimize

from dpveil.codecs import AAM, PCA, Mixture
from dpveil.codecs.aam import LEAST_AREA, Mesh
from dpveil.codecs.pca import THRESHOLD, Factors, soft, sparse
from dpveil.errors import InvalidParameter
from dpveil.noise.bits import SeededBits
from dpveil_train import mixture as training
from dpveil_train import train_aam


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


def test_components_are_orthonormal_and_in_order(crops):
    codec = train(PCA, source_of(crops), length=8)
    assert np.allclose(codec.components @ codec.components.T, np.eye(8), atol=2e-3)
    assert np.allclose(codec.statistics.column_energy, 1, atol=2e-3)
    spread = codec.encode(crops).var(axis=0)
    assert np.all(np.diff(spread) <= 1e-3 * spread[0])
    assert np.all(codec.components.sum(axis=1) >= -1e-3)  # the sign is ours to choose, and chosen


def test_directions_without_variance_are_refused():
    rng = np.random.default_rng(1)
    two = rng.integers(0, 50, (2, 6, 5, 1))
    crops = (130 + rng.integers(-1, 2, (30, 2)) @ two.reshape(2, -1)).reshape(30, 6, 5, 1).astype(np.uint8)
    assert train(PCA, source_of(crops), length=2).length == 2
    with pytest.raises(InvalidParameter, match="more than the 2 directions"):
        train(PCA, source_of(crops), length=3)


# FaceIDP's dictionary: soft thresholds, ISTA against the optimum, and what learning gains.


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


def test_a_code_does_not_depend_on_its_neighbours(codecs, other_crops):
    """ISTA takes a fixed number of steps, so that no crop decides how far another goes."""
    codec = codecs[("dictionary", 3)]
    together = codec.encode(other_crops)
    alone = np.concatenate([codec.encode(other_crops[i : i + 1]) for i in range(len(other_crops))])
    assert np.allclose(together, alone, atol=1e-2)


def test_atoms_have_norm_one(codecs):
    assert np.allclose(codecs[("dictionary", 3)].statistics.column_energy, 1, atol=2e-3)
    assert np.allclose(codecs[("dictionary", 1)].statistics.column_energy, 1, atol=2e-3)


# The mixture of factor analysers: its density, its samples, its files, and expectation maximisation.


TRUE = Factors(
    np.array([0.7, 0.3]),
    np.array([[-3.0, 0.0, 1.0, 0.0], [3.0, 2.0, -1.0, 0.0]]),
    np.array([[[2.0], [1.0], [0.0], [1.0]], [[0.0], [-1.0], [1.0], [0.5]]]),
    np.array([[0.5, 0.4, 0.3, 0.2], [0.2, 0.6, 0.4, 0.3]]),
)


def covariance(mixture: Factors, j: int) -> np.ndarray:
    return mixture.loadings[j] @ mixture.loadings[j].T + np.diag(mixture.noises[j])


def likelihood(mixture: Factors, codes: np.ndarray) -> float:
    return float(np.log(np.exp(mixture.logs(codes)).sum(axis=1)).mean())


def test_density_is_that_of_normal_distributions() -> None:
    from scipy.stats import multivariate_normal

    codes = np.random.default_rng(1).normal(0, 3, (50, 4))
    for j in range(2):
        direct = multivariate_normal(TRUE.means[j], covariance(TRUE, j)).logpdf(codes)
        assert np.allclose(TRUE.logs(codes)[:, j], direct + np.log(TRUE.weights[j]))


def test_draws_have_the_mean_and_covariance_of_the_mixture() -> None:
    codes = TRUE.draw(40_000, SeededBits(1))
    mean = TRUE.weights @ TRUE.means
    both = sum(
        w * (covariance(TRUE, j) + np.outer(m, m))
        for j, (w, m) in enumerate(zip(TRUE.weights, TRUE.means, strict=True))
    )
    assert np.allclose(codes.mean(axis=0), mean, atol=0.1)
    assert np.allclose(np.cov(codes.T), both - np.outer(mean, mean), atol=0.25)
    assert abs((TRUE.logs(codes).argmax(axis=1) == 0).mean() - 0.7) < 0.02
    assert np.array_equal(codes, TRUE.draw(40_000, SeededBits(1)))
    with pytest.raises(InvalidParameter, match="count"):
        TRUE.draw(0, SeededBits(1))


def test_expectation_maximisation_finds_the_mixture() -> None:
    codes = TRUE.draw(6000, SeededBits(2))
    found = training.fit_mixture(codes, 2, 1, seed=3)
    assert likelihood(found, codes) > likelihood(TRUE, codes) - 1e-3
    order = np.argsort(found.means[:, 0])
    assert np.allclose(found.weights[order], TRUE.weights, atol=0.03)
    assert np.allclose(found.means[order], TRUE.means, atol=0.15)
    for j, place in enumerate(order):
        assert np.allclose(covariance(found, place), covariance(TRUE, j), atol=0.3)


def test_codes_and_crops_are_those_of_eigenfaces(crops: np.ndarray) -> None:
    mixture, pca = train(Mixture, source_of(crops)), train(PCA, source_of(crops))
    codes = mixture.encode(crops[:5])
    assert np.array_equal(codes, pca.encode(crops[:5]))
    assert np.array_equal(mixture.decode(codes), pca.decode(codes))
    assert mixture.likely
    assert mixture.prior is mixture.factors
    assert pca.prior is None


# Meshes: two maps that undo each other, exactly, and shapes that never fold.


HEIGHT, WIDTH = 30, 36


@pytest.fixture
def mesh():
    angle = np.arange(14) * (2 * np.pi / 14)
    size = np.where(np.arange(14) % 2, 7.0, 12.0)
    rest = np.stack([18 + size * np.cos(angle), 15 + 0.9 * size * np.sin(angle)], axis=1)
    return Mesh.over(rest, HEIGHT, WIDTH)


def shapes(mesh, count, size, seed=1):
    return mesh.rest + np.random.default_rng(seed).normal(0, size, (count, *mesh.rest.shape))


def test_landmarks_go_to_their_places_and_the_border_stays(mesh):
    some = mesh.make_valid(shapes(mesh, 5, 1))
    assert np.allclose(mesh.map_points(some, mesh.weights(mesh.rest)), some)
    edge = np.array([[-5.9, -5.0], [40.9, 33.9]])  # the corners of the border, 0.15 of the sides away
    assert np.allclose(mesh.map_points(some, mesh.weights(edge)), edge, atol=0.1)


@pytest.mark.parametrize("size", [0.5, 2, 8, 100])
def test_both_maps_undo_each_other_at_every_pixel(mesh, size):
    """Where a pixel of a shape's picture comes from, moved forward again, is that pixel: all are covered."""
    for shape in mesh.make_valid(shapes(mesh, 6, size)):
        sources = mesh._sources(shape)
        back = mesh.map_points(shape[None], mesh.weights(sources))[0]
        assert np.allclose(back, mesh.pixels, atol=1e-6)


def test_sound_shapes_are_left_alone_and_others_are_moved_no_more_than_needed(mesh):
    small = shapes(mesh, 20, 0.1)
    assert np.allclose(mesh.make_valid(small), small)
    wild = shapes(mesh, 20, 4)
    wild = wild[mesh.areas(wild).min(axis=1) < 0]
    kept = mesh.make_valid(wild)
    ratio = (mesh.areas(kept) / mesh.areas(mesh.rest[None])).min(axis=1)
    assert len(wild) > 5
    assert np.allclose(ratio, LEAST_AREA, atol=1e-6)  # drawn back until the worst triangle just passes
    turn = (kept - mesh.rest) / (wild - mesh.rest)
    assert np.allclose(turn, turn[:, :1, :1], atol=1e-6)


# Active appearance models: shapes that are planted are found again, and textures do not bypass the
# code.


CANVAS = (32, 28, 3)


@pytest.fixture(scope="module")
def model():
    """A model of faces large enough to have a shape: 3 coordinates of it, 21 of texture."""
    return train(AAM, source_of(faces(160, seed=5, canvas=CANVAS)), length=24)


def test_shape_moves_the_picture_and_texture_does_not(model):
    """Of a mean face, decoded: along the first component of shape the eyes go where the landmarks go."""
    box = model.statistics.bounds()
    codes = np.zeros((2, model.length))
    codes[:, 0] = box.low[0] / 2, box.high[0] / 2
    seen = model.decode(codes)
    shapes = model.space.shapes(codes[:, : model.of_shape])
    again = model.space.shapes(model.encode(seen)[:, : model.of_shape])
    planted, found = shapes[1] - shapes[0], again[1] - again[0]
    assert np.sqrt(((planted - found) ** 2).mean()) < 0.35 * np.sqrt((planted**2).mean())


def test_column_energy_of_shape_is_its_linearisation_at_the_mean_face(model):
    """Against differences of the decoder, whose levels are whole numbers: a fifth, for interpolation."""
    box = model.statistics.bounds()
    for m in range(model.of_shape):
        step = np.zeros((2, model.length))
        step[:, m] = np.array([-1, 1]) * min(-box.low[m], box.high[m]) / 3
        a, b = model.decode(step).astype(float)
        added = (np.sum((a - b) ** 2) - a.size / 6) / np.ptp(step[:, m]) ** 2
        assert added == pytest.approx(model.statistics.column_energy[m], rel=0.2)


def test_crops_without_sure_landmarks_are_left_out():
    crops = faces(30, seed=5)
    wild = np.random.default_rng(1).integers(0, 256, (20, *crops.shape[1:])).astype(np.uint8)
    mixed = np.concatenate([crops[:15], wild, crops[15:]])

    def unsure(batch):
        known = [crop.tobytes() in PLACES for crop in batch[..., 1]]
        found = np.full((len(batch), 21, 2), np.nan)
        if any(known):
            found[known] = marks(batch[known])
        return found

    kind = {"card": CARD, "seed": 3, "length": LENGTH}
    model = train_aam(source_of(mixed, 16), landmarks=unsure, **kind)
    plain = train_aam(source_of(crops, 16), landmarks=marks, **kind)
    assert model.card.settings["images_with_landmarks"] == 30
    assert np.allclose(model.space.mesh.rest, plain.space.mesh.rest)
    assert np.allclose(model.statistics.quantiles, plain.statistics.quantiles, rtol=1e-2, atol=0.5)


def test_shapes_that_do_not_vary_are_refused(crops):
    with pytest.raises(InvalidParameter, match="length = 8 asks for 1 components of shape"):
        train(AAM, source_of(crops), landmarks=lambda batch: np.repeat(marks(crops[:1]), len(batch), axis=0))
    with pytest.raises(InvalidParameter, match="length = 1 is too short"):
        train(AAM, source_of(crops), length=1)


# k-means against groups that are far apart.


@pytest.mark.parametrize("uniform", [[0.1, 0.5, 0.5], [0.99, 0.001, 0.999]])
def test_clusters_find_groups_that_are_apart(uniform):
    rows = np.concatenate([np.random.default_rng(n).normal(20 * n, 1, (50, 3)) for n in range(3)])
    centres, chosen = training.clusters(rows, np.array(uniform))
    assert sorted(np.bincount(chosen).tolist()) == [50, 50, 50]
    assert np.allclose(np.sort(centres[:, 0]), [0, 20, 40], atol=1)
    assert np.allclose(
        centres[chosen], np.repeat([rows[:50].mean(0), rows[50:100].mean(0), rows[100:].mean(0)], 50, 0)
    )
