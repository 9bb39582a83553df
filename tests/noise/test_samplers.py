"""Samplers against laws computed elsewhere, ties and tails included; α = 1e-9 a fit."""

import math
from fractions import Fraction

import numpy as np
import pytest

from dpveil.errors import NoiseError
from dpveil.noise import backend, kernels, laplace
from dpveil.noise.bits import SeededBits
from dpveil.noise.gaussian import below_exp, discrete_gaussian
from dpveil.noise.integer_matrix import IntegerMatrix, certify_matrix, log_above, quantise
from dpveil.noise.laplace import DigitTables, discrete_laplace, draw
from dpveil_audit.distributions import (
    finite_distribution,
    gaussian_distribution,
    laplace_distribution,
    laplace_residues,
)
from dpveil_audit.fit import fit, fit_pairs

N = 400_000
SCALES = [
    Fraction(1, 1000),
    Fraction(1, 7),
    Fraction(12, 5),
    Fraction(255),
    Fraction(10**5),
    Fraction(46 * 10**7),
]


@pytest.fixture
def plain(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backend._State, "plain", True)


@pytest.mark.parametrize("scale", SCALES)
def test_discrete_laplace_has_its_law(scale: Fraction):
    sample = discrete_laplace(scale, N, SeededBits(1))
    assert not fit(sample, laplace_distribution(scale)).is_rejected
    assert not fit_pairs(sample, laplace_distribution(scale)).is_rejected


@pytest.mark.parametrize("scale", SCALES[2:])
def test_a_wrong_scale_is_seen(scale: Fraction):
    sample = discrete_laplace(scale, N, SeededBits(1))
    assert fit(sample, laplace_distribution(scale * 98 / 100)).is_rejected
    assert fit(sample, laplace_distribution(scale * 102 / 100)).is_rejected


@pytest.mark.parametrize("modulus", [2, 2047, 2048])
def test_low_digits_have_their_law_at_a_large_scale(modulus: int):
    scale = Fraction(46 * 10**7)
    sample = np.abs(discrete_laplace(scale, N, SeededBits(2))) % modulus
    assert not fit(sample, laplace_residues(scale, modulus)).is_rejected


@pytest.mark.parametrize("scale", [Fraction(1, 3), Fraction(3, 2), Fraction(20), Fraction(999)])
def test_tables_of_seven_bits_have_the_same_law(scale: Fraction):
    """15 columns of 7 bits: one draw in five meets a tie, one in 400 an open leading digit."""
    tables = DigitTables(scale, column_bits=4, total_bits=7)
    assert len(tables.tables) == {Fraction(20): 2, Fraction(999): 4}.get(scale, 1)
    sample = draw(tables, 60_000, SeededBits(3))
    assert not fit(sample, laplace_distribution(scale)).is_rejected
    assert not fit(np.abs(sample) % 15, laplace_residues(scale, 15)).is_rejected


@pytest.mark.parametrize("planted", ["ties dropped", "tail cut", "sign of zero", "one bit short"])
def test_planted_faults_are_seen(planted: str, monkeypatch: pytest.MonkeyPatch):
    tables = DigitTables(Fraction(3, 2), column_bits=4, total_bits=7)
    if planted == "ties dropped":
        monkeypatch.setattr(laplace.LazyTable, "resolve", lambda self, bits: 0)
    elif planted == "tail cut":
        tables = DigitTables(Fraction(8), column_bits=11, total_bits=63)
        monkeypatch.setattr(tables, "packed", np.where(np.arange(2048) > 60, 0, tables.packed))
    elif planted == "sign of zero":
        monkeypatch.setattr(
            laplace, "_repair", lambda tables, words, bits: np.zeros(words.shape[1], np.int64)
        )
    else:
        tables.packed = tables.packed & ~np.uint64(1 << 5)
    law = laplace_distribution(Fraction(8) if planted == "tail cut" else Fraction(3, 2))
    assert fit(draw(tables, 60_000, SeededBits(4)), law).is_rejected


@pytest.mark.parametrize("scale", [*SCALES, Fraction(10, 3), Fraction(2**50)])
def test_compiled_and_plain_give_the_same_numbers(scale: Fraction, monkeypatch: pytest.MonkeyPatch):
    backend.compile_now()
    compiled = discrete_laplace(scale, 200_000, SeededBits(5))
    monkeypatch.setattr(backend._State, "plain", True)
    assert np.array_equal(compiled, discrete_laplace(scale, 200_000, SeededBits(5)))


def test_kernels_as_plain_python_are_a_second_implementation():
    tables = DigitTables(Fraction(20), column_bits=4, total_bits=7)
    words = SeededBits(6).words(2 * 3000).reshape(2, -1)
    ours, theirs = np.empty(3000, np.int64), np.empty(3000, np.int64)
    todo = laplace._settle(tables, words, ours)
    with np.errstate(over="ignore"):
        same = kernels.laplace.py_func(words, tables.packed, tables.powers, np.int64(7), np.int64(4), theirs)
    assert np.array_equal(todo, same)
    settled = np.setdiff1d(np.arange(3000), todo)
    assert 500 < len(settled) < 3000
    assert np.array_equal(ours[settled], theirs[settled])

    matrix = quantise([[Fraction(1), Fraction(2), Fraction(4)], [Fraction(4), Fraction(2), Fraction(1)]])
    rows, drawn = np.arange(500) % 2, np.empty(500, np.int64)
    kernels.matrix.py_func(matrix.alias_tables, matrix.column_bits, rows, SeededBits(7).words(500), drawn)
    assert np.array_equal(drawn, matrix.sample(rows, SeededBits(7)))


def test_a_draw_is_a_function_of_the_bits_across_chunks():
    size = laplace.CHUNK + 777
    assert np.array_equal(
        discrete_laplace(Fraction(12, 5), size, SeededBits(8)),
        discrete_laplace(Fraction(12, 5), size, SeededBits(8)),
    )
    assert len(discrete_laplace(Fraction(1), 0, SeededBits(8))) == 0


@pytest.mark.parametrize("scale", [Fraction(0), Fraction(-1), Fraction(2**50 + 1)])
def test_scales_out_of_range_are_refused(scale: Fraction):
    with pytest.raises(NoiseError, match=r"not between 0 and 2\^50"):
        discrete_laplace(scale, 1, SeededBits(1))


VARIANCES = [
    Fraction(1, 100),
    Fraction(1, 3),
    Fraction(1),
    Fraction(50, 7),
    Fraction(10**6),
    Fraction(10**10),
]


@pytest.mark.parametrize("variance", VARIANCES)
def test_discrete_gaussian_has_its_law(variance: Fraction):
    sample = discrete_gaussian(variance, N // 2, SeededBits(9))
    assert len(sample) == N // 2
    assert not fit(sample, gaussian_distribution(variance)).is_rejected
    assert not fit_pairs(sample, gaussian_distribution(variance)).is_rejected


@pytest.mark.parametrize("variance", VARIANCES[1:])
def test_a_wrong_variance_is_seen(variance: Fraction):
    sample = discrete_gaussian(variance, N // 2, SeededBits(9))
    assert fit(sample, gaussian_distribution(variance * 95 / 100)).is_rejected


def test_a_tie_of_64_bits_with_an_exponential_is_decided_by_more_bits():
    """exp(-1/2) = 0.60653...: its 64 leading bits are a tie, and the next 64 decide."""
    gamma = Fraction(1, 2)
    first = 11188515852577165299  # ⌊2^64·exp(-1/2)⌋ by mpmath
    assert Fraction(first, 2**64) < Fraction(math.exp(-0.5)) + Fraction(1, 2**50)
    below = sum(below_exp(first, gamma, SeededBits(seed)) for seed in range(400))
    assert below_exp(first - 1, gamma, SeededBits(1))
    assert not below_exp(first + 1, gamma, SeededBits(1))
    assert 0 < below < 400
    assert below_exp(0, Fraction(10**12), SeededBits(1)) is False


@pytest.mark.parametrize("variance", [Fraction(0), Fraction(1, 10**13), Fraction(2**99)])
def test_variances_out_of_range_are_refused(variance: Fraction):
    with pytest.raises(NoiseError, match="variance"):
        discrete_gaussian(variance, 1, SeededBits(1))


def geometric_rows(budget: Fraction, levels: int = 16) -> list[list[Fraction]]:
    q = math.exp(-float(budget) / (levels - 1))
    return [[Fraction(q ** abs(x - y)) for y in range(levels)] for x in range(levels)]


def test_a_certified_matrix_keeps_its_budget_where_naive_rounding_breaks_it():
    """Rounding to integers can push a ratio beyond the formula's: then b is lowered until it certifies."""
    two = [[Fraction(math.e), Fraction(1)], [Fraction(1), Fraction(math.e)]]
    naive = quantise(two)
    budget = naive.log_ratio() - Fraction(1, 10**25)
    assert naive.log_ratio() > budget

    def law(b: Fraction) -> list[list[Fraction]]:
        heavy = Fraction(math.exp(float(b)))
        return [[heavy, Fraction(1)], [Fraction(1), heavy]]

    matrix = certify_matrix(law, Fraction(1))
    assert 1 - Fraction(1, 10**3) < matrix.log_ratio() <= 1


def test_log_ratios_are_the_largest_and_rounded_up():
    quarter = 1 << 62
    matrix = IntegerMatrix(
        ((quarter, 3 * quarter, 0), (2 * quarter, 2 * quarter, 0), (3 * quarter, quarter, 0))
    )
    assert 0 < matrix.log_ratio() - Fraction(math.log(3)) + Fraction(1, 10**15) < Fraction(1, 10**14)
    assert log_above(Fraction(3)) > Fraction(
        "1.0986122886681096913952452369225257046474905578227494517346943"
    )


def test_a_column_that_mixes_zero_and_more_has_no_ratio():
    half = 1 << 63
    with pytest.raises(NoiseError, match="unbounded"):
        IntegerMatrix(((half, half), (2 * half, 0))).log_ratio()


def test_budgets_that_64_bits_cannot_carry_are_refused():
    with pytest.raises(NoiseError, match="cannot carry"):
        certify_matrix(
            lambda b: [[Fraction(1), Fraction(1, 2**80)], [Fraction(1, 2**80), Fraction(1)]], Fraction(1)
        )


@pytest.mark.parametrize("weights", [((1, 2),), ((1 << 64,), (1 << 63, 1 << 63)), ((-1, (1 << 64) + 1),)])
def test_rows_that_are_no_laws_are_refused(weights: tuple[tuple[int, ...], ...]):
    with pytest.raises(NoiseError):
        IntegerMatrix(weights)


@pytest.mark.parametrize("rows", [np.array([2]), np.array([0, -1])])
def test_true_answers_without_a_row_are_refused(rows: np.ndarray):
    matrix = quantise([[Fraction(1), Fraction(1)]] * 2)
    with pytest.raises(NoiseError, match="true answer"):
        matrix.sample(rows, SeededBits(1))


def test_every_row_of_a_matrix_is_drawn_with_its_law(monkeypatch: pytest.MonkeyPatch):
    matrix = quantise(geometric_rows(Fraction(4)))
    answers = np.arange(N) % 16
    backend.compile_now()
    sample = matrix.sample(answers, SeededBits(10))
    monkeypatch.setattr(backend._State, "plain", True)
    assert np.array_equal(sample, matrix.sample(answers, SeededBits(10)))
    for x in range(16):
        law = np.array([weight / 2**64 for weight in matrix.weights[x]])
        assert not fit(sample[answers == x], finite_distribution(law)).is_rejected
        assert fit(sample[answers == x], finite_distribution(np.roll(law, 1))).is_rejected


def test_plain_processes_load_the_kernels_once_they_have_earned_it(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(backend._State, "kernels", None)
    monkeypatch.setattr(backend._State, "done", 0)
    assert backend.kernels(backend.LOAD_COST) is None
    assert backend.kernels(1) is kernels


@pytest.mark.parametrize("scale", [3, 100, 10**6])
@pytest.mark.parametrize("chances", [(1e-9, 0.5), (1e-9, 0.999), (0.5,)])
def test_quantiles_are_the_first_integers_of_their_chances(scale, chances):
    wanted, law = np.array(chances), laplace_distribution(scale)
    found = law.quantile(wanted)
    assert (law.cdf(found) >= wanted).all()
    assert (law.cdf(found - 1) < wanted).all()
