"""Likely codes under a mixture of factor analysers: a draw from what a private code says of the original.

Noise is independent in each coordinate and not normal, so the posterior distribution has no closed form. Here
a component and its factors are drawn with the likelihood of each coordinate replaced by a normal one of the
same effect (assumed density filtering: Minka 2001), and coordinates, which are independent given these,
exactly on a grid. With one component and no factors this is `posterior.likely`.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from dpveil.codecs.pca import Factors
from dpveil.core.array_types import Float64, Int64
from dpveil.mechanisms.latent.base import Codes, CodeSpace, LatentMechanism
from dpveil.mechanisms.latent.posterior import GRID, Law, drawn_on
from dpveil.noise.bits import BitSource, normals, uniforms

TOGETHER: Final = 32  # codes drawn at a time
SWEEPS: Final = 4  # rounds of Gibbs sampling of coordinates and factors
NOTHING: Final = 1e-280  # probability below which a component cannot have made what is seen in a coordinate


class Seen(NamedTuple):
    """What private codes say: the logarithm of each coordinate's likelihood at `where`, at most 0."""

    where: Float64[np.ndarray, "m g"]
    logs: Float64[np.ndarray, "n m g"]


class Sites(NamedTuple):
    """Normal likelihoods exp(-precision·u²/2 + slope·u) of u = z - mean; `log` is of what they leave out."""

    precision: Float64[np.ndarray, "n m"]
    slope: Float64[np.ndarray, "n m"]
    log: Float64[np.ndarray, " n"]


def likely_in(
    prior: Factors, codes: Codes, mechanism: LatentMechanism, space: CodeSpace, *, bits: BitSource
) -> Codes:
    """Return a draw from the posterior distribution of the original code, for every private code.

    `codes` (n × m) are those that `mechanism` released, and `prior` is how public codes are distributed. What
    was clipped before noise was added may come back: draws are in the box of all public codes. Codes are
    returned as they are if the mechanism states no noise.

    *Why it costs nothing.* Only the private codes are read, and `bits` that are used for nothing else. ∎
    """
    laws = mechanism.laws(space)
    if laws is None:
        return codes
    parts = [
        _draw_codes(prior, seen_of(codes[at : at + TOGETHER], laws, mechanism, space), bits)
        for at in range(0, len(codes), TOGETHER)
    ]
    return np.concatenate([*parts, codes[:0]])


def seen_of(codes: Codes, laws: tuple[Law, ...], mechanism: LatentMechanism, space: CodeSpace) -> Seen:
    """Return the likelihood of every coordinate on a grid over the box of all public codes."""
    box, whole = space.bounds(mechanism.clip), space.bounds(0)
    where = whole.low[:, None] + (whole.high - whole.low)[:, None] * np.linspace(0, 1, GRID)
    width = box.high - box.low
    inside = np.clip((where - box.low[:, None]) / width[:, None], 0, 1)
    seen = (codes - box.low) / width
    logs = np.stack([law.logs(seen[:, [i]], inside[i]) for i, law in enumerate(laws)], axis=1)
    return Seen(where, logs - logs.max(axis=2, keepdims=True))


def _draw_codes(prior: Factors, seen: Seen, bits: BitSource) -> Codes:
    sites = [sites_of(prior, j, seen) for j in range(len(prior.weights))]
    joint = [posterior_of(prior, j, one) for j, one in enumerate(sites)]
    logs = np.log(prior.weights) + np.stack([one[2] for one in joint], axis=1)
    shares = np.cumsum(np.exp(logs - logs.max(axis=1, keepdims=True)), axis=1)
    count, m, q = len(logs), *prior.loadings.shape[1:]
    chosen = (shares < (uniforms(count, bits) * shares[:, -1])[:, None]).sum(axis=1)
    middle = np.stack([joint[j][0][n] for n, j in enumerate(chosen)])
    spread = np.stack([joint[j][1][n] for n, j in enumerate(chosen)])
    factors = middle + np.einsum("nab,nb->na", spread, normals(count * q, bits).reshape(count, q))
    codes = np.empty((count, m))
    for sweep in range(SWEEPS):
        if sweep:
            factors = factors_of(prior, chosen, codes, normals(count * q, bits).reshape(count, q))
        centre = prior.means[chosen] + np.einsum("nmq,nq->nm", prior.loadings[chosen], factors)
        logs = -0.5 * (seen.where - centre[:, :, None]) ** 2 / prior.noises[chosen][:, :, None] + seen.logs
        places = drawn_on(logs.reshape(count * m, GRID), uniforms(count * m, bits)).reshape(count, m)
        codes = seen.where[:, 0] + (seen.where[:, -1] - seen.where[:, 0]) * places
    return np.asarray(codes)


def sites_of(prior: Factors, j: int, seen: Seen) -> Sites:
    """Return normal likelihoods that give component j the means and variances that follow from `seen`."""
    mean, variance = prior.means[j], prior.variances[j]
    away = seen.where - mean[:, None]
    step = away[:, 1] - away[:, 0]
    own = np.exp(-0.5 * away**2 / variance[:, None]) * (step / np.sqrt(2 * np.pi * variance))[:, None]
    powers = np.stack([own, own * away, own * away**2], axis=2)
    sums = np.exp(seen.logs).transpose(1, 0, 2) @ powers  # m × n × 3
    total, first, second = (sums[:, :, part].T for part in range(3))
    known = total > NOTHING
    total = np.where(known, total, 1.0)
    middle = first / total
    left = np.maximum(second / total - middle**2, step**2 / 12)
    precision = np.where(known, np.maximum(1 / left - 1 / variance, 0), 0)
    slope = np.where(known, middle * (1 / variance + precision), 0)
    grown = 1 + precision * variance
    log = np.where(known, np.log(total), np.log(NOTHING)) + 0.5 * np.log(grown)
    return Sites(precision, slope, (log - 0.5 * slope**2 * variance / grown).sum(axis=1))


def posterior_of(
    prior: Factors, j: int, sites: Sites
) -> tuple[Float64[np.ndarray, "n q"], Float64[np.ndarray, "n q q"], Float64[np.ndarray, " n"]]:
    """Return the mean of component j's factors, a root of their covariance, and j's log-likelihood."""
    loadings, noises = prior.loadings[j], prior.noises[j]
    m, q = loadings.shape
    grown = 1 + sites.precision * noises
    squares = (loadings[:, :, None] * loadings[:, None, :]).reshape(m, q * q)
    inner = np.eye(q) + ((sites.precision / grown) @ squares).reshape(-1, q, q)
    right = (sites.slope / grown) @ loadings
    root = np.linalg.cholesky(inner)
    back = np.linalg.inv(root)  # lower triangle; inner⁻¹ = backᵀ · back
    half = np.einsum("nab,nb->na", back, right)
    log = sites.log + 0.5 * (half**2).sum(axis=1) + 0.5 * (sites.slope**2 * noises / grown).sum(axis=1)
    log -= 0.5 * np.log(grown).sum(axis=1) + np.log(np.diagonal(root, axis1=1, axis2=2)).sum(axis=1)
    return np.einsum("nba,nb->na", back, half), back.transpose(0, 2, 1), log


def factors_of(
    prior: Factors, chosen: Int64[np.ndarray, " n"], codes: Codes, normal: Float64[np.ndarray, "n q"]
) -> Float64[np.ndarray, "n q"]:
    """Return factors drawn given components and codes."""
    q = prior.loadings.shape[2]
    out = np.empty_like(normal)
    for j in np.unique(chosen):
        own = chosen == j
        scaled = prior.loadings[j] / prior.noises[j][:, None]
        inner = np.linalg.inv(np.eye(q) + prior.loadings[j].T @ scaled)
        middle = (codes[own] - prior.means[j]) @ scaled @ inner
        out[own] = middle + normal[own] @ np.linalg.cholesky(inner).T
    return out
