"""Training of a mixture of factor analysers on codes of eigenfaces, by expectation maximisation."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Final

import numpy as np
from jaxtyping import Float64, Int64

from dpveil.assets.model_cards import Card
from dpveil.codecs.pca import NAMES, Factors, Mixture
from dpveil.codecs.statistics import Codes
from dpveil.noise.bits import SeededBits, uniforms
from dpveil_train import pca
from dpveil_train.order import Source

PASSES: Final = pca.PASSES + 1  # passes over the training crops
ROUNDS: Final = 60  # rounds of expectation maximisation, on codes in memory
COMPONENTS: Final = 12  # most components
FACTORS: Final = 40  # most factors of a component
CROWD: Final = 40  # least number of faces for each component, so that none is about few people
FLOOR: Final = 0.02  # least noise variance of a coordinate, relative to its variance over all codes
LLOYD: Final = 12  # rounds of k-means
SETTLED: Final = 20  # last rounds, in which no component is seeded again


def train_mixture(
    source: Source,
    *,
    card: Card,
    seed: int,
    length: int = 100,
    step: Callable[[], None] = lambda: None,
) -> Mixture:
    """Return eigenfaces with a mixture of factor analysers of their codes.

    Makes `PASSES` passes over `source`, with memory for what `train_pca` needs and all codes; `step` is
    called after each of `ROUNDS` rounds on them. Raises `InvalidParameter` as `train_pca`. Source: Richardson
    & Weiss 2018; Ghahramani & Hinton 1996.
    """
    own = pca.train_pca(source, card=card, seed=seed, length=length)
    codes = np.concatenate([own.encode(crops) for crops in source()])
    components = min(COMPONENTS, max(1, len(codes) // CROWD))
    factors = min(FACTORS, length - 1)
    mixture = fit_mixture(codes, components, factors, seed=seed, step=step).as_float32()
    card = replace(card, settings={**card.settings, "components": components, "factors": factors})
    return Mixture(own.mean, own.components, own.statistics, own.canvas, card, mixture)


def fit_mixture(
    codes: Codes,
    components: int,
    factors: int,
    *,
    seed: int,
    rounds: int = ROUNDS,
    step: Callable[[], None] = lambda: None,
) -> Factors:
    """Return a mixture of as many components, of as many factors each, after `rounds` rounds.

    Components that hold fewer than `CROWD` codes are seeded again, until the last `SETTLED` rounds.
    """
    floor = FLOOR * codes.var(axis=0)
    mixture = start(codes, components, factors, floor, seed)
    for number in range(rounds):
        mixture, held = round_of(mixture, codes, floor)
        if number < rounds - SETTLED:
            mixture = seeded_again(mixture, held)
        step()
    return mixture


def round_of(
    mixture: Factors, codes: Codes, floor: Float64[np.ndarray, " m"]
) -> tuple[Factors, Float64[np.ndarray, " k"]]:
    """Return the mixture after one round, and how many codes each component holds.

    The likelihood of the codes never falls: weights and means become the best for the responsibilities, and
    then one step of expectation maximisation improves each factor analyser. Noise variances stay above
    `floor`. Components that hold less than one code are left as they are.
    """
    logs = mixture.logs(codes)
    shares = np.exp(logs - logs.max(axis=1, keepdims=True))
    shares /= shares.sum(axis=1, keepdims=True)
    held = shares.sum(axis=0)
    means, loadings, noises = mixture.means.copy(), mixture.loadings.copy(), mixture.noises.copy()
    for j in np.flatnonzero(held >= 1):
        means[j] = shares[:, j] @ codes / held[j]
        away = codes - means[j]
        scatter = (away * (shares[:, j] / held[j])[:, None]).T @ away
        loadings[j], noises[j] = factor_step(scatter, loadings[j], noises[j], floor)
    weights = np.maximum(held, np.finfo(float).tiny) / held.sum()
    return Factors(weights, means, loadings, noises), held


def factor_step(
    scatter: Float64[np.ndarray, "m m"],
    loadings: Float64[np.ndarray, "m q"],
    noises: Float64[np.ndarray, " m"],
    floor: Float64[np.ndarray, " m"],
) -> tuple[Float64[np.ndarray, "m q"], Float64[np.ndarray, " m"]]:
    """Return loadings and noise variances after one step for codes of this covariance.

    Source: Rubin & Thayer 1982; Ghahramani & Hinton 1996 §2.
    """
    q = loadings.shape[1]
    scaled = loadings / noises[:, None]
    inner = np.linalg.inv(np.eye(q) + loadings.T @ scaled)
    guess = inner @ scaled.T  # E[x | z] = guess · (z - mean)
    both = scatter @ guess.T
    found = both @ np.linalg.inv(inner + guess @ both)
    return found, np.maximum(np.diag(scatter) - (found * both).sum(axis=1), floor)


def seeded_again(mixture: Factors, held: Float64[np.ndarray, " k"]) -> Factors:
    """Return the mixture, where each component of fewer than `CROWD` codes is now half of the largest one.

    The halves lie apart along the first factor, or along the coordinates' deviations without one.
    """
    weights, means, loadings, noises = (getattr(mixture, name).copy() for name in NAMES)
    for j in np.flatnonzero(held < CROWD):
        if (big := int(np.argmax(weights))) == j:
            continue
        along = loadings[big, :, 0] if loadings.shape[2] else np.sqrt(noises[big])
        loadings[j], noises[j] = loadings[big], noises[big]
        means[j], means[big] = means[big] + along / 2, means[big] - along / 2
        weights[big] = weights[j] = weights[big] / 2
    return Factors(weights / weights.sum(), means, loadings, noises)


def start(
    codes: Codes, components: int, factors: int, floor: Float64[np.ndarray, " m"], seed: int
) -> Factors:
    """Return a start: the clusters of k-means, each with the leading components of its own codes."""
    centres, chosen = clusters(codes, uniforms(components, SeededBits(seed, "clusters")))
    m = codes.shape[1]
    loadings, noises = np.zeros((components, m, factors)), np.tile(codes.var(axis=0), (components, 1))
    for j in range(components):
        own = codes[chosen == j]
        if len(own) <= max(factors, 1):
            continue
        values, turn = np.linalg.eigh(np.cov(own.T, bias=True).reshape(m, m))
        rest = float(values[: m - factors].mean()) if factors < m else 0.0
        leading = np.sqrt(np.maximum(values[m - factors :] - rest, 0))
        loadings[j] = (turn[:, m - factors :] * leading)[:, ::-1]
        noises[j] = np.maximum(own.var(axis=0) - (loadings[j] ** 2).sum(axis=1), floor)
    held = np.bincount(chosen, minlength=components) + 1.0
    return Factors(held / held.sum(), centres, loadings, np.maximum(noises, floor))


def clusters(
    rows: Codes, uniform: Float64[np.ndarray, " k"], rounds: int = LLOYD
) -> tuple[Codes, Int64[np.ndarray, " n"]]:
    """Return the centres of as many clusters as `uniform` has numbers (0 to 1), and the cluster of each row.

    The start is k-means++ (Arthur & Vassilvitskii 2007), drawn by `uniform`. Centres without rows stay.
    """
    centres = rows[[int(uniform[0] * len(rows))]]
    far = squares(rows, centres)[:, 0]
    for number in uniform[1:]:
        total = np.cumsum(far)
        place = int(np.searchsorted(total, number * total[-1]))
        centres = np.concatenate([centres, rows[[min(place, len(rows) - 1)]]])
        far = np.minimum(far, squares(rows, centres[-1:])[:, 0])
    for _ in range(rounds):
        chosen = squares(rows, centres).argmin(axis=1)
        for j in np.unique(chosen):
            centres[j] = rows[chosen == j].mean(axis=0)
    return centres, squares(rows, centres).argmin(axis=1)


def squares(rows: Codes, centres: Codes) -> Float64[np.ndarray, "n k"]:
    norms = (rows**2).sum(axis=1)[:, None] + (centres**2).sum(axis=1)
    return np.asarray(np.maximum(norms - 2 * rows @ centres.T, 0))
