"""Mixtures of factor analysers: a public distribution of codes with groups and correlations."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Self

import numpy as np
from jaxtyping import Float64

from dpveil.assets.store import Tensors
from dpveil.codecs.statistics import Codes
from dpveil.core.parameters import check_count
from dpveil.errors import ModelError
from dpveil.noise.bits import BitSource, check_bits, normals, uniforms

MOST_COMPONENTS: Final = 256
MOST_FACTORS: Final = 64
MOST_COORDINATES: Final = 4096
LARGEST: Final = 1e6
"""Largest absolute mean, loading or deviation in a file, in units of a code."""
SMALLEST: Final = 1e-9
"""Smallest variance in a file."""
NAMES: Final = ("weights", "means", "loadings", "noises")


@dataclass(frozen=True, eq=False)
class Factors:
    """A mixture of k normal distributions of codes with q factors each.

    Component j has the share `weights[j]`, the mean `means[j]` and the covariance Λ·Λᵀ + diag(ψ) with Λ =
    `loadings[j]` and ψ = `noises[j]`. Source: Ghahramani & Hinton 1996; Richardson & Weiss 2018.
    """

    weights: Float64[np.ndarray, " k"]
    means: Float64[np.ndarray, "k m"]
    loadings: Float64[np.ndarray, "k m q"]
    noises: Float64[np.ndarray, "k m"]

    @classmethod
    def normal(cls, codes: Codes, factors: int) -> Self:
        """Return one normal distribution with the mean and the variances of codes n × m, n > 1.

        Its `factors`, m at most, are the leading principal components.
        """
        mean = codes.mean(axis=0)
        away = (codes - mean) / np.sqrt(len(codes))
        _, values, axes = np.linalg.svd(away, full_matrices=False)
        loadings = (axes[:factors] * values[:factors, None]).T
        rest = (away**2).sum(axis=0) - (loadings**2).sum(axis=1)
        return cls(np.ones(1), mean[None], loadings[None], np.maximum(rest, SMALLEST)[None])

    @property
    def variances(self) -> Float64[np.ndarray, "k m"]:
        """The variance of every coordinate in each component."""
        found: Float64[np.ndarray, "k m"] = (self.loadings**2).sum(axis=2) + self.noises
        return found

    def logs(self, codes: Codes) -> Float64[np.ndarray, "n k"]:
        """Return the logarithm of the density of each component at every code, times its weight."""
        out = np.empty((len(codes), len(self.weights)))
        q = self.loadings.shape[2]
        for j, (mean, loadings, noises) in enumerate(
            zip(self.means, self.loadings, self.noises, strict=True)
        ):
            away = codes - mean
            scaled = loadings / noises[:, None]
            inner = np.linalg.cholesky(np.eye(q) + loadings.T @ scaled)  # Woodbury, q × q
            seen = np.linalg.solve(inner, (away @ scaled).T)
            squared = (away**2) @ (1 / noises) - (seen**2).sum(axis=0)
            volume = np.log(2 * np.pi * noises).sum() + 2 * np.log(np.diag(inner)).sum()
            out[:, j] = np.log(self.weights[j]) - 0.5 * (squared + volume)
        return out

    def draw(self, count: int, bits: BitSource) -> Codes:
        """Return codes of nobody, count × m. Raises `InvalidParameter` for a `count` below 1."""
        check_count(count, "count")
        uniform = uniforms(count, check_bits(bits))
        chosen = np.searchsorted(np.cumsum(self.weights), uniform * self.weights.sum())
        chosen = np.minimum(chosen, len(self.weights) - 1)
        m, q = self.loadings.shape[1:]
        factors = normals(count * q, bits).reshape(count, q)
        noise = normals(count * m, bits).reshape(count, m)
        out = self.means[chosen] + noise * np.sqrt(self.noises[chosen])
        for j in np.unique(chosen):
            out[chosen == j] += factors[chosen == j] @ self.loadings[j].T
        return np.asarray(out)

    def rounded(self) -> Self:
        """Return the mixture as a file holds it: numbers of 32 bits."""
        few = (one.astype(np.float32).astype(np.float64) for one in (self.means, self.loadings, self.noises))
        return type(self)(self.weights, *few)

    def tensors(self) -> dict[str, np.ndarray]:
        """Return the arrays of a file."""
        few = {name: getattr(self, name).astype(np.float32) for name in NAMES[1:]}
        return {"weights": self.weights, **few}

    @classmethod
    def of_tensors(cls, tensors: Tensors | Mapping[str, np.ndarray], length: int) -> Self:
        """Return the mixture in a file of codes of `length` coordinates.

        Raises `ModelError` for invalid values and `KeyError` for missing ones.
        """
        weights, means, loadings, noises = (tensors[name].astype(np.float64) for name in NAMES)
        k, q = len(weights), loadings.shape[-1]
        shapes = (weights.shape, means.shape, loadings.shape, noises.shape)
        if shapes != ((k,), (k, length), (k, length, q), (k, length)):
            raise ModelError("the file's mixture does not fit its codes")
        if not 1 <= k <= MOST_COMPONENTS or q > MOST_FACTORS or length > MOST_COORDINATES:
            most = (
                f"{MOST_COMPONENTS} components of {MOST_FACTORS} factors and {MOST_COORDINATES} coordinates"
            )
            raise ModelError(f"the file's mixture has more than {most}, or no component")
        sized = all((np.abs(one) <= LARGEST).all() for one in (means, loadings, np.sqrt(np.abs(noises))))
        if not sized or not (noises >= SMALLEST).all():
            raise ModelError("the file's mixture is not finite, or a variance is not above 0")
        if not (weights > 0).all() or not abs(weights.sum() - 1) < 1e-6:
            raise ModelError("the weights of the file's mixture are not above 0 with sum 1")
        return cls(weights, means, loadings, noises)
