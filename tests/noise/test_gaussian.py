"""The discrete Gaussian's blocks against exact arithmetic: words of small tables, fits, planted faults."""

from collections.abc import Callable, Iterator
from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest

from dpveil.noise import backend, gaussian, kernels
from dpveil.noise.bits import SeededBits
from dpveil.noise.gaussian import BlockTable, below_exp, block_law, discrete_gaussian, draw
from dpveil_audit.distributions import finite_distribution, gaussian_distribution
from dpveil_audit.fit import fit, fit_pairs

WORK = Context(prec=60, Emin=MIN_EMIN, Emax=MAX_EMAX)
SMALL = {"column_bits": 4, "total_bits": 8, "accept_bits": 4, "reach": 2}
VARIANCES = [Fraction(1, 3), Fraction(3, 2), Fraction(50, 7), Fraction(40), Fraction(900)]


@pytest.fixture(autouse=True)
def sixty_digits() -> Iterator[None]:
    with localcontext(WORK):
        yield


def below(variance: Fraction, squares: int) -> Decimal:
    """Return exp(-squares / (2·variance)) to 60 digits."""
    exponent = squares / (2 * variance)
    return (Decimal(-exponent.numerator) / Decimal(exponent.denominator)).exp()


def proposed(table: BlockTable) -> dict[int, tuple[int, Decimal, Decimal]]:
    """Return block, weight of proposal and chance of acceptance of every z that matters, by z.

    The tail's y are listed one by one, so that nothing here is a closed form of it. The weights sum to one.
    """
    variance, side, edge = table.variance, 1 << table.block_bits, table.edge
    found = {}
    for k in range(-table.blocks, table.blocks):
        numbers = range(k * side, (k + 1) * side)
        anchor = min(map(abs, numbers))
        for z in numbers:
            found[z] = (k + table.blocks, below(variance, anchor**2), below(variance, z**2 - anchor**2))
    y = 0
    while (weight := below(variance, edge**2 + 2 * edge * y)) > Decimal("1e-50"):
        found[edge + y] = (table.tail, weight, below(variance, y**2))
        if y:
            found[-edge - y] = found[edge + y]
        y += 1
    total = sum(weight for _, weight, _ in found.values())
    return {z: (block, weight / total, chance) for z, (block, weight, chance) in found.items()}


def every_word(table: BlockTable) -> np.ndarray:
    """Return all words of a small table, once each."""
    low = np.arange(1 << (table.total_bits + table.accept_bits), dtype=np.uint64)
    high = np.arange(1 << table.block_bits, dtype=np.uint64) << np.uint64((64 - table.block_bits) % 64)
    return (high[:, None] | low).reshape(1, -1)


def run(settle: str, table: BlockTable, words: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    out = np.empty(words.shape[1], np.int64)
    if settle == "plain":
        return out, gaussian._settle(table, words, out)
    bits = table.total_bits, table.accept_bits, table.block_bits
    given = words, table.table.packed, table.sure, *map(np.int64, bits), np.int64(table.blocks), out
    if settle == "compiled":
        return out, kernels.gaussian(*given)
    with np.errstate(over="ignore"):
        return out, kernels.gaussian.py_func(*given)


@pytest.mark.parametrize("settle", ["plain", "compiled", "loops"])
@pytest.mark.parametrize("variance", VARIANCES)
def test_every_word_of_a_small_table_proposes_and_settles_what_the_law_asks(variance: Fraction, settle: str):
    """Each number comes from ⌊2^8·p⌋ words of its block for each beginning; none settled may be rejected."""
    table = BlockTable(variance, **SMALL)
    words = every_word(table)
    out, todo = run(settle, table, words)
    settled = np.ones(len(out), bool)
    settled[todo] = False
    law, outcomes, begun = proposed(table), table.outcomes(words), table.begun(words)
    side, levels = 1 << table.block_bits, 1 << table.accept_bits
    assert not settled[outcomes >= table.tail].any()
    for z, (block, weight, chance) in law.items():
        if block < table.tail:
            here = (outcomes == block) & (out == z)
            assert here.sum() == levels * int(weight * side * 2**table.total_bits)
            assert all(int(b) + 1 <= chance * levels for b in np.unique(begun[here & settled]))
    tail = sum(weight for block, weight, _ in law.values() if block == table.tail)
    assert (outcomes == table.tail).sum() == side * levels * int(tail * 2**table.total_bits)


@pytest.mark.parametrize("variance", VARIANCES)
def test_proposal_times_acceptance_is_the_law(variance: Fraction):
    table = BlockTable(variance, **SMALL)
    law = proposed(table)
    assert sorted(law) == list(range(min(law), max(law) + 1))
    kept = {z: weight * chance for z, (_, weight, chance) in law.items()}
    for z, mass in kept.items():
        assert abs(mass - kept[0] * below(variance, z**2)) < Decimal("1e-45")


@pytest.mark.parametrize("variance", [*VARIANCES, Fraction(1, 10**12), Fraction(10**6), Fraction(2**98)])
def test_enclosures_hold_the_law_and_shrink(variance: Fraction):
    table = BlockTable(variance, **SMALL)
    law = block_law(variance, table.block_bits, table.blocks)
    side, edge = 1 << table.block_bits, table.edge
    ends = [min(abs(k * side), abs((k + 1) * side - 1)) for k in range(-table.blocks, table.blocks)]
    exact = [below(variance, end**2) * side for end in ends]
    ratio = below(variance, 2 * edge)
    exact.append(below(variance, edge**2) * (1 + ratio) / (1 - ratio))
    total = sum(exact)
    for precision in (40, 80, 120):
        bounds = law(precision)
        for (low, high), mass in zip(bounds, exact, strict=True):
            assert low <= mass / total * 2**precision <= high
            assert high - low <= 2


@pytest.mark.parametrize("variance", VARIANCES)
def test_small_tables_have_the_same_law(variance: Fraction):
    """16 columns of 8 bits, and blocks that end at two deviations: ties, tails and rejections are common."""
    sample = draw(BlockTable(variance, **SMALL), 60_000, SeededBits(3))
    assert not fit(sample, gaussian_distribution(variance)).is_rejected
    assert not fit_pairs(sample, gaussian_distribution(variance)).is_rejected


def bare(table: BlockTable, words: np.ndarray, bits: SeededBits) -> tuple[np.ndarray, np.ndarray]:
    values, taken = DECIDE(table, words, bits)
    tail = table.outcomes(words) == table.tail
    return np.where(tail, table.edge, values), taken


DECIDE = gaussian._decide
FAULTS: dict[str, tuple[object, str, Callable[..., object]]] = {
    "ties are zeros": (
        gaussian.BlockTable.__init__.__globals__["LazyTable"],
        "resolve",
        lambda self, bits: 7,
    ),
    "the tail is a point": (gaussian, "_decide", bare),
    "the tail is geometric": (gaussian, "below_exp", lambda *given, **more: True),
    "nothing is rejected": (gaussian, "accept_blocks", lambda *given: np.ones(len(given[1]), bool)),
    "one bit for two": (
        gaussian.BlockTable,
        "begun",
        lambda self, words: words[0] >> np.uint64(5) & np.uint64(15),
    ),
    "anchors one too far": (
        gaussian.BlockTable,
        "anchors",
        lambda self, outcomes: ANCHORS(self, outcomes) + 1,
    ),
}
ANCHORS = gaussian.BlockTable.anchors


@pytest.mark.parametrize("planted", FAULTS)
def test_planted_faults_are_seen(planted: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(backend._State, "plain", True)
    monkeypatch.setattr(*FAULTS[planted])
    table = BlockTable(Fraction(40), **SMALL)
    assert fit(draw(table, 60_000, SeededBits(4)), gaussian_distribution(Fraction(40))).is_rejected


@pytest.mark.parametrize("variance", [Fraction(1, 100), Fraction(16384), Fraction(10**10), Fraction(2**98)])
def test_compiled_and_plain_give_the_same_numbers(variance: Fraction, monkeypatch: pytest.MonkeyPatch):
    backend.compile_now()
    compiled = discrete_gaussian(variance, 200_000, SeededBits(5))
    monkeypatch.setattr(backend._State, "plain", True)
    assert np.array_equal(compiled, discrete_gaussian(variance, 200_000, SeededBits(5)))


@pytest.mark.parametrize("variance", [Fraction(10**6), Fraction(4 * 10**10)])
def test_places_in_blocks_are_uniform(variance: Fraction):
    """One word a draw, and two: every place of a block as likely, which bins of the law do not see."""
    assert BlockTable(variance).rows == (1 if variance < 10**10 else 2)
    sample = discrete_gaussian(variance, 200_000, SeededBits(6))
    for modulus in (2, 8, 1000):
        assert not fit(sample % modulus, finite_distribution(np.full(modulus, 1 / modulus))).is_rejected
    assert abs(np.mean(sample.astype(float) ** 2) / float(variance) - 1) < 0.02


def test_acceptance_is_decided_by_exact_arithmetic_where_floating_point_is_unsure():
    """At the threshold's first bits the next 64 decide; beside it nothing is asked for."""
    table = BlockTable(Fraction(10**6))
    many, asked = np.arange(0, table.tail, 11), 0
    farthest = np.where(many >= table.blocks, 2**64 - 1, 0).astype(np.uint64)
    values = table.values(many, farthest[None])
    for outcome, value in zip(many, values, strict=True):
        squares = int(value) ** 2 - int(table.anchors(np.array([outcome]))[0]) ** 2
        level = below(table.variance, squares) * 2**table.accept_bits
        for begun in (int(level) - 1, int(level), int(level) + 1):
            bits, same = SeededBits(1), SeededBits(1)
            given = np.array([value]), np.array([outcome]), np.array([begun], np.uint64)
            taken = bool(gaussian.accept_blocks(table, *given, bits)[0])
            number = Decimal(begun << 64 | int(same.words(1)[0]))
            assert (
                taken
                == (number < level * 2**64)
                == below_exp(begun, squares / (2 * table.variance), SeededBits(1), length=table.accept_bits)
            )
            asked += bits.words(1)[0] != SeededBits(1).words(1)[0]
    assert asked == len(many)
