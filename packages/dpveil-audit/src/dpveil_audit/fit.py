"""Goodness of fit of integer samplers: does a sample follow its stated distribution?

Four tests on one sample, each with its own p-value, the smallest multiplied by their number (Bonferroni):
counts in 64 bins of equal probability (scale, shape), the same in as many bins as have 50 expected draws
(fine structure), exact binomial tests of the outcomes around the median (zero, where signs meet) and of
nested tails on both sides, and the extremes with impossible outcomes. No p-value is asymptotic: for a right
sampler it is at most a with probability at most a, for every a and every number of draws.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations
from typing import Final

import numpy as np
from jaxtyping import Float64, Int64, Real
from scipy import stats
from scipy.special import gammaln

from dpveil_audit.distributions import Distribution, finite_distribution

ALPHA: Final = 1e-9  # probability of rejecting a right sampler
BINS: Final = 64
MOST_BINS: Final = 4096
FEWEST_EXPECTED: Final = 50  # expected draws per bin of the fine test
CLASSES: Final = 8  # most classes of outcomes in the test of pairs
CENTRE: Final = 8  # distance from the median up to which single outcomes are tested
LOOKS: Final = 4  # number of tests
Chances = Float64[np.ndarray, "..."]
"""Probabilities of outcomes; several arrays may differ in length."""


@dataclass(frozen=True)
class Fit:
    """The verdict on one sample: a corrected `p_value` over all `parts`."""

    p_value: float
    parts: dict[str, float]

    @property
    def is_rejected(self) -> bool:
        """Whether a right sampler would be this far off with probability below alpha."""
        return self.p_value < ALPHA


def fit(samples: Int64[np.ndarray, " n"], distribution: Distribution, *, bins: int = BINS) -> Fit:
    """Return how well `samples` follow a law; a right sampler fails with probability at most `ALPHA`.

    >>> coins = np.arange(1000) % 2
    >>> fair, unfair = finite_distribution([0.5, 0.5]), finite_distribution([0.3, 0.7])
    >>> fit(coins, fair).is_rejected, fit(coins, unfair).is_rejected
    (False, True)
    """
    ordered = np.sort(samples)
    parts = {
        "coarse bins": _bins(ordered, distribution, bins),
        "fine bins": _bins(ordered, distribution, min(MOST_BINS, len(samples) // FEWEST_EXPECTED)),
        "outcomes": _outcomes(ordered, distribution),
        "extremes": _extremes(ordered, distribution),
    }
    return Fit(min(1.0, len(parts) * min(parts.values())), parts)


def fit_pairs(samples: Int64[np.ndarray, " n"], distribution: Distribution) -> Fit:
    """Return how well successive draws follow `distribution` independently, which detects reused noise."""
    pairs = samples[: len(samples) // 2 * 2].reshape(-1, 2)
    inner, mass = _pool(distribution, CLASSES, least=1 / (2 * CLASSES))
    classes = np.searchsorted(inner, pairs)
    codes = (classes[:, 0] * len(mass) + classes[:, 1]).ravel().astype(np.int64)
    both = distribution.once("pairs", lambda: finite_distribution(np.outer(mass, mass).ravel()))
    return fit(codes, both, bins=MOST_BINS)


def _pool(
    distribution: Distribution, bins: int, least: float
) -> tuple[Int64[np.ndarray, " edges"], Float64[np.ndarray, " bins"]]:
    """Return the edges and probabilities of at most `bins` bins with at least `least` each."""

    def make() -> tuple[Int64[np.ndarray, " edges"], Float64[np.ndarray, " bins"]]:
        edges = _edges(distribution, np.arange(1, bins) / bins, least)
        return edges, _masses(distribution, edges)

    return distribution.once((bins, least), make)


def _edges(
    distribution: Distribution, chances: Float64[np.ndarray, " n"], least: float
) -> Int64[np.ndarray, " m"]:
    """Return edges at quantiles such that every bin has at least `least` probability."""
    edges = np.unique(distribution.quantile(chances))
    kept: list[int] = []
    last = 0.0
    for edge, below, above in zip(edges, distribution.cdf(edges), distribution.survival(edges), strict=True):
        if below - last >= least and above >= least:
            kept.append(int(edge))
            last = float(below)
    return np.array(kept, np.int64)


def _masses(distribution: Distribution, edges: Int64[np.ndarray, " m"]) -> Float64[np.ndarray, " bins"]:
    """Return the probability of every bin: up to the first edge, between edges, beyond the last."""
    if not len(edges):
        return np.ones(1)
    inner = distribution.between(edges[:-1], edges[1:])
    return np.concatenate([distribution.cdf(edges[:1]), inner, distribution.survival(edges[-1:])])


def _bins(ordered: Int64[np.ndarray, " n"], distribution: Distribution, bins: int) -> float:
    edges, masses = _pool(distribution, bins, least=FEWEST_EXPECTED / len(ordered))
    return multinomial(np.diff(_at_most(ordered, edges), prepend=0, append=len(ordered)), masses)


def _at_most(ordered: Int64[np.ndarray, " n"], edges: Int64[np.ndarray, " k"]) -> Int64[np.ndarray, " k"]:
    """Return the number of samples, in rising order, that are at most each edge."""
    return np.searchsorted(ordered, edges, side="right").astype(np.int64)


def multinomial(counts: Real[np.ndarray, " k"], chances: Float64[np.ndarray, " k"]) -> float:
    """Return a valid p-value for counts of independent draws with these probabilities.

    It is the inverse of a Bayes factor: the probability of these counts if the probabilities vary around the
    right ones (Dirichlet), over their probability if they do not. Its mean over right draws is 1, so by
    Markov's inequality it reaches 1/a with probability at most a. Source: Good 1967; Vovk & Wang 2021.

    >>> multinomial(np.array([3, 1]), np.array([1.0, 0.0]))
    0.0
    """
    possible = chances > 0
    if np.any(counts[~possible]):
        return 0.0
    seen, right = counts[possible], chances[possible] / chances[possible].sum()
    if len(seen) < 2:
        return 1.0
    size, spread = float(seen.sum()), _spread(len(seen) - 1)
    total = max(1.0, (size - spread) / (spread - 1))
    prior = total * right
    terms = gammaln(prior + seen) - gammaln(prior) - seen * np.log(right)
    factor = gammaln(total) - gammaln(total + size) + terms.sum()
    return math.exp(min(0.0, -float(factor)))


@lru_cache(maxsize=MOST_BINS)
def _spread(freedom: int) -> float:
    """Return the factor on the variance of right counts at which they would just be rejected."""
    return float(stats.chi2.isf(ALPHA / LOOKS, freedom)) / freedom


def _outcomes(ordered: Int64[np.ndarray, " n"], distribution: Distribution) -> float:
    """Return the smallest exact p-value over the single outcomes at most 8 from the median, and over nested
    tails, from 1/2 down to a thousandth of one draw.
    """
    size = len(ordered)

    def make() -> tuple[Int64[np.ndarray, " k"], Int64[np.ndarray, " m"], Int64[np.ndarray, " l"], Chances]:
        near = distribution.quantile(np.array([0.5])) + np.arange(-CENTRE, CENTRE + 1)
        levels = 0.5 ** np.arange(1, 12 + np.log2(size))
        high = np.unique(distribution.upper(levels))
        low = np.unique(distribution.quantile(levels)) - 1
        single = distribution.between(near - 1, near).clip(0, 1)
        return near, high, low, np.concatenate([single, distribution.survival(high), distribution.cdf(low)])

    near, high, low, chances = distribution.once(("outcomes", size), make)
    single = _at_most(ordered, near) - _at_most(ordered, near - 1)
    counts = np.concatenate([single, size - _at_most(ordered, high), _at_most(ordered, low)])
    return _binomial(counts, size, chances)


def _binomial(counts: Int64[np.ndarray, " k"], size: int, chances: Float64[np.ndarray, " k"]) -> float:
    """Return the smallest two-sided exact binomial p-value, times their number."""
    fewer, more = stats.binom.cdf(counts, size, chances), stats.binom.sf(counts - 1, size, chances)
    return float(min(1.0, len(counts) * 2 * np.min(np.minimum(fewer, more))))


def _extremes(ordered: Int64[np.ndarray, " n"], distribution: Distribution) -> float:
    """Return the probability of draws at least as far out as the extremes, or 0 if one is impossible."""
    if np.any(distribution.impossible(ordered)):
        return 0.0
    top = distribution.survival(ordered[-1:] - 1)[0]
    bottom = distribution.cdf(ordered[:1])[0]
    return float(min(1.0, 2 * len(ordered) * min(top, bottom)))


def pair_fits(outcomes: Int64[np.ndarray, "n parts"], masses: list[Chances]) -> dict[str, float]:
    """Return a p-value for the independence of every pair of draws.

    Source: `multinomial` over classes of outcomes.
    """
    edges = [_class_edges(mass) for mass in masses]
    chances = [np.add.reduceat(mass, np.append(0, e)) for mass, e in zip(masses, edges, strict=True)]
    classes = [
        np.searchsorted(e, np.ascontiguousarray(o), side="right")
        for e, o in zip(edges, outcomes.T, strict=True)
    ]
    found = {}
    for i, j in combinations(range(len(masses)), 2):
        both = np.outer(chances[i], chances[j]).ravel()
        counts = np.bincount(classes[i] * len(chances[j]) + classes[j], minlength=len(both))
        found[f"draws {i} and {j}"] = multinomial(counts, both)
    return found


def _class_edges(mass: Float64[np.ndarray, " outcomes"]) -> Int64[np.ndarray, " edges"]:
    """Return outcomes that cut the distribution into at most 8 classes of similar probability."""
    inner = np.searchsorted(np.cumsum(mass), np.arange(1, CLASSES) / CLASSES) + 1
    return np.unique(inner[inner < len(mass)]).astype(np.int64)
