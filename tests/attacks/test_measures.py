"""Measures of scores: ranks, strangers, verification; ties, failures and intervals."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binom

from dpveil.attacks.base import Scores
from dpveil.attacks.measures import equal_error, identification, open_set, verification
from dpveil.errors import InvalidParameter

NAN = float("nan")
NAMES = ("ann", "bob", "eve")


def scores(*rows):
    return Scores(np.array(rows, np.float64), NAMES)


def test_ranks_are_counted_by_hand_with_failures_and_ties():
    found = scores([3, 2, 1], [3, 2, 1], [1, 3, 2], [NAN, NAN, NAN], [1, 1, 0])
    people = ["ann", "bob", "eve", "eve", "bob"]
    first = identification(found, people)
    assert first.value == pytest.approx((1 + 0 + 0 + 0 + 0.5) / 5)
    assert identification(found, people, rank=2).value == pytest.approx((1 + 1 + 1 + 0 + 1) / 5)
    assert (first.failures, first.releases, first.chance) == (1, 5, 1 / 3)
    assert first.low <= first.value <= first.high
    assert identification(found, people, rank=2).chance == 2 / 3
    with pytest.raises(InvalidParameter, match="rank"):
        identification(found, people, rank=4)
    with pytest.raises(InvalidParameter, match="1 are missing"):
        identification(found, [*people[:4], "zoe"])


def test_who_says_the_same_of_everybody_succeeds_by_chance():
    found = identification(Scores(np.zeros((6, 3)), NAMES), [*NAMES, *NAMES])
    assert found.value == pytest.approx(1 / 3)


def test_strangers_set_the_threshold():
    """The nearer the second likeliest person, the less sure is the attacker, whatever the unit.

    Strangers' seconds are at 0.2, 0.6 and none; known people's at 0.1, 0.4 and 0.8, which are right, at 0,
    which is wrong, and none.
    """
    found = scores(
        [1, 0.2, 0], [0, 3, 1.8], [NAN] * 3,
        [1, 0.1, 0], [0, 1, 0.4], [9, 0, 0], [0.8, 0, 1], [NAN] * 3,
    )  # fmt: skip
    people = ["x", "y", "z", "ann", "bob", "eve", "eve", "ann"]
    assert open_set(found, people, far=0.0).value == 0.0  # nobody passes where no stranger may
    assert open_set(found, people, far=0.34).value == pytest.approx(1 / 5)  # at 0.2: the first
    assert open_set(found, people, far=0.7).value == pytest.approx(2 / 5)  # at 0.6: two are right
    assert open_set(found, people, far=0.7).failures == 2
    with pytest.raises(InvalidParameter, match="strangers"):
        open_set(found, ["ann"] * 8, far=0.1)
    with pytest.raises(InvalidParameter, match="known people"):
        open_set(found, ["x"] * 8, far=0.1)
    with pytest.raises(InvalidParameter, match="far"):
        open_set(found, people, far=1.0)


def test_an_attacker_of_noise_finds_nobody_among_strangers():
    """400 releases of 10 known people: over 35 pass and are right with probability below 1e-9.

    The threshold lets a tenth of 400 strangers pass, so a fifth of noise at most, and a tenth of it is right.
    """
    random, names = np.random.default_rng(3), tuple(f"p{number}" for number in range(10))
    known = [names[number % 10] for number in range(400)]
    found = Scores(random.normal(size=(800, 10)), names)
    rate = open_set(found, [*known, *(f"s{number // 4}" for number in range(400))], far=0.1)
    assert rate.value * 400 <= 35
    assert binom.sf(35, 400, 0.02) < 1e-9
    assert rate.chance == pytest.approx(0.01)
    sure = found.likeness.copy()
    sure[np.arange(400), np.arange(400) % 10] += 20
    rate = open_set(Scores(sure, names), [*known, *(f"s{number // 4}" for number in range(400))], far=0.01)
    assert (rate.value, rate.high) == (1.0, 1.0)
    assert rate.low == pytest.approx(0.025**0.1)  # as few people as ten


def test_verification_counts_by_hand():
    found = scores([9, 1, 2], [8, 3, 0], [NAN] * 3)
    people = ["ann", "bob", "eve"]
    # Genuine 9, 3 and nothing; impostors 1, 2, 8, 0 and two of nothing.
    assert verification(found, people, far=0.01).value == 0.0  # not one of six may pass
    assert verification(found, people, far=0.17).value == pytest.approx(1 / 3)
    assert verification(found, people, far=0.4).value == pytest.approx(2 / 3)  # 8 and 2 pass
    assert verification(found, people, far=0.4).failures == 1


def test_the_equal_error_rate_is_where_both_rates_meet():
    perfect = Scores(10 * np.eye(3), NAMES)
    assert equal_error(perfect, NAMES).value == 0.0
    assert equal_error(scores([NAN] * 3), ["ann"]).value == 0.5
    assert equal_error(perfect, ["bob", "eve", "ann"]).value == 0.5  # no worse than guessing
    random = np.random.default_rng(4)
    names = tuple(f"p{number}" for number in range(20))
    likeness = random.normal(size=(2000, 20))
    people = [names[number % 20] for number in range(2000)]
    likeness[np.arange(2000), np.arange(2000) % 20] += 2.0
    rate = equal_error(Scores(likeness, names), people)
    assert rate.value == pytest.approx(0.1587, abs=0.03)  # Φ(-1): 2000 tries are off by 0.03 below 1e-3
    assert rate.low <= rate.value <= rate.high
    assert rate.high - rate.low < 0.1
