"""Likely codes under a mixture: draws from the posterior, checked against simulated pairs of codes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from test_posterior import MECHANISMS

from dpveil.codecs.pca import Factors
from dpveil.codecs.statistics import Bounds
from dpveil.mechanisms.latent import BoxTruncatedLaplace, Directional
from dpveil.mechanisms.latent.base import LatentMechanism
from dpveil.mechanisms.latent.mixtures import Seen, likely_in, posterior_of, sites_of
from dpveil.noise.bits import SeededBits

COUNT = 4000
PRIOR = Factors(
    np.array([0.6, 0.4]),
    np.array([[-1.0, 0.5, 0.0], [1.5, -0.5, 0.0]]),
    np.array([[[0.3], [0.5], [0.4]], [[0.5], [-0.4], [0.0]]]),
    np.array([[0.1, 0.1, 0.1], [0.2, 0.1, 0.3]]),
)


@dataclass(frozen=True)
class Space:
    """A box that holds the mixture."""

    length: int = 3

    @property
    def column_energy(self) -> np.ndarray:
        return np.ones(3)

    @property
    def deviations(self) -> np.ndarray:
        return np.sqrt(PRIOR.weights @ (PRIOR.variances + PRIOR.means**2))

    def bounds(self, clip: object = 0) -> Bounds:
        return (
            Bounds(np.full(3, -5.0), np.full(3, 5.0)) if clip == 0 else Bounds(np.full(3, -1.0), np.ones(3))
        )

    def radius(self, clip: object = 0) -> float:
        return 0.5


@pytest.mark.parametrize("clip", [0, 10])
@pytest.mark.parametrize("mechanism", MECHANISMS, ids=lambda one: f"{one.name}")
def test_draws_and_private_codes_are_distributed_as_originals_and_they_are(
    mechanism: LatentMechanism, clip: int
) -> None:
    """Means, covariances with the private code, and shares of components; draws are no copies of either."""
    from dataclasses import replace

    mechanism, space = replace(mechanism, clip=clip), Space()
    real = PRIOR.draw(COUNT, SeededBits(1))
    private = mechanism.release(real, space, bits=SeededBits(2))
    drawn = likely_in(PRIOR, private, mechanism, space, bits=SeededBits(3))
    error = 9 / np.sqrt(COUNT)
    assert np.abs(real.mean(axis=0) - drawn.mean(axis=0)).max() < error
    assert np.abs(np.cov(real.T) - np.cov(drawn.T)).max() < 2 * error
    seen = (private - private.mean(axis=0)) / np.maximum(private.std(axis=0), 1e-9)
    both = [one.T @ seen / COUNT for one in (real - real.mean(axis=0), drawn - drawn.mean(axis=0))]
    assert np.abs(both[0] - both[1]).max() < 1.5 * error
    parts = [PRIOR.logs(one).argmax(axis=1).mean() for one in (real, drawn)]
    assert abs(parts[0] - parts[1]) < error


def test_a_large_budget_leaves_the_code() -> None:
    space, real = Space(), PRIOR.draw(50, SeededBits(1))
    mechanism = BoxTruncatedLaplace(epsilon=100_000)
    private = mechanism.release(real, space, bits=SeededBits(1))
    assert np.abs(likely_in(PRIOR, private, mechanism, space, bits=SeededBits(2)) - private).max() < 10 / 128


def test_only_the_private_code_and_the_bits_count() -> None:
    space, mechanism = Space(), BoxTruncatedLaplace(epsilon=2)
    private = PRIOR.draw(40, SeededBits(1))
    first = likely_in(PRIOR, private, mechanism, space, bits=SeededBits(2))
    assert (likely_in(PRIOR, private.copy(), mechanism, space, bits=SeededBits(2)) == first).all()
    assert (likely_in(PRIOR, private, mechanism, space, bits=SeededBits(3)) != first).all()
    assert likely_in(PRIOR, private, Directional(epsilon=5), space, bits=SeededBits(2)) is private
    assert likely_in(PRIOR, private[:0], mechanism, space, bits=SeededBits(2)).shape == (0, 3)


def test_normal_noise_gives_the_posterior_in_closed_form() -> None:
    """Of components up to a factor that they share, and of the factors of each."""
    from scipy.stats import multivariate_normal

    seen, noise = np.array([[0.4, -0.2, 0.3], [-0.9, 1.0, -0.5]]), np.array([0.4, 0.9, 0.2])
    where = np.tile(np.linspace(-8, 8, 4001), (3, 1))
    logs = -0.5 * (seen[:, :, None] - where) ** 2 / noise[:, None]
    left = []
    for j in range(2):
        middle, root, log = posterior_of(PRIOR, j, sites_of(PRIOR, j, Seen(where, logs)))
        loadings, own = PRIOR.loadings[j], np.diag(PRIOR.noises[j] + noise)
        whole = loadings @ loadings.T + own
        left.append(log - multivariate_normal(PRIOR.means[j], whole).logpdf(seen))
        gain = loadings.T @ np.linalg.inv(whole)
        assert np.allclose(middle, (seen - PRIOR.means[j]) @ gain.T, atol=1e-4)
        assert np.allclose(root @ root.transpose(0, 2, 1), np.eye(1) - gain @ loadings, atol=1e-4)
    assert np.ptp(left) < 1e-3
