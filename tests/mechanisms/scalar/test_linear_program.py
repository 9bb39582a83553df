"""The linear programs: the thesis' tables, optimality against programs written anew, and the repair."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from scipy.optimize import linprog

from dpveil.errors import InvalidParameter
from dpveil.mechanisms.scalar import ExplicitFair, Geometric, LinearProgram1, LinearProgram2
from dpveil.mechanisms.scalar.linear_program import (
    Program,
    fair_rows,
    largest_diagonal_is_best,
    repair_matrix,
    solve,
)
from dpveil.mechanisms.scalar.ranges import Range
from dpveil.noise.bits import SeededBits

TABLE_5_3 = """
0     0     0     0     0     0
0.771 0.622 0.378 0.229 0.139 0.084
0.090 0.149 0.245 0.149 0.091 0.055
0.055 0.090 0.149 0.245 0.149 0.090
0.084 0.139 0.229 0.378 0.622 0.771
0     0     0     0     0     0
"""
TABLE_5_4 = """
0.315 0.191 0.116 0.070 0.043 0.026
0.315 0.315 0.191 0.116 0.070 0.043
0.231 0.265 0.315 0.191 0.116 0.070
0.070 0.116 0.191 0.315 0.265 0.231
0.043 0.070 0.116 0.191 0.315 0.315
0.026 0.043 0.070 0.116 0.191 0.315
"""
COUNT = {"range": (0, 5), "sensitivity": 1, "epsilon": "0.5"}


def printed(text: str) -> np.ndarray:
    return np.array([[float(word) for word in line.split()] for line in text.strip().splitlines()])


def error(matrix: np.ndarray, points: np.ndarray | None = None) -> float:
    points = np.arange(len(matrix)) if points is None else points
    return float((matrix * np.abs(points[:, None] - points[None, :])).sum())


def private(matrix, epsilon, sensitivity=1, relation="any-database", tolerance=1e-12) -> bool:
    """Requirement 1 (Croft thesis 5.52) for the answers 0, 1, 2, ..., to a tolerance of log-ratios."""
    n = np.arange(matrix.shape[1])
    apart = np.abs(n[:, None] - n[None, :])
    bound = epsilon * apart / sensitivity
    if relation == "database-record":
        bound = np.where(apart > sensitivity, np.inf, float(epsilon))
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = np.log(matrix[:, :, None] / matrix[:, None, :])
    ratios[(matrix[:, :, None] == 0) & (matrix[:, None, :] == 0)] = 0
    return bool((np.nan_to_num(ratios, nan=np.inf) <= bound + tolerance).all())


def broken(matrix, epsilon, sensitivity=1, relation="any-database", tolerance=1e-12) -> set[str]:
    """Which properties a square matrix lacks: requirements 1 and 3, and 5.58 to 5.63."""
    n, true = np.arange(len(matrix)), np.diagonal(matrix)
    below, above = n[1:, None] <= n[None, :], n[:-1, None] >= n[None, :]
    down = np.where(below, matrix[:-1] - matrix[1:], np.where(above, matrix[1:] - matrix[:-1], 0))
    along = np.where(
        below, (matrix.T)[:-1] - (matrix.T)[1:], np.where(above, (matrix.T)[1:] - (matrix.T)[:-1], 0)
    )
    holds = {
        "private": private(matrix, epsilon, sensitivity, relation, tolerance),
        "distributions": (matrix >= 0).all() and np.allclose(matrix.sum(axis=0), 1, atol=tolerance * len(n)),
        "rows": along.max() <= tolerance,
        "columns": down.max() <= tolerance,
        "symmetry": np.abs(matrix - matrix[::-1, ::-1]).max() <= tolerance,
        "fairness": np.abs(true - true[0]).max() <= tolerance,
    }
    return {name for name, kept in holds.items() if not kept}


def test_the_explicit_fair_matrix_has_all_properties_and_a_snapped_one_loses_what_theorem_6_says() -> None:
    assert broken(ExplicitFair(**COUNT).matrix(), 0.5) == set()
    assert broken(Geometric(**COUNT).matrix(), 0.5) == {"columns", "fairness"}


def law(found: LinearProgram1 | LinearProgram2) -> np.ndarray:
    """The matrix before it is mixed with a uniform law and rounded to 64 bits, which costs up to 1e-4."""
    rows = found._rows(found.budget)
    return np.array([[weight / sum(row) for weight in row] for row in rows]).T


def independent(points: np.ndarray, bound: np.ndarray, fair: bool) -> float:
    """The optimum of a dense program written straight from 5.52 to 5.63, one row for each formula."""
    n = len(points)
    below, equal, right = [], [], []

    def entry(*terms: tuple[int, int, float]) -> np.ndarray:
        row = np.zeros((n, n))
        for i, j, factor in terms:
            row[i, j] += factor
        return row.ravel()

    for i in range(n):
        for j in range(n):
            for k in range(n):
                if j != k and np.isfinite(bound[j, k]):
                    below.append(entry((i, j, 1), (i, k, -np.exp(bound[j, k]))))
    for j in range(n):
        equal.append(entry(*((i, j, 1) for i in range(n))))
        right.append(1.0)
    if fair:
        for i in range(n):
            for j in range(n - 1):
                sign = 1 if j + 1 <= i else -1
                below.append(entry((i, j, sign), (i, j + 1, -sign)))
                below.append(entry((j, i, sign), (j + 1, i, -sign)))
            equal.append(entry((i, i, 1), (0, 0, -1)))
            right.append(0.0)
            for j in range(n):
                equal.append(entry((i, j, 1), (n - 1 - i, n - 1 - j, -1)))
                right.append(0.0)
    cost = np.abs(points[:, None] - points[None, :]).ravel()
    found = linprog(cost, np.array(below), np.zeros(len(below)), np.array(equal), right, method="highs-ds")
    return float(found.fun)


def records(points: np.ndarray, reach: int, epsilon: float) -> np.ndarray:
    apart = np.abs(points[:, None] - points[None, :])
    return np.where(apart <= reach, epsilon, np.inf)


def test_table_5_3_but_one_misprint() -> None:
    """0.091 breaks the symmetry of the table and the sum of its column; the optimum has 0.0901."""
    found = LinearProgram1(**COUNT).matrix()
    table = printed(TABLE_5_3)
    assert table[2, 4] != table[3, 1]
    assert table[:, 4].sum() == pytest.approx(1.001)
    table[2, 4] = table[3, 1]
    assert np.abs(found - table).max() <= 0.0005 + 1e-9


def test_table_5_4() -> None:
    assert np.abs(LinearProgram2(**COUNT).matrix() - printed(TABLE_5_4)).max() <= 0.0005 + 1e-9


@pytest.mark.parametrize("size", [2, 3, 6, 9, 14])
@pytest.mark.parametrize("epsilon", [0.02, 0.1, 0.5, 1.3, 3])
def test_closed_variant_1_is_the_optimum_of_the_solver(size: int, epsilon: float) -> None:
    found = LinearProgram1(range=(0, size - 1), sensitivity=1, epsilon=epsilon)
    program = Program(np.arange(size), 1, epsilon, metric=True, fair=False)
    assert found.has_closed_form
    assert error(law(found)) == pytest.approx(error(solve(program)), rel=1e-6)


@pytest.mark.parametrize("size", [2, 3, 4, 7, 12, 21])
@pytest.mark.parametrize("epsilon", ["0.02", "0.1", "0.5", "1.3", "3"])
def test_variant_2_is_the_optimum_of_the_solver(size: int, epsilon: str) -> None:
    found = LinearProgram2(range=(0, size - 1), sensitivity=1, epsilon=epsilon)
    program = Program(np.arange(size), 1, float(epsilon), metric=True, fair=True)
    assert error(law(found)) == pytest.approx(error(solve(program)), rel=1e-6)


@pytest.mark.parametrize("variant", [LinearProgram1, LinearProgram2])
@pytest.mark.parametrize(
    ("reach", "epsilon", "relation"),
    [
        (1, 0.5, "database-record"),
        (2, 0.7, "database-record"),
        (3, 0.7, "any-database"),
        (3, 0.2, "database-record"),
        (7, 1.0, "database-record"),
    ],
)
def test_objective_is_that_of_an_independent_program(
    variant: type[LinearProgram1] | type[LinearProgram2], reach: int, epsilon: float, relation: str
) -> None:
    points = np.arange(8)
    found = variant(range=(0, 7), sensitivity=reach, epsilon=epsilon, relation=relation, step=1)
    bound = records(points, reach, epsilon)
    if relation == "any-database":
        bound = epsilon / reach * np.abs(points[:, None] - points[None, :])
    assert error(found.matrix()) == pytest.approx(independent(points, bound, variant.fair), rel=1e-6)
    assert found.certificate is not None
    cost = found.certificate.epsilon if relation == "database-record" else found.certificate.per_distance
    assert cost <= found.epsilon


@pytest.mark.parametrize("gaps", [[(2, 5)], [(3, 6)], [(1, 4), (6, 8)]])
@pytest.mark.parametrize("relation", ["any-database", "database-record"])
def test_gaps_are_taken_by_variant_1(gaps: list[tuple[int, int]], relation: str) -> None:
    found = LinearProgram1(range=Range(0, 9, gaps=gaps), sensitivity=2, epsilon=1, relation=relation, step=1)
    points = found.lattice.points
    bound = np.abs(points[:, None] - points[None, :]) / 2
    bound = records(points, 2, 1) if relation == "database-record" else bound
    assert error(found.matrix(), points) == pytest.approx(independent(points, bound, fair=False), rel=1e-4)


def test_variant_2_refuses_gaps() -> None:
    with pytest.raises(InvalidParameter, match="gaps"):
        LinearProgram2(range=Range(0, 9, gaps=[(2, 5)]), sensitivity=1, epsilon=1)


@pytest.mark.parametrize(
    ("last", "epsilon", "sensitivity", "relation"),
    [
        (5, 0.5, 1, None),
        (40, 0.3, 1, None),
        (41, 2, 3, None),
        (12, 0.03, 1, None),
        (13, 0.5, 4, "database-record"),
        (12, 1.5, 2, "database-record"),
    ],
)
def test_variant_2_has_its_properties_within_what_it_states(
    last: int, epsilon: float, sensitivity: int, relation: str | None
) -> None:
    found = LinearProgram2(
        range=(0, last), sensitivity=sensitivity, epsilon=epsilon, relation=relation, step=1
    )
    given = found.matrix(), epsilon, sensitivity, found.promise
    assert broken(*given).isdisjoint({"private", "distributions", "symmetry"})
    assert broken(*given, tolerance=1e-6) == set()
    if found.has_closed_form:
        assert broken(*given, tolerance=2.0**-50) == set()
    assert found.integers is not None
    rows = found.integers.weights
    assert all(row == other[::-1] for row, other in zip(rows, rows[::-1], strict=True))


def test_a_small_budget_wants_a_smaller_diagonal_and_a_solver() -> None:
    small = LinearProgram2(range=(0, 11), sensitivity=1, epsilon="0.03")
    assert not small.has_closed_form
    assert largest_diagonal_is_best(12, Fraction("0.1"))
    program = Program(np.arange(12), 1, 0.03, metric=True, fair=True)
    assert solve(program)[0, 0] < 0.9974 / sum(np.exp(-0.03 * abs(i - 5)) for i in range(12))


def test_a_large_query_of_a_small_budget_is_nearly_optimal_without_a_solver() -> None:
    """HiGHS finds 2883.2555 for 101 points at ε = 0.01; the largest diagonal is within 0.02 %."""
    assert LinearProgram2(range=(0, 128), sensitivity=1, epsilon="0.001").has_closed_form
    assert not LinearProgram2(range=(0, 100), sensitivity=1, epsilon="0.001").has_closed_form
    best = 2883.255542
    rows = fair_rows(101, Fraction("0.01"))
    found = error(np.array([[weight / sum(row) for weight in row] for row in rows]))
    assert best < found < best * 1.0002


@pytest.mark.parametrize("size", range(2, 8))
def test_a_smaller_diagonal_keeps_the_sums_and_the_promise(size: int) -> None:
    best, rows = (fair_rows(size, Fraction(1, 2), spare) for spare in (0, 1 << 250))
    assert len({sum(row) for row in rows}) == 1
    assert private(np.array(rows, np.float64).T, 0.5)
    assert rows[0][0] * sum(best[0]) < best[0][0] * sum(rows[0])


def test_violations_of_a_solver_are_found_and_repaired() -> None:
    rng = np.random.default_rng(4)
    for fair in (False, True):
        for metric in (True, False):
            program = Program(np.arange(9), 2, 0.6, metric=metric, fair=fair)
            off = solve(program) + rng.uniform(-1e-9, 1e-9, (9, 9))
            relation = "any-database" if metric else "database-record"
            assert not private(off, 0.6, 2, relation)
            fixed = repair_matrix(off, program)
            assert broken(fixed, 0.6, 2, relation).isdisjoint({"private", "distributions"})
            assert np.abs(fixed - off).max() < 1e-7


def test_far_entries_follow_from_near_ones() -> None:
    """61 points at ε = 2: entries fall to e^-120, which no solver sees, and R.1 holds for them too."""
    for reach in (1, 2):
        program = Program(np.arange(61), reach, 2.0, metric=False, fair=True)
        fixed = repair_matrix(solve(program), program)
        assert private(fixed, 2, reach, "database-record")


def test_sizes_that_take_too_long_are_refused() -> None:
    with pytest.raises(InvalidParameter, match="at most 1024"):
        LinearProgram1(range=(0, 1024), sensitivity=1, epsilon=1)
    with pytest.raises(InvalidParameter, match="takes too long"):
        LinearProgram2(range=(0, 400), sensitivity=2, epsilon=1, relation="database-record", step=1)


@pytest.mark.parametrize("last", [513, 600])
def test_more_points_than_a_noisy_lattice_has(last):
    """The snapped law behind variant 1 is worked out beyond the largest matrix of `geometric` too."""
    method = LinearProgram1(range=(0, last), sensitivity=1, epsilon=1)
    assert method.certificate.epsilon <= 1
    assert 0 <= method.release(3, SeededBits(1)) <= last


def test_what_no_solver_can_hold_is_refused_at_once():
    gapped = Range(0, 11, gaps=[(1, 3)])
    with pytest.raises(InvalidParameter, match="too large for the solver"):
        LinearProgram1(range=gapped, sensitivity=1, epsilon=40, relation="database-record")
