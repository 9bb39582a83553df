"""Utility against loops, and remapping against every map there is."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from dpveil.errors import InvalidParameter
from dpveil.mechanisms.scalar import Geometric, LinearProgram1
from dpveil.numbers.expected import (
    absolute,
    expected_absolute_error,
    expected_loss,
    expected_squared_error,
    loss_of_answers,
    remap,
    squared,
    worst_loss,
)


def example(
    seed: int, responses: int = 4, answers: int = 3
) -> tuple[np.ndarray, list[float], list[float], np.ndarray]:
    rng = np.random.default_rng(seed)
    matrix = rng.dirichlet(np.ones(responses), answers).T
    return (
        matrix,
        sorted(rng.normal(size=responses)),
        sorted(rng.normal(size=answers)),
        rng.uniform(size=answers),
    )


def capped(answers: np.ndarray, guesses: np.ndarray) -> np.ndarray:
    """A loss that is not symmetric: guessing too low is worse."""
    return np.where(guesses < answers, 3.0, 1.0) * np.abs(answers - guesses)


@pytest.mark.parametrize("seed", range(5))
def test_expectations_are_those_of_loops(seed: int) -> None:
    matrix, responses, answers, prior = example(seed)
    for power, found in ((1, expected_absolute_error), (2, expected_squared_error)):
        each = [
            sum(matrix[i, j] * abs(answers[j] - responses[i]) ** power for i in range(4)) for j in range(3)
        ]
        assert found(matrix, responses, answers) == pytest.approx(sum(each) / 3)
        weighted = sum(p * e for p, e in zip(prior, each, strict=True)) / sum(prior)
        assert found(matrix, responses, answers, prior) == pytest.approx(weighted)
        loss = absolute if power == 1 else squared
        assert worst_loss(matrix, responses, answers, loss) == pytest.approx(max(each))
        assert loss_of_answers(matrix, responses, answers, loss) == pytest.approx(each)


def test_the_loss_is_asked_about_answer_and_guess_in_this_order() -> None:
    found = expected_loss([[1.0]], [0], [2], loss=capped)
    assert found == 6
    assert remap([[0.5, 0.5]], [0], [0, 1], loss=capped).guesses.tolist() == [1]


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("loss", [absolute, squared, capped])
def test_remapping_is_the_best_of_all_maps(seed: int, loss: object) -> None:
    matrix, responses, answers, prior = example(seed)
    chances = prior / prior.sum()

    def left(guesses: tuple[float, ...]) -> float:
        return sum(
            chances[j] * matrix[i, j] * float(loss(np.array(answers[j]), np.array(guesses[i])))
            for i in range(4)
            for j in range(3)
        )

    found = remap(matrix, responses, answers, prior, loss)
    assert found.loss == pytest.approx(min(left(guesses) for guesses in product(answers, repeat=4)))
    assert left(tuple(found.guesses)) == pytest.approx(found.loss)


def test_formula_5_77_counts_the_response_twice() -> None:
    """A loss of 1 whatever is guessed leaves 1; as printed, with P(r) once more, it leaves less."""
    matrix, responses, answers, _ = example(1)
    shown = matrix.mean(axis=1)
    published = sum(shown[i] * sum(matrix[i, j] / 3 for j in range(3)) for i in range(4))
    ones = remap(matrix, responses, answers, loss=lambda f, g: np.ones(np.broadcast_shapes(f.shape, g.shape)))
    assert ones.loss == pytest.approx(1)
    assert published < 0.9


def test_a_response_that_never_comes_is_read_as_its_nearest_answer() -> None:
    found = remap([[0, 0], [1, 0.5], [0, 0.5]], [9, 0, 1], [0, 10])
    assert found.guesses.tolist() == [10, 0, 10]


def test_the_remapped_geometric_mechanism_is_variant_1() -> None:
    """Ghosh, Roughgarden and Sundararajan 2009: remapping brings the one to the other's error."""
    numbers = list(range(13))
    query = {"range": (0, 12), "sensitivity": 1, "epsilon": "0.3"}
    found = remap(Geometric(**query).matrix(), numbers, numbers)
    best = expected_absolute_error(LinearProgram1(**query).matrix(), numbers, numbers)
    assert best == pytest.approx(found.loss, rel=1e-4)
    assert best < 0.95 * expected_absolute_error(Geometric(**query).matrix(), numbers, numbers)


@pytest.mark.parametrize("prior", [[1, 2], [0, 0, 0], [1, -1, 1], [1, np.nan, 1]])
def test_priors_have_to_be_chances(prior: list[float]) -> None:
    matrix, responses, answers, _ = example(2)
    with pytest.raises(InvalidParameter, match="prior"):
        remap(matrix, responses, answers, prior)


def test_shapes_have_to_fit() -> None:
    with pytest.raises(InvalidParameter, match="responses"):
        expected_absolute_error(np.eye(3), [0, 1], [0, 1, 2])
