"""Likely codes: a draw from the posterior, checked against simulated pairs of codes and private codes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from dpveil.codecs.statistics import Bounds
from dpveil.core.registry import LATENT
from dpveil.mechanisms.latent import (
    BoxGaussian,
    BoxLaplace,
    BoxTruncatedLaplace,
    CroftMetric,
    Directional,
    PCABasis,
)
from dpveil.mechanisms.latent.base import LatentMechanism
from dpveil.mechanisms.latent.posterior import Law, likely
from dpveil.noise.bits import SeededBits

SPREAD = np.array([1.0, 1.0, 0.5])
COUNT = 4000


@dataclass(frozen=True)
class Space:
    """Three coordinates in a box of two deviations on each side, but for a lopsided one."""

    length: int = 3
    known: bool = True

    @property
    def column_energy(self) -> np.ndarray:
        return np.ones(3)

    @property
    def deviations(self) -> np.ndarray | None:
        return SPREAD if self.known else None

    def bounds(self, clip: object = 0) -> Bounds:
        return Bounds(np.array([-2.0, -1.0, -1.0]), np.array([2.0, 3.0, 1.0]))

    def radius(self, clip: object = 0) -> float:
        return 0.5


def originals() -> np.ndarray:
    """Return codes whose coordinates are normal within the box."""
    rng, box = np.random.default_rng(5), Space().bounds()
    many = rng.normal(0, SPREAD, (12 * COUNT, 3))
    inside = ((many > box.low) & (many < box.high)).all(axis=1)
    return many[inside][:COUNT]


MECHANISMS = [
    BoxTruncatedLaplace(epsilon=2),
    BoxTruncatedLaplace(epsilon=40),
    BoxLaplace(epsilon=6),
    BoxGaussian(rho=2),
    CroftMetric(epsilon=6),
    PCABasis(epsilon=12),
]


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=lambda one: f"{one.name}")
def test_draws_are_distributed_like_originals_and_with_the_private_code_alike(
    mechanism: LatentMechanism,
) -> None:
    """For draws from a posterior, (draw, private code) is distributed as (original, private code) is.

    Means, deviations and correlations agree to six standard errors of 4000 pairs.
    """
    space, real = Space(), originals()
    private = mechanism.release(real, space, bits=SeededBits(1))
    drawn = likely(private, mechanism, space, bits=SeededBits(2))
    error = 6 / np.sqrt(COUNT)
    for column in range(3):
        one, two = real[:, column] / SPREAD[column], drawn[:, column] / SPREAD[column]
        assert abs(one.mean() - two.mean()) < 1.5 * error
        assert abs(one.std() - two.std()) < 1.5 * error
        seen = private[:, column]
        if seen.std() > 0:
            both = [np.corrcoef(values, seen)[0, 1] for values in (one, two)]
            assert abs(both[0] - both[1]) < 1.5 * error
    box = space.bounds()
    assert (drawn >= box.low).all()
    assert (drawn <= box.high).all()


def test_a_large_budget_leaves_the_code() -> None:
    space, real = Space(), originals()[:50]
    mechanism = BoxTruncatedLaplace(epsilon=100_000)
    private = mechanism.release(real, space, bits=SeededBits(1))
    assert np.abs(likely(private, mechanism, space, bits=SeededBits(2)) - private).max() < 4 / 256


def test_only_the_private_code_and_the_bits_count() -> None:
    space, mechanism = Space(), BoxTruncatedLaplace(epsilon=2)
    private = originals()[:9]
    first = likely(private, mechanism, space, bits=SeededBits(2))
    assert (likely(private.copy(), mechanism, space, bits=SeededBits(2)) == first).all()
    assert (likely(private, mechanism, space, bits=SeededBits(3)) != first).all()


def test_without_deviations_or_a_known_law_codes_stay() -> None:
    private = originals()[:9]
    known, unknown = Space(), Space(known=False)
    assert likely(private, Directional(epsilon=5), known, bits=SeededBits(2)) is private
    assert likely(private, BoxLaplace(epsilon=5), unknown, bits=SeededBits(2)) is private


def test_every_mechanism_with_noise_on_coordinates_states_its_law() -> None:
    assert {type(one).name for one in MECHANISMS} == set(LATENT) - {Directional.name}


@pytest.mark.parametrize("name", ["laplace", "gaussian"])
def test_at_an_end_of_the_box_the_probability_of_the_tail_counts(name: str) -> None:
    law, at = Law(name, 0.3), np.array([0.1, 0.5, 0.9])
    (logs,) = law.logs(np.array([[1.0]]), at)
    rng = np.random.default_rng(0)
    noise = (rng.laplace if name == "laplace" else rng.normal)(0, 0.3, 1_000_000)
    wanted = np.log([(place + noise >= 1).mean() for place in at])
    assert np.abs(logs - wanted).max() < 0.05


def test_coordinates_are_drawn_with_words_of_their_own() -> None:
    """Hardly any private code says anything here: draws of two coordinates are independent of one another.

    Correlations of 4000 independent draws are beyond 0.1, 6.3 deviations, with probability below 10^-9.
    """
    codes = np.zeros((COUNT, 3))
    drawn = likely(codes, BoxTruncatedLaplace(epsilon=1e-3), Space(), bits=SeededBits(3))
    assert np.abs(np.corrcoef(drawn.T) - np.eye(3)).max() < 0.1
    assert len(np.unique(drawn[:, 0])) > COUNT // 2
