"""What a mechanism matrix has to be and may be (Croft thesis §5.2.2, 5.52 to 5.63), for answers 0, 1, 2, …"""

from __future__ import annotations

import numpy as np


def broken(
    matrix: np.ndarray,
    epsilon: float,
    sensitivity: float = 1,
    relation: str = "any-database",
    tolerance: float = 1e-12,
) -> set[str]:
    """The properties that do not hold; rows are responses, columns answers, and responses are the answers."""
    steps = np.abs(np.subtract.outer(*[np.arange(len(matrix))] * 2))
    bound = epsilon * steps / sensitivity
    if relation == "database-record":
        bound = np.where(steps <= sensitivity, epsilon, np.inf)
    with np.errstate(divide="ignore", invalid="ignore"):
        one, other = matrix[:, :, None], matrix[:, None, :]
        nothing = (one == 0) & (other == 0)  # no information, unlike 0 beside more, or what is below 0
        ratios = np.where(nothing, 0, np.log(one / other)).max(axis=0)
    true = np.diagonal(matrix)
    holds = {
        "R.1": (ratios <= bound + tolerance).all(),
        "R.3": matrix.min() >= 0 and np.abs(matrix.sum(axis=0) - 1).max() <= tolerance * len(matrix),
        "row monotonicity": _peaked(matrix, tolerance),
        "column monotonicity": _peaked(matrix.T, tolerance),
        "symmetry": np.abs(matrix - matrix[::-1, ::-1]).max() <= tolerance,
        "fairness": np.ptp(true) <= tolerance,
    }
    return {name for name, kept in holds.items() if not kept}


def _peaked(matrix: np.ndarray, tolerance: float) -> bool:
    """Whether every row rises up to the diagonal and falls after it."""
    moves = np.diff(matrix, axis=1)
    before = np.arange(len(moves))[:, None] > np.arange(moves.shape[1])
    return bool((np.where(before, moves, -moves) >= -tolerance).all())
