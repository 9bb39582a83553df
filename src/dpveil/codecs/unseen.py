"""Unseen faces as mixtures of the faces that a generator has seen, by least absolute deviations."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from jaxtyping import Float64
from scipy.optimize import OptimizeResult, linprog

from dpveil.errors import DataError, InvalidParameter

Rows = Float64[np.ndarray, "n d"]
RULES: Final = ("simplex", "free")
"""Constraints on the weights: at least 0 with sum 1, or none."""


@dataclass(frozen=True, eq=False)
class Mixture:
    """Weights of n targets over the m rows of a gallery, and the distance of each mixture from its target.

    `deviations` are sums of absolute differences over the coordinates, minimal over all weights.
    """

    weights: Float64[np.ndarray, "n m"]
    deviations: Float64[np.ndarray, " n"]

    def of(self, gallery: Float64[np.ndarray, "m e"]) -> Float64[np.ndarray, "n e"]:
        """Return the same mixtures of another gallery's rows, such as a generator's codes of the same people.

        Raises `InvalidParameter` for another number of rows.
        """
        if gallery.ndim != 2 or len(gallery) != self.weights.shape[1]:
            problem = f"has not {self.weights.shape[1]} rows"
            raise InvalidParameter("gallery", str(gallery.shape), problem, hint="one for each weight")
        mixed: Float64[np.ndarray, "n e"] = self.weights @ gallery
        return mixed


def approximate(targets: Rows, gallery: Float64[np.ndarray, "m d"], *, weights: str = "simplex") -> Mixture:
    """Return for every target the mixture of gallery rows with the least absolute deviations.

    `targets` is n × d and `gallery` m × d: codes or embeddings of the same kind, finite. `weights` "simplex"
    keeps weights non-negative with sum 1, so that a mixture is a convex combination of known faces; "free"
    allows any numbers, and refuses a gallery with linearly dependent rows, where weights are not unique.
    Minimises the sum of u_i + v_i where y_i - Σ_j W_j·X_ji = u_i - v_i; the papers print a sum in place of
    this difference (errata E3). The weights of a target depend only on it and the gallery. This is not a
    mechanism and has no guarantee. Raises `InvalidParameter`, and `DataError` if the solver fails. Source:
    Croft 2022 eq. 11-13, Croft thesis 6.18-6.20; HiGHS.

    >>> import numpy as np
    >>> known = np.array([[0.0, 0.0, 9.0], [4.0, 0.0, 9.0], [0.0, 4.0, 9.0]])
    >>> approximate(np.array([[1.0, 2.0, 7.0]]), known).weights.round(6).tolist()
    [[0.25, 0.25, 0.5]]
    """
    targets, gallery = _checked("targets", targets), _checked("gallery", gallery)
    if weights not in RULES:
        raise InvalidParameter("weights", weights, "is unknown", hint=" or ".join(RULES))
    if not len(gallery) or targets.shape[1] != gallery.shape[1]:
        shapes = f"{targets.shape} and {gallery.shape}"
        raise InvalidParameter("gallery", shapes, "do not fit", hint="n × d targets and m × d rows, m > 0")
    if weights == "free" and np.linalg.matrix_rank(gallery) < len(gallery):
        problem = "has rows that are mixtures of others, so that free weights are not unique"
        raise InvalidParameter("gallery", str(gallery.shape), problem, hint='drop some, or use "simplex"')
    centre, unit = _scale(gallery, weights)
    known = (gallery - centre) / unit
    found = np.empty((len(targets), len(gallery)))
    for row, target in enumerate((targets - centre) / unit):
        found[row] = _solved(target, known, weights)
    return Mixture(found, np.abs(targets - found @ gallery).sum(axis=1))


def _scale(gallery: Float64[np.ndarray, "m d"], weights: str) -> tuple[Float64[np.ndarray, " d"], float]:
    """Return an origin and a unit for scaling that leave the solution unchanged.

    Only weights that sum to 1 allow another origin than 0.
    """
    centre = gallery.mean(axis=0) if weights == "simplex" else np.zeros(gallery.shape[1])
    return centre, float(np.abs(gallery - centre).max()) or 1.0


def _solved(
    target: Float64[np.ndarray, " d"], gallery: Float64[np.ndarray, "m d"], weights: str
) -> Float64[np.ndarray, " m"]:
    m, d = gallery.shape
    equal, right = np.hstack([gallery.T, np.eye(d), -np.eye(d)]), target
    if weights == "simplex":
        equal = np.vstack([equal, np.concatenate([np.ones(m), np.zeros(2 * d)])])
        right = np.append(target, 1.0)
    bounds = [(0 if weights == "simplex" else None, None)] * m + [(0, None)] * (2 * d)
    cost = np.concatenate([np.zeros(m), np.ones(2 * d)])
    result: OptimizeResult = linprog(cost, A_eq=equal, b_eq=right, bounds=bounds, method="highs")
    if result.status != 0:
        raise DataError(f"the least deviations were not found: {result.message}", hint="scale the codes")
    found: Float64[np.ndarray, " m"] = result.x[:m]
    if weights == "simplex":  # the solver's own tolerance is 1e-7
        found = np.clip(found, 0, None) / np.clip(found, 0, None).sum()
    return found


def _checked(name: str, rows: Rows) -> Rows:
    if rows.ndim != 2 or not rows.size or not np.isfinite(rows).all():
        raise InvalidParameter(name, str(rows.shape), "are not finite numbers, n × d", hint="rows of codes")
    return rows.astype(np.float64)
