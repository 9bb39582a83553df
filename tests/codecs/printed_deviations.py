"""Least absolute deviations as the papers print them (errata E3)."""

from __future__ import annotations

import numpy as np
from scipy.optimize import linprog


def printed(target: np.ndarray, gallery: np.ndarray, lowest: float | None) -> np.ndarray:
    """Croft 2022 eq. 11-13 as they stand: u_i ≥ ±(y_i + Σ_j W_j·X_ji), with Σu least."""
    m, d = gallery.shape
    rows = np.block([[gallery.T, -np.eye(d)], [-gallery.T, -np.eye(d)]])
    cost = np.concatenate([np.zeros(m), np.ones(d)])
    sides = np.concatenate([-target, target])
    sums = {} if lowest is None else {"A_eq": np.array([[1.0] * m + [0.0] * d]), "b_eq": [1.0]}
    bounds = [(lowest, None)] * m + [(0, None)] * d
    found: np.ndarray = linprog(cost, A_ub=rows, b_ub=sides, bounds=bounds, method="highs", **sums).x[:m]
    return found
