"""Linear codecs: PCA (eigenfaces; Croft thesis §6.5; Turk & Pentland 1991), Dictionary and Mixture."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from typing import Any, ClassVar, Final, Self

import numpy as np

from dpveil.assets.model_cards import Card
from dpveil.assets.trained_files import Tensors, arrays_of
from dpveil.codecs.base import CHUNK, Canvas, Crops, StoredCodec, canvas_of, flat, pictures_of
from dpveil.codecs.statistics import Codes, Statistics, energies
from dpveil.core.array_types import Float32, Float64
from dpveil.core.parameters import check_count
from dpveil.errors import ModelError
from dpveil.noise.bits import BitSource, check_bits, normals, uniforms

MOST_COMPONENTS: Final = 256
MOST_FACTORS: Final = 64
MOST_COORDINATES: Final = 4096
LARGEST_NUMBER: Final = 1e6  # largest absolute mean, loading or deviation in a file, in units of a code
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
        return cls(np.ones(1), mean[None], loadings[None], np.maximum(rest, SMALLEST_NORM)[None])

    @property
    def variances(self) -> Float64[np.ndarray, "k m"]:
        return np.asarray((self.loadings**2).sum(axis=2) + self.noises)

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

    def as_float32(self) -> Self:
        """Return the mixture as a file holds it: numbers of 32 bits."""
        few = (one.astype(np.float32).astype(np.float64) for one in (self.means, self.loadings, self.noises))
        return type(self)(self.weights, *few)

    def tensors(self) -> dict[str, np.ndarray]:
        few = {name: getattr(self, name).astype(np.float32) for name in NAMES[1:]}
        return {"weights": self.weights, **few}

    @classmethod
    def of_tensors(cls, tensors: Tensors | Mapping[str, np.ndarray], length: int) -> Self:
        """Return the mixture in a file of codes of `length` coordinates.

        Raises `ModelError` for invalid values and `KeyError` for missing ones.
        """
        shapes = {"weights": "k", "means": "k m", "loadings": "k m q", "noises": "k m"}
        weights, means, loadings, noises = arrays_of(tensors, {"m": length}, np.float64, **shapes)
        k, q = len(weights), loadings.shape[-1]
        if not 1 <= k <= MOST_COMPONENTS or q > MOST_FACTORS or length > MOST_COORDINATES:
            most = (
                f"{MOST_COMPONENTS} components of {MOST_FACTORS} factors and {MOST_COORDINATES} coordinates"
            )
            raise ModelError(f"the file's mixture has more than {most}, or no component")
        sized = all(
            (np.abs(one) <= LARGEST_NUMBER).all() for one in (means, loadings, np.sqrt(np.abs(noises)))
        )
        if not sized or not (noises >= SMALLEST_NORM).all():
            raise ModelError("the file's mixture is too large, or a variance is not above 0")
        if not (weights > 0).all() or not abs(weights.sum() - 1) < 1e-6:
            raise ModelError("the weights of the file's mixture are not above 0 with sum 1")
        return cls(weights, means, loadings, noises)


STEPS: Final = 200  # steps of ISTA per code: a fixed number, so that a code is a function of its crop alone
THRESHOLD: Final = 0.01  # λ relative to the largest coordinate (FaceIDP §IX-A)
SMALLEST_NORM: Final = 1e-9  # smallest norm used as a divisor


@dataclass(frozen=True, eq=False)
class Dictionary(StoredCodec):
    """A code holds the weights of a sparse combination of atoms: min ½‖P - mean - D·F‖² + λ·‖F‖₁.

    `mean` and the columns of D, rows of `atoms`, were learned from public crops; an atom has norm 1, in grey
    levels. λ is 1 % of the largest inner product of the crop with an atom, as published. The minimum is
    approximated by `STEPS` steps of ISTA, with |F| in the soft threshold (FaceIDP eq. 23, errata E11).
    Source: FaceIDP §V-A (DLNet), eqs. 19-24.
    """

    name: ClassVar[str] = "dictionary"
    summary: ClassVar[str] = "sparse codes over learned atoms"
    source: ClassVar[str] = "FaceIDP §V-A, eqs. 19-24, errata E11"

    mean: Float32[np.ndarray, " pixels"]
    atoms: Float32[np.ndarray, "m pixels"]
    statistics: Statistics
    canvas: Canvas
    card: Card

    @property
    def length(self) -> int:
        return len(self.atoms)

    def _encode(self, crops: Crops) -> Codes:
        return sparse_codes(crops, self.mean, self.atoms)

    def _decode(self, codes: Codes) -> Crops:
        return combine(codes, self.mean, self.atoms, self.canvas)

    def tensors(self) -> dict[str, np.ndarray]:
        stored = self.atoms.astype(np.float16)
        return {"mean": self.mean, "atoms": stored, **self.statistics.tensors()}

    @classmethod
    def of_file(cls, facts: Mapping[str, Any], tensors: Tensors, card: Card) -> Self:
        canvas = canvas_of(facts)
        shapes = {"mean": "pixels", "atoms": "m pixels"}
        mean, atoms = arrays_of(tensors, {"pixels": prod(canvas)}, np.float32, **shapes)
        if not atoms.any(axis=1).all():
            raise ModelError("an atom of the file is empty")
        return cls(mean, atoms, Statistics.of_tensors(tensors, energies(atoms)), canvas, card)


def sparse_codes(
    crops: Crops, mean: Float32[np.ndarray, " pixels"], atoms: Float32[np.ndarray, "m pixels"]
) -> Codes:
    """Return the codes of crops after `STEPS` steps of ISTA."""
    gram = (atoms @ atoms.T).astype(np.float64)
    parts = [sparse(((chunk - mean) @ atoms.T).astype(np.float64), gram, STEPS) for chunk in flat(crops)]
    return np.concatenate([*parts, np.empty((0, len(atoms)))])


def soft(values: Codes, threshold: Float64[np.ndarray, "n 1"]) -> Codes:
    """Return the soft threshold of values: moved towards 0 by `threshold`, and 0 if smaller than that.

    Source: FaceIDP eq. 23, with |F| in place of F, which would set every negative value to 0 (errata E11).
    """
    return np.asarray(np.sign(values) * np.maximum(0, np.abs(values) - threshold))


def sparse(products: Codes, gram: Float64[np.ndarray, "m m"], steps: int) -> Codes:
    """Return the codes F after `steps` steps of ISTA to minimise ½·F·G·Fᵀ - F·b + λ·‖F‖₁.

    b are the inner products of a crop with the atoms, G those of the atoms, and λ is 1 % of the largest |b|.
    Source: FaceIDP eqs. 20-23; Daubechies, Defrise & De Mol 2004 for the step 1/‖G‖.
    """
    largest = max(float(np.linalg.eigvalsh(gram)[-1]), SMALLEST_NORM)
    threshold = THRESHOLD * np.abs(products).max(axis=1, keepdims=True, initial=0) / largest
    codes = np.zeros_like(products)
    for _ in range(steps):
        codes = soft(codes + (products - codes @ gram) / largest, threshold)
    return codes


@dataclass(frozen=True, eq=False)
class PCA(StoredCodec):
    """Eigenfaces: a code holds a crop's coordinates along the leading principal components, in grey levels.

    `mean` and the orthonormal rows of `components` were learned from public crops, components in order of
    decreasing variance. Source: Croft thesis §6.5; Turk & Pentland 1991.
    """

    name: ClassVar[str] = "pca"
    summary: ClassVar[str] = "eigenfaces: principal components of aligned crops"
    source: ClassVar[str] = "Croft thesis §6.5; Turk & Pentland 1991"

    mean: Float32[np.ndarray, " pixels"]
    components: Float32[np.ndarray, "m pixels"]
    statistics: Statistics
    canvas: Canvas
    card: Card

    @property
    def length(self) -> int:
        return len(self.components)

    def _encode(self, crops: Crops) -> Codes:
        return self.codes_of(crops)

    def codes_of(self, pictures: np.ndarray) -> Codes:
        """Return the codes of pictures of the canvas's shape, whose levels may be floats."""
        return project(pictures, self.mean, self.components.T)

    def _decode(self, codes: Codes) -> Crops:
        return combine(codes, self.mean, self.components, self.canvas)

    def tensors(self) -> dict[str, np.ndarray]:
        stored = self.components.astype(np.float16)
        return {"mean": self.mean, "components": stored, **self.statistics.tensors()}

    @classmethod
    def of_file(cls, facts: Mapping[str, Any], tensors: Tensors, card: Card) -> Self:
        canvas = canvas_of(facts)
        shapes = {"mean": "pixels", "components": "m pixels"}
        mean, components = arrays_of(tensors, {"pixels": prod(canvas)}, np.float32, **shapes)
        if not components.any(axis=1).all():
            raise ModelError("a component of the file is empty")
        statistics = Statistics.of_tensors(tensors, energies(components), components=True)
        return cls(mean, components, statistics, canvas, card)


def combine(
    codes: Codes, mean: Float32[np.ndarray, " pixels"], rows: Float32[np.ndarray, "m pixels"], canvas: Canvas
) -> Crops:
    """Return the mean plus each code's combination of the rows, as crops."""
    starts = range(0, len(codes), CHUNK)
    parts = (codes[at : at + CHUNK].astype(np.float32) @ rows + mean for at in starts)
    return pictures_of(parts, len(codes), canvas)


def project(
    crops: Crops, mean: Float32[np.ndarray, " pixels"], columns: Float32[np.ndarray, "pixels k"]
) -> Codes:
    """Return the inner products of the crops, less the mean, with each column."""
    parts = [(chunk - mean) @ columns for chunk in flat(crops)]
    return np.concatenate([*parts, np.empty((0, columns.shape[1]))]).astype(np.float64)


@dataclass(frozen=True, eq=False)
class Mixture(PCA):
    """A code holds coordinates along principal components, as in `pca`; `factors` is how faces lie there.

    Private codes become likely ones under this public mixture before they are decoded, and `samples` are
    faces of nobody. Source: Richardson & Weiss 2018; Ghahramani & Hinton 1996.
    """

    name: ClassVar[str] = "mixture"
    summary: ClassVar[str] = "eigenfaces, and a mixture of factor analysers of their codes"
    source: ClassVar[str] = "Richardson & Weiss 2018; Ghahramani & Hinton 1996"
    likely: ClassVar[bool] = True

    factors: Factors

    @property
    def prior(self) -> Factors:
        return self.factors

    def samples(self, count: int, bits: BitSource) -> Crops:
        """Return faces of nobody: decoded draws from the mixture, which has seen public faces only.

        Raises `InvalidParameter` for a `count` below 1.
        """
        return self.decode(self.factors.draw(count, bits))

    def tensors(self) -> dict[str, np.ndarray]:
        return {**super().tensors(), **self.factors.tensors()}

    @classmethod
    def of_file(cls, facts: Mapping[str, Any], tensors: Tensors, card: Card) -> Self:
        own = PCA.of_file(facts, tensors, card)
        factors = Factors.of_tensors(tensors, own.length)
        return cls(own.mean, own.components, own.statistics, own.canvas, card, factors)
