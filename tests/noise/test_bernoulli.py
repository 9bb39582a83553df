"""Exact events: every digit of the chance counts, and what is drawn follows it."""

from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from dpveil.errors import NoiseError
from dpveil.noise.bernoulli import CHUNK, bernoulli
from dpveil.noise.bits import SeededBits
from sources import Scripted


@pytest.mark.parametrize("chance", ["1e-9", "1/256", "0.3", "1/3", "1/2", "0.999"])
def test_draws_follow_the_chance(chance):
    """Seeded; two-sided binomial at 1e-9."""
    size, chance = 400_000, Fraction(chance)
    hits = int(bernoulli(chance, size, SeededBits(5, str(chance))).sum())
    assert stats.binomtest(hits, size, float(chance)).pvalue > 1e-9


def test_a_wrong_chance_would_be_seen():
    hits = int(bernoulli(Fraction(3, 10), 400_000, SeededBits(6)).sum())
    assert stats.binomtest(hits, 400_000, 0.31).pvalue < 1e-9


def test_neighbouring_draws_are_independent():
    pairs = bernoulli(Fraction(1, 3), 400_000, SeededBits(7)).reshape(-1, 2)
    both = np.bincount(2 * pairs[:, 0] + pairs[:, 1], minlength=4)
    assert stats.chisquare(both, 200_000 * np.array([4, 2, 2, 1]) / 9).pvalue > 1e-9


@pytest.mark.parametrize(("byte", "true"), [(84, True), (86, False)])
def test_a_byte_that_differs_decides(byte, true):
    assert bernoulli(Fraction(1, 3), 1, Scripted(byte)).tolist() == [true]  # 256/3 = 85 and a third


@pytest.mark.parametrize(
    ("words", "true"),
    [
        ((85, (1 << 64) // 3 - 1), True),
        ((85, (1 << 64) // 3 + 1), False),
        ((85, (1 << 64) // 3, 0), True),
        ((85, (1 << 64) // 3, (1 << 64) // 3, (1 << 64) - 1), False),
    ],
)
def test_ties_are_decided_by_later_digits_exactly(words, true):
    assert bernoulli(Fraction(1, 3), 1, Scripted(*words)).tolist() == [true]


def test_a_chance_of_few_digits_ends():
    assert bernoulli(Fraction(1, 2), 1, Scripted(128, 0)).tolist() == [False]


def test_every_chance_of_one_byte_is_exact():
    every = Scripted(*np.arange(256, dtype=np.uint8).view("<u8").tolist(), *[0] * 2)
    assert int(bernoulli(Fraction(77, 256), 256, every).sum()) == 77


def test_long_draws_are_made_of_chunks():
    long = bernoulli(Fraction(1, 3), CHUNK + 5, SeededBits(8))
    assert np.array_equal(long[:CHUNK], bernoulli(Fraction(1, 3), CHUNK, SeededBits(8)))
    assert len(long) == CHUNK + 5
    assert len(bernoulli(Fraction(1, 3), 0, SeededBits(8))) == 0


@pytest.mark.parametrize("chance", [0, 1, -1, Fraction(3, 2)])
def test_what_is_no_chance_is_refused(chance):
    with pytest.raises(NoiseError, match="not between 0 and 1"):
        bernoulli(Fraction(chance), 1, SeededBits(1))
