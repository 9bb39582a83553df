"""Classifiers of real and made pictures: what they must find, and what they must not be able to know."""

import numpy as np
import pytest

from dpveil_research.embedding_attacks import real_or_made

pytest.importorskip("sklearn")
PEOPLE = [f"p{number // 2:02}" for number in range(80)]
REAL = np.random.default_rng(1).normal(size=(80, 6))


@pytest.mark.parametrize("kind", ["linear", "trees"])
def test_what_differs_is_told_apart(kind):
    """A shift is linear; a square is not, and only trees see it."""
    made = REAL + np.array([5, 0, 0, 0, 0, 0]) if kind == "linear" else REAL * [6, 1, 1, 1, 1, 1]
    best, found = real_or_made(REAL, made, PEOPLE)
    assert (best, found.rate > 0.8) == (kind, True)
    low, high = found.interval()
    assert 0.7 < low <= found.rate <= high <= 1


def test_no_classifier_is_tried_on_a_person_whom_it_saw():
    """Each person has a pair of pictures of their own: learned by heart, they are told apart; not by others.

    80 fair coins in each of two kinds pass 0.8 with a chance below 10^-7.
    """
    person = np.repeat(10 * np.random.default_rng(2).normal(size=(40, 6)), 2, axis=0)
    way = np.repeat(np.random.default_rng(3).normal(size=(40, 6)), 2, axis=0)
    assert real_or_made(person + way, person - way, PEOPLE)[1].rate < 0.8
