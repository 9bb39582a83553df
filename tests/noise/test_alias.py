"""Alias tables and lazy tables: integers are exact, and ties have the law of what was rounded off."""

from collections import Counter
from fractions import Fraction
from typing import ClassVar

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpveil.errors import NoiseError
from dpveil.noise.alias_tables import LazyTable, build_alias, look_up
from dpveil.noise.bits import BitSource, SeededBits
from dpveil.noise.laplace import DigitTables, geometric_digit
from dpveil_audit.distributions import finite_distribution
from dpveil_audit.fit import fit

laws = st.integers(1, 8).flatmap(lambda n: st.lists(st.integers(0, 50), min_size=n, max_size=n))


@given(laws.filter(any), st.integers(3, 4))
@settings(max_examples=100, derandomize=True, deadline=None)
def test_every_word_tried_gives_exactly_the_weights(shares: list[int], column_bits: int):
    total = 1 << 9
    weights = [share * total // sum(shares) for share in shares]
    weights[weights.index(max(weights))] += total - sum(weights)
    table = build_alias(weights, total_bits=9, column_bits=column_bits)
    words = np.arange(total, dtype=np.uint64) | np.uint64(0b1011 << 60)  # bits above the law are not read
    counts = Counter(look_up(table, words, total_bits=9, column_bits=column_bits).tolist())
    assert [counts[i] for i in range(len(weights))] == weights


@pytest.mark.parametrize("weights", [[1, 2], [5, -1], [1] * 5, [2, 2, 0, 0, 0]])
def test_what_is_not_a_law_is_refused(weights: list[int]):
    with pytest.raises(NoiseError, match="do not make a law"):
        build_alias(weights, total_bits=2, column_bits=2)


@pytest.mark.parametrize("scale", [Fraction(255), Fraction(12, 5), Fraction(1, 50), Fraction(460_000_000)])
def test_weights_are_the_floors_of_independently_computed_probabilities(scale: Fraction):
    tables = DigitTables(scale)
    with mpmath.workdps(120):
        for place, table in enumerate(tables.tables):
            q = mpmath.exp(-mpmath.mpf(2047**place) * scale.denominator / scale.numerator)
            if place == len(tables.tables) - 1:
                law = [(1 - q) * q**j for j in range(2046)] + [q**2046]
            else:
                law = [(1 - q) * q**j / (1 - q**2047) for j in range(2047)]
            assert table.weights == [int(mpmath.floor(p * 2**63)) for p in law]


@given(st.fractions(Fraction(1, 10**6), 10**6), st.booleans(), st.sampled_from([15, 200]))
@settings(max_examples=40, derandomize=True, deadline=None)
def test_bounds_hold_the_probability_at_any_precision(rate: Fraction, leading: bool, base: int):
    for precision in (64, 160, 700):
        bounds = geometric_digit(rate, base, leading=leading)(precision)
        with mpmath.workprec(precision + 200):
            q = mpmath.exp(-mpmath.mpf(rate.numerator) / rate.denominator)
            law = [(1 - q) * q**j / (1 if leading else 1 - q**base) for j in range(base)]
            law[-1] = q ** (base - 1) if leading else law[-1]
            scaled = [p * mpmath.mpf(2) ** precision for p in law]
        assert all(low <= p <= high for (low, high), p in zip(bounds, scaled, strict=True))


def test_scales_far_too_small_for_any_table_still_have_floors():
    table = DigitTables(Fraction(1, 10**9)).tables[0]
    assert table.weights[0] == 2**63 - 1
    assert sum(table.weights) + table.rest == 2**63
    assert table.resolve(SeededBits(1)) == 0


def test_ties_have_the_law_of_the_remainders():
    """7 bits round off a third of the law; 8 000 ties against remainders computed by mpmath."""
    table = LazyTable(geometric_digit(Fraction(1, 5), 15, leading=False), total_bits=7, column_bits=4)
    with mpmath.workdps(60):
        q = mpmath.exp(mpmath.mpf(-1) / 5)
        scaled = [(1 - q) * q**j / (1 - q**15) * 128 for j in range(15)]
        rest = [float(p - mpmath.floor(p)) for p in scaled]
    assert table.rest == round(sum(rest)) > 1
    bits = SeededBits(11)
    ties = np.array([table.resolve(bits) for _ in range(8_000)])
    assert not fit(ties, finite_distribution(np.array(rest) / sum(rest))).is_rejected
    assert fit(ties, finite_distribution(np.array([float(p) for p in scaled]) / 128)).is_rejected


def test_a_tie_on_a_boundary_takes_more_bits_until_it_is_certain():
    """Outcomes 0 and 1 leave half a unit each: a tie that begins 0111...1 is decided by what follows."""

    class Chosen(BitSource):
        words_left: ClassVar[list[int]] = []

        def _first_key(self) -> bytes:
            return bytes(32)

        def fill(self, out: np.ndarray) -> None:
            out[:] = self.words_left.pop(0)

    def law(precision: int) -> list[tuple[int, int]]:
        return [(share << precision - 3, share << precision - 3) for share in (3, 5)]

    table = LazyTable(law, total_bits=2, column_bits=2)
    assert (table.weights, table.rest) == ([1, 2], 1)
    for words, outcome in (([2**63 - 1, 2**63 - 1, 5], 0), ([2**63, 0, 1], 1), ([3], 0), ([2**64 - 9], 1)):
        source = Chosen()
        source.words_left[:] = words
        assert table.resolve(source) == outcome


def test_a_probability_on_a_boundary_is_refused_rather_than_guessed():
    def law(precision: int) -> list[tuple[int, int]]:
        return [((1 << precision - 1) - 1, (1 << precision - 1) + 1)] * 2

    with pytest.raises(NoiseError, match="too close"):
        LazyTable(law, total_bits=4, column_bits=2)
