"""The linear-programming mechanisms of a range with two ends (Croft thesis §5.2.4)."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import accumulate
from math import ldexp
from typing import ClassVar, Final

import numpy as np
from scipy import sparse
from scipy.optimize import linprog

from dpveil.core.array_types import Float64, Int64
from dpveil.core.rationals import show
from dpveil.errors import InvalidParameter, NoiseError
from dpveil.mechanisms.scalar.base import ANY_DATABASE, ScalarMechanism
from dpveil.mechanisms.scalar.matrix_cost import Rows
from dpveil.mechanisms.scalar.noise_mechanisms import PRECISION, LaplaceNoise, snapped_rows
from dpveil.noise.integer_matrix import IntegerMatrix
from dpveil.noise.laplace import exp_below

LOWER: Final = 10  # the step to a smaller diagonal is the largest possible one divided by 2 to this power


def fair_rows(size: int, rate: Fraction, spare: int = 0) -> Rows:
    """Return the integer weights of every response for the answers 0..size-1; `rate` is ε for one step.

    They are the fair, symmetric, monotone matrix with the largest diagonal, found without a solver. Let
    a = e^-ε for one step, c the diagonal and m the middle column. Every entry is at least c·a^|i-j|, so the
    largest c is the one at which column m has no more than that. Then M[i,j] ≤ M[i,j+1]/a also determines the
    triangle i ≤ j ≤ m, and below the diagonal every column lies between a times the next column and the next
    column itself, with a known sum. Filling each column from the diagonal outwards, from the middle column
    on, puts the most mass within every distance: by induction, what a column can hold up to a row is monotone
    in what the next one holds. So for this c the matrix is the best for every loss that grows with distance.

    That this c is the best is not proved. By convexity in c it is the best if lowering c slightly does not
    help; the test of that, `largest_diagonal_is_best`, uses one family of matrices with smaller c, and agreed
    with HiGHS in 1372 cases (2 to 41 points, ε from 0.01 to 4).

    `spare`, in units of 2^-256 of the diagonal, is added to the sum of every row, which lowers the diagonal's
    share. It goes to the responses next to the middle, and may be as large as `_room` returns.

    >>> [[round(w / sum(row), 3) for w in row] for row in fair_rows(3, Fraction(1))]
    [[0.576, 0.346, 0.078], [0.212, 0.576, 0.212], [0.078, 0.346, 0.576]]
    """
    power = [1 << PRECISION] + [exp_below(rate * j, PRECISION) for j in range(1, size)]
    middle = (size - 1) // 2
    total = sum(power[abs(i - middle)] for i in range(size)) + spare
    column = [power[abs(i - middle)] for i in range(size)]
    if size > 1:
        column[middle + 1] += spare // (1 + size % 2)
    if size % 2 and size > 1:
        column[middle - 1] += spare // 2
    columns = [column]
    for j in range(middle - 1, -1, -1):
        column = _fill_column(column, j, power, total)
        columns.append(column)
    first = columns[::-1]
    return first + [row[::-1] for row in first[: size // 2][::-1]]


def _fill_column(upper: list[int], j: int, power: list[int], total: int) -> list[int]:
    """Return column j from the next one: the upper triangle is given, the rest filled from the diagonal."""
    least = [-(-power[1] * weight >> PRECISION) for weight in upper[j + 1 :]]
    column = power[j::-1] + least
    left = total - sum(column)
    for i in range(j + 1, len(upper)):
        more = min(left, upper[i] - column[i])
        column[i] += more
        left -= more
    return column


def largest_diagonal_is_best(size: int, rate: Fraction) -> bool:
    """Return whether a slightly smaller diagonal has at least the same expected absolute error.

    >>> largest_diagonal_is_best(12, Fraction("0.5")), largest_diagonal_is_best(12, Fraction("0.03"))
    (True, False)
    """
    if size < 3:
        return True
    smaller = _room(size, rate) >> LOWER
    return _error(fair_rows(size, rate, smaller)) >= _error(fair_rows(size, rate))


def _room(size: int, rate: Fraction) -> int:
    """Return the largest `spare` with which no response next to the middle exceeds the diagonal."""
    return (1 + size % 2) * ((1 << PRECISION) - exp_below(rate, PRECISION))


def _error(rows: Rows) -> Fraction:
    total = sum(rows[0])
    return Fraction(sum(w * abs(x - y) for x, row in enumerate(rows) for y, w in enumerate(row)), total)


Floats = Float64[np.ndarray, "..."]
Ints = Int64[np.ndarray, "..."]
FAR: Final = 30.0  # ε·d beyond which an entry is not a variable of its own: e^-30 is 1e-13
NEVER: Final = 1e-7  # a response whose probability is never above this is dropped from a solution
TIGHT: Final = 1e-9  # feasibility tolerance of the solver
METHODS: Final = ("highs-ipm", "highs-ds")  # SciPy's methods, tried in this order


@dataclass(frozen=True, eq=False)
class Program:
    """The program: minimise Σ M[i,j]·|p_i - p_j| over matrices whose answers and responses are `points`.

    `reach` points are one ΔF, which costs ε: in proportion to the distance if `metric`, else for all up to
    there. `fair` adds monotone rows and columns, symmetry and fairness, on points without gaps.
    """

    points: Int64[np.ndarray, " points"]
    reach: int
    epsilon: float
    metric: bool
    fair: bool

    @property
    def size(self) -> int:
        return len(self.points)

    @cached_property
    def symmetric(self) -> bool:
        """Whether the points are symmetric, so that some optimum is too."""
        return bool((np.diff(self.points) == np.diff(self.points)[::-1]).all())

    @cached_property
    def cost(self) -> Floats:
        """The bound ε·d on log-ratios for any two answers; d counts ΔF, or records (∞ without a chain)."""
        apart = np.abs(self.points[:, None] - self.points[None, :])
        near = sparse.csr_matrix(apart <= self.reach)
        steps = apart / self.reach if self.metric else sparse.csgraph.shortest_path(near, unweighted=True)
        return np.asarray(self.epsilon * steps)

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
            return np.asarray(found.x[name] * factor)
    raise NoiseError(f"the linear program was not solved: {found.message}")


def _inequalities(program: Program) -> tuple[Ints, Ints, Floats]:
    """Return variables p, q and factors t of all p ≤ t·q that are not implied by others."""
    name, factor = program.entries
    own = factor == 1
    if program.fair:
        rows = _monotone_inequalities(program, name, own)
    else:
        j, k = program.pairs
        both = own[:, j] & own[:, k]
        times = np.exp(np.broadcast_to(program.cost[j, k], both.shape))[both]
        left, right = name[:, j][both], name[:, k][both]
        rows = [(left, right, times), (right, left, times)]
    small, large, times = (np.concatenate(part) for part in zip(*rows, strict=True))
    kept = small != large
    return small[kept], large[kept], times[kept]


def _monotone_inequalities(program: Program, name: Ints, own: Floats) -> list[tuple[Ints, Ints, Floats]]:
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


def repair_matrix(solved: Floats, program: Program) -> Floats:
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
    return np.asarray((closed + shown[:, None] * (total - sums) / shown.sum()) / total)


CLOSED: Final = 1 << 10  # points of the largest lattice on which the optimum has a closed form
SOLVED: Final = 320  # points of the largest lattice on which a linear program is solved
DEGENERATE: Final = 128
"""Points up to which a fair program with a small ε is solved, within seconds; 200 take HiGHS minutes."""
STEEPEST: Final = 30  # largest ε of a program: beyond, e^ε and 1 are too far apart for a solver's floats
PAIRS: Final = 1 << 20  # most inequalities of a program that is solved
BITS: Final = 1000  # a float of a solution becomes an integer weight in units of 2^-1000, which is exact


@dataclass(frozen=True, kw_only=True)
class _LinearProgram(ScalarMechanism):
    """Common part of both variants: a matrix is solved once, and repaired for every ε that is tried."""

    most: ClassVar[int] = CLOSED
    fair: ClassVar[bool]

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.has_closed_form:
            return
        if self.budget > STEEPEST:
            raise InvalidParameter(
                "epsilon",
                show(self.budget),
                "is too large for the solver that these steps to ΔF, or gaps, need",
                hint=f"at most {STEEPEST}, or choose another mechanism",
            )
        size = self.lattice.size or 0
        if size > SOLVED or self._program(self.budget).inequalities > PAIRS:
            raise InvalidParameter(
                "step",
                show(self.lattice.step),
                f"leaves a linear program over {size} points, {self.lattice.reach} steps to ΔF, "
                "which takes too long",
                hint="choose a larger step, any-database, or another mechanism",
            )

    @property
    def has_closed_form(self) -> bool:
        raise NotImplementedError

    @property
    def _chain(self) -> bool:
        """Whether ε only constrains adjacent points of a lattice without gaps, as in a counting query."""
        return not self.range.gaps and (self.promise == ANY_DATABASE or self.lattice.reach == 1)

    def _program(self, epsilon: Fraction) -> Program:
        every = self.promise == ANY_DATABASE
        return Program(self.lattice.points, self.lattice.reach, float(epsilon), metric=every, fair=self.fair)

    @cached_property
    def _solution(self) -> Float64[np.ndarray, "points points"]:
        return solve(self._program(self.budget))

    def _repaired_rows(self, epsilon: Fraction) -> Rows:
        columns = repair_matrix(self._solution, self._program(epsilon)).T
        return [[int(ldexp(value, BITS)) for value in column] for column in columns.tolist()]


@dataclass(frozen=True, kw_only=True)
class LinearProgram1(_LinearProgram):
    """The matrix with the least expected absolute error over all answers.

    Minimises Σ M[i,j]·|R_i - F_j| under R.1 and R.3, where responses and answers are the lattice's points.
    For any-database without gaps, and for counts (ΔF of one step), the optimum is the snapped geometric
    mechanism with every response replaced by the posterior median under a uniform prior (Ghosh, Roughgarden,
    Sundararajan 2009; tests compare it with HiGHS). It may never report the ends. Otherwise HiGHS solves the
    program and the solution is repaired. Up to 1024 points, or 320 with the solver. Fields are those of
    `ScalarMechanism`. Source: Croft thesis §5.2.4, table 5.3.

    >>> LinearProgram1(range=(0, 5), sensitivity=1, epsilon=0.5).matrix()[:3, 0].round(3).tolist()
    [0.0, 0.771, 0.09]
    """

    name: ClassVar[str] = "linear-program-1"
    summary: ClassVar[str] = "the least expected absolute error over all answers"
    source: ClassVar[str] = "Croft thesis §5.2.4, variant 1"
    fair: ClassVar[bool] = False

    @property
    def has_closed_form(self) -> bool:
        return self._chain

    def _rows(self, epsilon: Fraction) -> Rows:
        return self._remapped_rows(epsilon) if self.has_closed_form else self._repaired_rows(epsilon)

    def _remapped_rows(self, epsilon: Fraction) -> Rows:
        """Return the snapped geometric law with every response replaced by its posterior median."""
        noise = LaplaceNoise(self.lattice.reach / epsilon)
        rows = np.array(snapped_rows(self.lattice, noise), dtype=object)
        last = len(rows) - 1
        guess = [_median(rows[:, y].tolist()) for y in range(last // 2 + 1)]
        if last % 2 == 0:
            guess[-1] = last // 2
        guess += [last - y for y in guess[: (last + 1) // 2][::-1]]
        merged = np.zeros_like(rows)
        for y, r in enumerate(guess):
            merged[:, r] += rows[:, y]
        found: Rows = merged.tolist()
        return found


@dataclass(frozen=True, kw_only=True)
class LinearProgram2(_LinearProgram):
    """The least expected absolute error among monotone, symmetric and fair matrices.

    Symmetry is exact in the integers that are drawn; fairness and monotonicity hold within 2^-50 in closed
    form, and within a probability of 1e-6 otherwise. For any-database, and for counts, the matrix of the
    largest diagonal is the optimum unless ε times the width in ΔF is small, below about 1.
    Then HiGHS solves the program up to 128 points; beyond, that matrix is used all the same, with an error
    slightly above the least (at most 0.02 % where both are known). For database-record with several steps to
    ΔF, HiGHS solves it up to 320 points. Otherwise up to 1024 points. No gaps. Fields are those of
    `ScalarMechanism`. Source: Croft thesis §5.2.4, table 5.4.

    >>> LinearProgram2(range=(0, 5), sensitivity=1, epsilon=0.5).matrix()[:3, 0].round(3).tolist()
    [0.315, 0.315, 0.231]
    """

    name: ClassVar[str] = "linear-program-2"
    summary: ClassVar[str] = "the least expected absolute error of a fair, symmetric, monotone matrix"
    source: ClassVar[str] = "Croft thesis §5.2.4, variant 2"
    fair: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if self.range.gaps:
            self._refuse_gaps()
        super().__post_init__()

    @cached_property
    def has_closed_form(self) -> bool:
        lattice, size = self.lattice, self.lattice.size or 1
        best = self._chain and largest_diagonal_is_best(size, self.budget / lattice.reach)
        return best or (self._chain and size > DEGENERATE)

    def _rows(self, epsilon: Fraction) -> Rows:
        if not self.has_closed_form:
            return self._repaired_rows(epsilon)
        return fair_rows(self.lattice.size or 1, epsilon / self.lattice.reach)

    @cached_property
    def integers(self) -> IntegerMatrix | None:
        """The law that is certified and drawn, with the row of the mirrored answer exactly mirrored."""
        found = super().integers
        if found is None:
            return None
        mirrored = _mirror_rows(found)
        if self._cost(mirrored) > self.budget:
            raise NoiseError("the mirrored integers cost more than epsilon")
        return mirrored


def _median(weights: list[int]) -> int:
    total = sum(weights)
    return next(place for place, seen in enumerate(accumulate(weights)) if 2 * seen >= total)


def _mirror_rows(matrix: IntegerMatrix) -> IntegerMatrix:
    """Return rows of which the last mirror the first; only the last bits of large weights change."""
    rows = [list(row) for row in matrix.weights]
    last = len(rows) - 1
    if last % 2 == 0:
        middle, centre = rows[last // 2], last // 2
        lower = [min(a, b) for a, b in zip(middle, reversed(middle), strict=True)]
        lower[centre] += sum(middle) - sum(lower)
        rows[centre] = lower
    for x in range((last + 1) // 2):
        rows[last - x] = rows[x][::-1]
    return IntegerMatrix(tuple(tuple(row) for row in rows))
