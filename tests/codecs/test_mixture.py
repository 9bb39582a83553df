"""The mixture of factor analysers: its density, its samples, its files, and expectation maximisation."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from made_faces import faces, source_of, train

from dpveil.assets import save
from dpveil.codecs import PCA, Mixture, load
from dpveil.codecs.pca import Factors
from dpveil.errors import InvalidParameter, ModelError
from dpveil.noise.bits import SeededBits
from dpveil_train import mixture as training

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
    found = training.fitted(codes, 2, 1, seed=3)
    assert likelihood(found, codes) > likelihood(TRUE, codes) - 1e-3
    order = np.argsort(found.means[:, 0])
    assert np.allclose(found.weights[order], TRUE.weights, atol=0.03)
    assert np.allclose(found.means[order], TRUE.means, atol=0.15)
    for j, place in enumerate(order):
        assert np.allclose(covariance(found, place), covariance(TRUE, j), atol=0.3)


def test_likelihood_never_falls() -> None:
    rng = np.random.default_rng(4)
    codes = rng.standard_t(3, (400, 6)) * np.arange(1, 7)
    floor = training.FLOOR * codes.var(axis=0)
    mixture = training.start(codes, 3, 2, floor, 1)
    last = likelihood(mixture, codes)
    for _ in range(30):
        mixture, held = training.round_of(mixture, codes, floor)
        now = likelihood(mixture, codes)
        assert now >= last - 1e-9
        assert (mixture.noises >= floor).all()
        assert abs(held.sum() - 400) < 1e-6
        last = now


def test_one_component_is_factor_analysis() -> None:
    """Its optimum has the variances of the codes, and no gradient is left: the diagonal of Σ⁻¹(S - Σ)Σ⁻¹."""
    codes = TRUE.draw(3000, SeededBits(5))
    found = training.fitted(codes, 1, 1, seed=1, rounds=1500)
    scatter, own = np.cov(codes.T, bias=True), covariance(found, 0)
    inverse = np.linalg.inv(own)
    left = inverse @ (scatter - own) @ inverse
    assert np.abs(np.diag(left)).max() < 1e-3
    assert np.abs(left @ found.loadings[0]).max() < 1e-3


def test_codes_and_crops_are_those_of_eigenfaces(crops: np.ndarray) -> None:
    mixture, pca = train(Mixture, source_of(crops)), train(PCA, source_of(crops))
    codes = mixture.encode(crops[:5])
    assert np.array_equal(codes, pca.encode(crops[:5]))
    assert np.array_equal(mixture.decode(codes), pca.decode(codes))
    assert mixture.likely
    assert mixture.prior is mixture.factors
    assert pca.prior is None


def test_a_normal_distribution_has_the_moments_of_its_codes() -> None:
    codes = np.random.default_rng(5).normal(0, 1, (400, 6)) @ np.triu(np.ones((6, 6))) + 3
    whole, few = Factors.normal(codes, 6), Factors.normal(codes, 2)
    covariance = np.cov(codes.T, bias=True)
    assert np.allclose(whole.loadings[0] @ whole.loadings[0].T, covariance, atol=1e-6)
    for one in (whole, few):
        assert np.allclose(one.means[0], codes.mean(axis=0))
        assert np.allclose(one.variances[0], np.diag(covariance), atol=1e-6)
    assert few.loadings.shape == (1, 6, 2)
    left = np.abs(covariance - few.loadings[0] @ few.loadings[0].T - np.diag(few.noises[0])).max()
    assert 0 < left < 0.2 * np.abs(covariance).max()


def test_samples_are_like_faces_and_none_of_them(crops: np.ndarray) -> None:
    codec = train(Mixture, source_of(crops))
    made = codec.samples(300, SeededBits(1))
    assert made.shape == (300, *codec.canvas)
    assert np.abs(made.mean(axis=0) - crops.mean(axis=0)).mean() < 6
    codes, public = codec.encode(made), codec.encode(crops)
    assert np.allclose(codes.std(axis=0), public.std(axis=0), rtol=0.35)
    assert np.abs(made[:, None].astype(int) - faces(20, seed=1)[None]).mean(axis=(2, 3, 4)).min() > 1


@pytest.mark.parametrize(
    ("name", "change", "words"),
    [
        ("weights", lambda one: -one, "weights"),
        ("weights", lambda one: one * 2, "weights"),
        ("weights", lambda one: one * np.nan, "weights"),
        ("weights", lambda one: one[:1].repeat(300) / 300, "does not fit"),
        ("means", lambda one: one[:, :-1], "does not fit"),
        ("means", lambda one: one * np.inf, "not finite"),
        ("means", lambda one: one + 1e7, "not finite"),
        ("loadings", lambda one: one[:, :, :, None], "does not fit"),
        ("loadings", lambda one: np.full_like(one, 1e30), "not finite"),
        ("loadings", lambda one: np.zeros((len(one), one.shape[1], 65)), "more than"),
        ("noises", lambda one: one * 0, "not above 0"),
        ("noises", lambda one: one * np.nan, "not above 0|not finite"),
        ("noises", lambda one: one[0], "does not fit"),
    ],
)
def test_hostile_mixtures_are_refused(crops, tmp_path: Path, name: str, change, words: str) -> None:  # type: ignore[no-untyped-def]
    codec = train(Mixture, source_of(crops))
    arrays = {**codec.tensors()}
    arrays[name] = change(arrays[name])

    class Forged(Mixture):
        def tensors(self) -> dict[str, np.ndarray]:
            return arrays

    own = (codec.mean, codec.components, codec.factors, codec.statistics, codec.canvas, codec.card)
    save(Forged(*own), tmp_path / "a.safetensors")
    with pytest.raises(ModelError, match=words) as refused:
        load(tmp_path / "a.safetensors")
    assert "\n" not in str(refused.value)
