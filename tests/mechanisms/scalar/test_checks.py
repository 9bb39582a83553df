"""Every check passes what is right and names the entry that is planted wrong."""

from __future__ import annotations

import numpy as np
import pytest

from dpveil.errors import InvalidParameter
from dpveil.mechanisms.scalar import ExplicitFair, Geometric
from dpveil.mechanisms.scalar.checks import (
    check_all,
    column_monotone,
    covering,
    distributions,
    fair,
    private,
    row_monotone,
    symmetric,
)

NUMBERS = list(range(6))
COUNT = {"range": (0, 5), "sensitivity": 1, "epsilon": "0.5"}


def good() -> np.ndarray:
    return ExplicitFair(**COUNT).matrix()


def planted(row: int, column: int, times: float) -> np.ndarray:
    matrix = good()
    matrix[row, column] *= times
    return matrix


def test_the_explicit_fair_matrix_passes_all() -> None:
    assert set(check_all(good(), NUMBERS, NUMBERS, 0.5).values()) == {None}


def test_a_snapped_matrix_loses_what_theorem_6_says() -> None:
    found = check_all(Geometric(**COUNT).matrix(), NUMBERS, NUMBERS, 0.5)
    assert {name for name, violation in found.items() if violation} == {"column monotonicity", "fairness"}


def test_private_names_entry_row_by_row() -> None:
    found = private(planted(3, 3, 1.01), NUMBERS, 0.5)
    assert found is not None
    assert (found.property, found.row, found.column) == ("R.1", 3, 3)
    assert found.found > found.bound
    assert "M[3, 3]" in str(found)
    lower = private(planted(5, 4, 0.99), NUMBERS, 0.5)
    assert lower is not None
    assert (lower.row, lower.column) == (5, 5)


def test_private_tolerance_is_of_the_logarithm() -> None:
    matrix = planted(3, 3, 1 + 1e-7)  # integers keep an ε that is lower by a part in 2^24
    assert private(matrix, NUMBERS, 0.5) is not None
    assert private(matrix, NUMBERS, 0.5, tolerance=2e-7) is None


def test_private_refuses_zero_beside_non_zero_and_negative_entries() -> None:
    for value in (0.0, -1e-13):
        matrix = good()
        matrix[0, 3] = value
        assert private(matrix, NUMBERS, 50) is not None
    zero = good()
    zero[0] = 0
    assert private(zero, NUMBERS, 0.5) is None


def test_private_by_relation() -> None:
    """Two steps to ΔF: database-record allows ε for both steps at once, any-database half for each."""
    matrix = np.array([[0.6, 0.4, 0.4], [0.4, 0.6, 0.6]])
    steep = float(np.log(1.5))
    assert private(matrix, [0, 1, 2], steep, 2, "database-record") is None
    assert private(matrix, [0, 1, 2], steep, 2, "any-database") is not None
    assert private(matrix, [0, 1, 2], steep * 2, 2, "any-database") is None
    assert private(matrix, [0, 3, 5], 0.01, 2, "database-record") is None
    assert private(matrix, [0, 2, 5], 0.01, 2, "database-record") is not None
    with pytest.raises(InvalidParameter, match="relation"):
        private(matrix, [0, 1, 2], 1, 1, "nobody")


def test_private_agrees_with_loops() -> None:
    rng = np.random.default_rng(8)
    verdicts = []
    for _ in range(300):
        matrix = rng.dirichlet(np.full(4, 20), 3).T
        answers, epsilon = [0, 1, 3], float(rng.uniform(0.1, 1.5))
        wrong = any(
            row[j] > np.exp(epsilon * abs(answers[j] - answers[k])) * row[k]
            for row in matrix
            for j in range(3)
            for k in range(3)
        )
        verdicts.append(wrong)
        assert (private(matrix, answers, epsilon) is not None) == wrong
    assert 20 < sum(verdicts) < 280


@pytest.mark.parametrize(
    ("responses", "answers", "place"),
    [
        ([0, 1, 1], [0, 1], (2, -1)),
        ([0, 2, 1], [0, 1], (2, -1)),
        ([0, 1, 2], [0, 2.6], (-1, 1)),
        ([0, 1, 2], [-0.6, 1], (-1, 0)),
    ],
)
def test_covering_names_category_or_answer(
    responses: list[float], answers: list[float], place: tuple[int, int]
) -> None:
    found = covering(np.full((3, 2), 1 / 3), responses, answers)
    assert found is not None
    assert (found.property, found.row, found.column) == ("R.2", *place)
    assert covering(np.full((3, 2), 1 / 3), [0, 1, 2], [-0.5, 2.5]) is None


def test_covering_refuses_endless_categories() -> None:
    with pytest.raises(InvalidParameter, match="finite"):
        covering(np.full((2, 1), 0.5), [0, np.inf], [0])


def test_distributions() -> None:
    negative = good()
    negative[3, 2] = -1e-13
    found = distributions(negative)
    assert found is not None
    assert (found.property, found.row, found.column) == ("R.3", 3, 2)
    short = distributions(planted(1, 4, 0.999))
    assert short is not None
    assert (short.row, short.column) == (-1, 4)
    assert distributions(np.array([[np.nan], [1.0]])) is not None


def test_row_monotone_on_both_sides_of_the_category() -> None:
    assert row_monotone(good(), NUMBERS, NUMBERS) is None
    for row, column in ((4, 0), (1, 5)):
        found = row_monotone(planted(row, column, 50), NUMBERS, NUMBERS)
        assert found is not None
        assert (found.row, found.column) == (row, column)
        assert found.found > found.bound


def test_column_monotone_on_both_sides_of_the_answer() -> None:
    assert column_monotone(good(), NUMBERS, NUMBERS) is None
    for row, column in ((0, 4), (5, 1)):
        found = column_monotone(planted(row, column, 50), NUMBERS, NUMBERS)
        assert found is not None
        assert (found.row, found.column) == (row, column)


def test_two_answers_in_one_category_have_the_same_chances() -> None:
    matrix = np.array([[0.7, 0.6, 0.2], [0.3, 0.4, 0.8]])
    found = row_monotone(matrix, [0, 10], [0, 1, 10])
    assert found is not None
    assert found.row == 0
    assert row_monotone(np.array([[0.7, 0.7, 0.2], [0.3, 0.3, 0.8]]), [0, 10], [0, 1, 10]) is None


def test_symmetric_and_fair() -> None:
    found = symmetric(planted(1, 2, 1.001))
    assert found is not None
    assert (found.row, found.column) == (1, 2)
    unfair = fair(planted(3, 3, 1.001), NUMBERS, NUMBERS)
    assert unfair is not None
    assert (unfair.row, unfair.column) == (3, 3)
    assert fair(planted(3, 3, 1.001), NUMBERS, NUMBERS, tolerance=0.01) is None


@pytest.mark.parametrize("numbers", [[0, 1], [0, 1, 2, 2, 4, 5], [5, 4, 3, 2, 1, 0]])
def test_numbers_have_to_fit(numbers: list[float]) -> None:
    with pytest.raises(InvalidParameter):
        fair(good(), NUMBERS, numbers)
    with pytest.raises(InvalidParameter, match="table"):
        distributions([1.0, 2.0])
