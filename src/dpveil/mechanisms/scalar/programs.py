"""Linear programs over mechanism matrices: sparse, solved by HiGHS, repaired to exact feasibility.

Entries that a symmetry makes equal share one variable, and so does the diagonal of a fair matrix. Entries so
far from the diagonal that they are below 1e-13 are fixed multiples of the nearest one that is not: floating
point does not resolve them, and they make programs with hundreds of columns unstable.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np
from jaxtyping import Float64, Int64
from scipy import sparse
from scipy.optimize import linprog

from dpveil.errors import NoiseError

Floats = Float64[np.ndarray, "..."]
Ints = Int64[np.ndarray, "..."]
FAR: Final = 30.0
"""ε·d beyond which an entry is not a variable of its own: e^-30 is 1e-13."""
NEVER: Final = 1e-7
"""A response whose probability is never above this is dropped from a solution."""
TIGHT: Final = 1e-9
"""Feasibility tolerance of the solver."""
METHODS: Final = ("highs-ipm", "highs-ds")
"""SciPy's methods, tried in this order."""


@dataclass(frozen=True, eq=False)
class Program:
    """The program: minimise Σ M[i,j]·|p_i - p_j| over matrices whose answers and responses are `points`.

    `reach` points are one ΔF, which costs ε: in proportion to the distance if `metric`, else for all
    distances up to there. `fair` adds monotone rows and columns, symmetry and fairness, on points without
    gaps.
    """

    points: Int64[np.ndarray, " points"]
    reach: int
    epsilon: float
    metric: bool
    fair: bool

    @property
    def size(self) -> int:
        """The number of points."""
        return len(self.points)

    @cached_property
    def symmetric(self) -> bool:
        """Whether the points are symmetric, so that some optimum is too."""
        return bool((np.diff(self.points) == np.diff(self.points)[::-1]).all())

    @cached_property
    def cost(self) -> Floats:
        """The bound ε·d on log-ratios for any two answers, where d counts ΔF, or records; infinite without a
        chain.
        """
        apart = np.abs(self.points[:, None] - self.points[None, :])
        near = sparse.csr_matrix(apart <= self.reach)
        steps = apart / self.reach if self.metric else sparse.csgraph.shortest_path(near, unweighted=True)
        found: Floats = self.epsilon * steps
        return found

    @cached_property
    def pairs(self) -> tuple[Ints, Ints]:
        """The columns j < k that R.1 relates; of two mirrored pairs only one."""
        apart = self.points[None, :] - self.points[:, None]
        j, k = np.nonzero((apart > 0) & (apart <= self.reach))
        if self.metric:
            j = np.arange(self.size - 1)
            k = j + 1
        keep = (j + k < self.size) | (not self.symmetric)
        return j[keep], k[keep]

    @property
    def inequalities(self) -> int:
        """The approximate number of inequalities."""
        return self.size * self.size * 2 if self.fair else 2 * self.size * len(self.pairs[0])

    @cached_property
    def entries(self) -> tuple[Ints, Floats]:
        """The variable of every entry, and the factor on it."""
        size = self.size
        name = np.arange(size * size).reshape(size, size)
        if self.symmetric:
            name = np.minimum(name, name[::-1, ::-1])
        if self.fair:
            np.fill_diagonal(name, 0)
        nearest = self._nearest()
        factor = np.exp(-np.take_along_axis(self.cost, nearest, axis=1))
        name = np.take_along_axis(name, nearest.T, axis=1)
        _, name = np.unique(name, return_inverse=True)
        return name.reshape(size, size), factor.T

    def _nearest(self) -> Ints:
        """Return for column j (first index) and row i the column nearest j that is not far from i."""
        size = self.size
        near = self.cost <= FAR
        first, last = near.argmax(axis=1), size - 1 - near[:, ::-1].argmax(axis=1)
        j = np.arange(size)[:, None]
        # a column that no chain of records reaches keeps its own variable
        linked = np.isfinite(self.cost)
        return np.where(linked, np.clip(j, first[None, :], last[None, :]), j)


def solve(program: Program) -> Floats:
    """Return an optimal matrix, responses × answers, up to the solver's tolerance. Raises `NoiseError`."""
    name, factor = program.entries
    count, size = int(name.max()) + 1, program.size
    small, large, times = _inequalities(program)
    if len(small) == 0:
        return np.eye(size)
    row = np.arange(len(small))
    below = sparse.csr_matrix(
        (np.r_[np.ones(len(small)), -times], (np.r_[row, row], np.r_[small, large])), (len(small), count)
    )
    half = (size + 1) // 2 if program.symmetric else size
    which = np.broadcast_to(np.arange(half), (size, half))
    sums = sparse.csr_matrix(
        (factor[:, :half].ravel(), (which.ravel(), name[:, :half].ravel())), (half, count)
    )
    apart = np.abs(program.points[:, None] - program.points[None, :])
    error = np.bincount(name.ravel(), (factor * apart).ravel(), count)
    limits = {"primal_feasibility_tolerance": TIGHT, "dual_feasibility_tolerance": TIGHT}
    for method in METHODS:
        found = linprog(
            error, below, np.zeros(len(small)), sums, np.ones(half), method=method, options=limits
        )
        if found.x is not None:
            matrix: Floats = found.x[name] * factor
            return matrix
    raise NoiseError(f"the linear program was not solved: {found.message}")


def _inequalities(program: Program) -> tuple[Ints, Ints, Floats]:
    """Return variables p, q and factors t of all p ≤ t·q that are not implied by others."""
    name, factor = program.entries
    own = factor == 1
    if program.fair:
        rows = _monotone(program, name, own)
    else:
        j, k = program.pairs
        both = own[:, j] & own[:, k]
        times = np.exp(np.broadcast_to(program.cost[j, k], both.shape))[both]
        left, right = name[:, j][both], name[:, k][both]
        rows = [(left, right, times), (right, left, times)]
    small, large, times = (np.concatenate(part) for part in zip(*rows, strict=True))
    kept = small != large
    return small[kept], large[kept], times[kept]


def _monotone(program: Program, name: Ints, own: Floats) -> list[tuple[Ints, Ints, Floats]]:
    """Return the inequalities left of the diagonal, which symmetry carries to the right.

    Rows rise towards the diagonal, so only the answer nearest to it within one record has to be bounded.
    """
    size = program.size
    i, j = np.nonzero(np.tri(size, k=-1, dtype=bool))
    toward = j + 1 if program.metric else np.minimum(j + program.reach, i)
    times = np.exp(program.cost[j, toward])
    rises, falls = own[i, j] & own[i, j + 1], own[i, j] & own[i - 1, j]
    bound = own[i, j] & own[i, toward]
    one = np.ones(len(i))
    return [
        (name[i, j][rises], name[i, j + 1][rises], one[rises]),
        (name[i, toward][bound], name[i, j][bound], times[bound]),
        (name[i, j][falls], name[i - 1, j][falls], one[falls]),
    ]


def repaired(solved: Floats, program: Program) -> Floats:
    """Return a matrix near `solved` that satisfies R.1 and R.3 of `program`, whose ε may be slightly smaller.

    Responses with negligible probability are dropped. Every entry is raised to what R.1 requires given the
    others of its row, which establishes R.1 by the triangle inequality. Columns then have slightly different
    sums s_j; each is filled up to one common sum with a uniform law, and that sum is large enough for the
    addition to keep R.1.
    """
    matrix = np.where(solved.max(axis=1, keepdims=True) > NEVER, np.maximum(solved, 0), 0)
    demand = np.exp(-program.cost)
    closed = matrix.copy()
    for k in range(program.size):
        np.maximum(closed, matrix[:, k : k + 1] * demand[k][None, :], out=closed)
    shown = matrix.max(axis=1) > 0
    sums = closed.sum(axis=0)
    step = program.cost[program.cost > 0].min(initial=np.inf)
    total = sums.max() + np.ptp(sums) / np.expm1(min(step, FAR))
    filled: Floats = (closed + shown[:, None] * (total - sums) / shown.sum()) / total
    return filled
