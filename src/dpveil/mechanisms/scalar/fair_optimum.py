"""The fair, symmetric, monotone matrix with the least expected absolute error, without a solver.

Let a = e^-ε for one step, c the diagonal and m the middle column. Every entry is at least c·a^|i-j|, so the
largest c is the one at which column m has no more than that. Then M[i,j] ≤ M[i,j+1]/a also determines the
triangle i ≤ j ≤ m, and below the diagonal every column lies between a times the next column and the next
column itself, with a known sum. Filling each column from the diagonal outwards, from the middle column on,
puts the most mass within every distance: by induction, what a column can hold up to a row is monotone in what
the next one holds. So for this c the matrix is the best for every loss that grows with distance. That this c
is the best is not proved. By convexity in c it is the best if lowering c slightly does not help; the test of
that uses one family of matrices with smaller c, and agreed with HiGHS in 1372 cases (2 to 41 points, ε from
0.01 to 4).
"""

from __future__ import annotations

from fractions import Fraction
from typing import Final

from dpveil.mechanisms.scalar.certify import Rows
from dpveil.mechanisms.scalar.noises import PRECISION
from dpveil.noise.laplace import exp_below

LOWER: Final = 10
"""The step to a smaller diagonal is the largest possible one divided by 2 to this power."""


def fair_rows(size: int, rate: Fraction, spare: int = 0) -> Rows:
    """Return the integer weights of every response for the answers 0..size-1; `rate` is ε for one step.

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
        column = _filled(column, j, power, total)
        columns.append(column)
    first = columns[::-1]
    return first + [row[::-1] for row in first[: size // 2][::-1]]


def _filled(upper: list[int], j: int, power: list[int], total: int) -> list[int]:
    """Return column j from the next one: the upper triangle is determined, the rest filled from the
    diagonal.
    """
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
