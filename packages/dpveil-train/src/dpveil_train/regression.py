"""Shapes of an active appearance model: their principal components, and ridge regressions to them."""

from __future__ import annotations

from typing import Final

import numpy as np
from jaxtyping import Float32, Float64

from dpveil.codecs.fitting import Parameters, ShapeSpace
from dpveil.codecs.mesh import Mesh, Shapes

RIDGE: Final = 0.5
"""Ridge penalty, relative to the mean variance of the features."""


class Regression:
    """The ridge regression of one stage, accumulated batch by batch."""

    def __init__(self) -> None:
        self._count = 0
        self._squares: np.ndarray = np.zeros(())
        self._products: np.ndarray = np.zeros(())

    def add(self, features: Float32[np.ndarray, "n f"], missing: Parameters) -> None:
        """Add a batch: features, and the remaining error of the parameters."""
        self._squares = self._squares + features.T @ features
        self._products = self._products + features.T @ missing.astype(np.float32)
        self._count += len(features)

    def solved(self) -> Float32[np.ndarray, "k f"]:
        """Return the coefficients; the last feature, a constant, has no penalty."""
        from scipy.linalg import solve

        squares = self._squares.astype(np.float64) / self._count
        mean = squares[-1, :-1]
        variance = float((np.diag(squares)[:-1] - mean**2).mean())
        ridge = np.full(len(squares), RIDGE * variance + 1e-9)
        ridge[-1] = 0
        squares[np.diag_indices_from(squares)] += ridge
        found = solve(squares, self._products.astype(np.float64) / self._count, assume_a="pos")
        return np.ascontiguousarray(found.T, np.float32)


def shape_space(shapes: Shapes, length: int, mesh: Mesh) -> tuple[ShapeSpace, Float64[np.ndarray, " d"]]:
    """Return the first `length` principal components of shapes, and all variances in squared pixels."""
    moves = (shapes - mesh.rest).reshape(len(shapes), -1)
    values, turn = np.linalg.eigh(moves.T @ moves / len(moves))
    basis = np.ascontiguousarray(turn[:, ::-1][:, :length].T)
    basis *= np.where(basis.sum(axis=1) < 0, -1.0, 1.0)[:, None]
    codes = moves @ basis.T
    return ShapeSpace(mesh, basis, np.stack([codes.min(axis=0), codes.max(axis=0)])), values[::-1]
