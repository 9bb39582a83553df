"""What scores come to: ranks, ties, failures, error rates."""

from __future__ import annotations

import numpy as np
import pytest

from dpveil.attacks import Scores, equal_error_rate, named, passed
from dpveil.errors import InvalidParameter

NAMES = ("anna", "bob", "carl", "dora")


def scores(*rows: tuple[float, ...]) -> Scores:
    return Scores(np.array(rows, np.float64), NAMES)


def test_the_likeliest_person_is_named() -> None:
    found = scores((9, 1, 2, 3), (9, 1, 2, 3), (1, 2, 9, 8))
    assert named(found, ["anna", "bob", "dora"]).tolist() == [1, 0, 0]
    assert named(found, ["anna", "bob", "dora"], rank=2).tolist() == [1, 0, 1]
    assert named(found, ["anna", "bob", "dora"], rank=4).tolist() == [1, 1, 1]


def test_saying_the_same_of_everybody_is_guessing() -> None:
    """Else a constant attacker names everybody, or nobody, by how a sort breaks ties."""
    alike = scores((5, 5, 5, 5), (5, 5, 5, 5))
    for rank in (1, 2, 3, 4):
        assert named(alike, ["anna", "dora"], rank=rank) == pytest.approx(rank / 4)
    assert named(scores((7, 7, 1, 1)), ["bob"]).tolist() == [0.5]
    assert named(scores((9, 7, 7, 1)), ["bob"], rank=2).tolist() == [0.5]


def test_no_answer_is_a_failure_that_counts() -> None:
    found = scores((9, 1, 1, 1), (float("nan"),) * 4)
    assert named(found, ["anna", "anna"]).mean() == 0.5
    verified = passed(found, ["anna", "anna"], far=0.5)
    assert verified.rate == 0.5
    assert verified.impostors.size == 6


def test_who_is_unknown_and_what_does_not_match_is_refused() -> None:
    found = scores((9, 1, 1, 1))
    with pytest.raises(InvalidParameter, match="1 are missing"):
        named(found, ["eve"])
    with pytest.raises(InvalidParameter, match="do not match"):
        named(found, ["anna", "bob"])
    for rank in (0, 5):
        with pytest.raises(InvalidParameter, match="rank"):
            named(found, ["anna"], rank=rank)


def test_error_rates_of_scores_that_are_apart_overlap_or_say_nothing() -> None:
    apart = passed(scores((9, 1, 1, 1), (1, 9, 1, 1)), ["anna", "bob"], far=0)
    assert equal_error_rate(apart) == 0
    silent = passed(scores((float("nan"),) * 4), ["anna"], far=0.1)
    assert equal_error_rate(silent) == 0.5
    rng = np.random.default_rng(0)
    likeness = rng.normal(size=(400, 4))
    people = [NAMES[k % 4] for k in range(400)]
    likeness[np.arange(400), np.arange(400) % 4] += 2
    found = equal_error_rate(passed(Scores(likeness, NAMES), people, far=0.01))
    assert abs(found - 0.1587) < 0.09  # Φ(-1); six standard errors of 400 and 1200 draws
