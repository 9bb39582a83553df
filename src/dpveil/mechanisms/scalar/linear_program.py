"""The linear-programming mechanisms of a range with two ends (Croft thesis §5.2.4)."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import accumulate
from math import ldexp
from typing import ClassVar, Final

import numpy as np
from jaxtyping import Float64

from dpveil.core.numbers import show
from dpveil.errors import InvalidParameter, NoiseError
from dpveil.mechanisms.scalar.base import ANY, ScalarMechanism
from dpveil.mechanisms.scalar.certify import Rows
from dpveil.mechanisms.scalar.fair_optimum import fair_rows, largest_diagonal_is_best
from dpveil.mechanisms.scalar.noises import LaplaceNoise
from dpveil.mechanisms.scalar.noisy import snapped_rows
from dpveil.mechanisms.scalar.programs import Program, repaired, solve
from dpveil.noise.matrix import IntegerMatrix

CLOSED: Final = 1 << 10
"""Points of the largest lattice on which the optimum has a closed form."""
SOLVED: Final = 320
"""Points of the largest lattice on which a linear program is solved."""
DEGENERATE: Final = 128
"""Points up to which a fair program with a small ε is solved, within seconds; 200 take HiGHS minutes."""
STEEPEST: Final = 30
"""Largest ε of a program: beyond, e^ε and 1 are too far apart for a solver's floats."""
PAIRS: Final = 1 << 20
"""Most inequalities of a program that is solved."""
BITS: Final = 1000
"""A float of a solution becomes an integer weight in units of 2^-1000, which is exact."""


@dataclass(frozen=True, kw_only=True)
class _LinearProgram(ScalarMechanism):
    """Common part of both variants: a matrix is solved once, and repaired for every ε that is tried."""

    most: ClassVar[int] = CLOSED
    fair: ClassVar[bool]

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.closed:
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
    def closed(self) -> bool:
        """Whether the optimum has a closed form, so that no solver is needed."""
        raise NotImplementedError

    @property
    def _chain(self) -> bool:
        """Whether ε only constrains adjacent points of a lattice without gaps, as in a counting query."""
        return not self.range.gaps and (self.promise == ANY or self.lattice.reach == 1)

    def _program(self, epsilon: Fraction) -> Program:
        every = self.promise == ANY
        return Program(self.lattice.points, self.lattice.reach, float(epsilon), metric=every, fair=self.fair)

    @cached_property
    def _solved(self) -> Float64[np.ndarray, "points points"]:
        return solve(self._program(self.budget))

    def _repaired_rows(self, epsilon: Fraction) -> Rows:
        columns = repaired(self._solved, self._program(epsilon)).T
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
    def closed(self) -> bool:
        """Whether the optimum has a closed form, so that no solver is needed."""
        return self._chain

    def _rows(self, epsilon: Fraction) -> Rows:
        return self._remapped_rows(epsilon) if self.closed else self._repaired_rows(epsilon)

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
    largest diagonal (`fair_optimum`) is the optimum unless ε times the width in ΔF is small, below about 1.
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
    def closed(self) -> bool:
        """Whether the optimum has a closed form, so that no solver is needed."""
        lattice, size = self.lattice, self.lattice.size or 1
        best = self._chain and largest_diagonal_is_best(size, self.budget / lattice.reach)
        return best or (self._chain and size > DEGENERATE)

    def _rows(self, epsilon: Fraction) -> Rows:
        if not self.closed:
            return self._repaired_rows(epsilon)
        return fair_rows(self.lattice.size or 1, epsilon / self.lattice.reach)

    @cached_property
    def integers(self) -> IntegerMatrix | None:
        """The law that is certified and drawn, with the row of the mirrored answer exactly mirrored."""
        found = super().integers
        if found is None:
            return None
        mirrored = _mirrored(found)
        if self._cost(mirrored) > self.budget:
            raise NoiseError("the mirrored integers cost more than epsilon")
        return mirrored


def _median(weights: list[int]) -> int:
    """Return the first index at which half of the weight is reached."""
    total = sum(weights)
    return next(place for place, seen in enumerate(accumulate(weights)) if 2 * seen >= total)


def _mirrored(matrix: IntegerMatrix) -> IntegerMatrix:
    """Return rows of which the last ones mirror the first ones; only the last bits of large weights
    change.
    """
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
