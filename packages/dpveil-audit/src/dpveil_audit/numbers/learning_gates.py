"""Gates for naive Bayes: queries by definition, exact cost of neighbours, fits, and lower bounds."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from functools import partial
from itertools import combinations
from typing import Final

import numpy as np
from jaxtyping import Float64, Int64, UInt8

from dpveil.noise.bits import BitSource, SeededBits
from dpveil.numbers.moments import LEVELS, Moments, Plan, mean_codes
from dpveil_audit.distributions import finite_distribution
from dpveil_audit.findings import Finding
from dpveil_audit.fit import fit, fit_pairs
from dpveil_audit.gates import ComparedPair, bound_findings, fit_finding, of_releases
from dpveil_audit.lower_bound import Bound
from dpveil_audit.numbers.joint import ROUNDED
from dpveil_audit.numbers.learning import LearnCase, LearnDrawn, Learned, LearnVersion, Table, cost
from dpveil_audit.numbers.learning_distributions import Definition, written

CELLS: Final = 64
FEW: Final = 8
"""Classes of each of two numbers whose joint law is tested."""
SAME: Final = 6
EVEN, BOTH = (finite_distribution(np.ones(count) / count) for count in (CELLS, FEW**2))


def same_gate(version: LearnVersion, case: LearnCase) -> Iterator[Finding]:
    """Yield whether the queries of a fit are those of the definition, and its values those that its plan
    releases.
    """
    unlike = 0
    for table in case.tables:
        plan = version.plan(case, *case.written(table))
        unlike += version.asks(plan) != written(case, table, plan)
    what = f"answers unlike the definition, {len(case.tables)} tables"
    yield Finding("same", what, str(case), unlike, 0, unlike == 0, "tables")
    others = apart = 0
    for table in case.tables[:: max(1, len(case.tables) // SAME)]:
        plan = version.plan(case, *case.written(table))
        released = plan.release(SeededBits(1, f"same {table}"))
        apart += not _alike(released, _in_turn(plan, SeededBits(1, f"same {table}")))
        seen = version.release(case, table, 1, SeededBits(1, f"same {table}"))
        others += bool(np.any(np.maximum(released.counts, 1) != seen.counts))
        others += bool(np.any(released.means != seen.means))
        others += bool(np.any(np.abs(np.maximum(released.deviations, 1e-9) - seen.deviations) > 1e-9))
    yield Finding("same", "fits unlike their plan", str(case), others, 0, others == 0, "statistics")
    what = "releases unlike one that knows released sizes alone"
    yield Finding("same", what, str(case), apart, 0, apart == 0, "tables")


def _in_turn(plan: Plan, bits: BitSource) -> Moments:
    """Return a plan's release with deviations drawn at released sizes, never at true ones."""
    counts = plan.sizes().draw(bits)
    means = mean_codes(plan.sums(), counts, bits)
    squares, reach = plan.spreads(means)
    sizes = [max(1, int(count)) for count in counts]
    roots = plan.deviations.release(squares, reach, sizes, bits)
    most = np.sqrt(np.array(sizes, np.float64))[:, None]
    return Moments(counts, means, np.minimum(roots / most, 1) * reach / LEVELS)


def _alike(one: Moments, other: Moments) -> bool:
    same = np.array_equal(one.counts, other.counts) and np.array_equal(one.means, other.means)
    return same and bool(np.allclose(one.deviations, other.deviations, rtol=1e-12, atol=0))


def exact_gate(version: LearnVersion, case: LearnCase) -> Iterator[Finding]:
    """Yield the stated cost, and the largest log-ratio of everything released, over all neighbours."""
    if version.lawful:
        return
    limit = stated(case)
    beyond = max(Fraction(0), limit - case.asked)
    yield Finding("exact", "ε stated beyond ε asked", str(case), float(beyond), 0, not beyond, "ε")
    limit = min(limit, case.asked)
    learned: dict[Learned, int] = {}  # most tables are asked the same as others are
    asks = {table: learned.setdefault(version.learned(case, table), len(learned)) for table in case.tables}
    kinds = list(learned)
    worst: tuple[Fraction, Table, Table] = Fraction(0), (), ()
    pairs = 0
    known: dict[tuple[int, int], Fraction] = {}
    for one in case.tables:
        for other in case.neighbours(one):
            if other in asks:
                pairs += 1
                both = asks[one], asks[other]
                if both not in known:
                    known[both] = cost(kinds[both[0]], kinds[both[1]])
                worst = max(worst, (known[both], one, other))
    value, one, other = worst
    what = f"log-ratio of all that is released, {pairs:,} pairs of tables"
    where = f"{case}, {_shown(case, one)} and {_shown(case, other)}"
    yield Finding("exact", what, where, float(value), float(limit), value <= limit + ROUNDED, "ε")


def stated(case: LearnCase) -> Fraction:
    """Return what a fitted model states, which is the same for all tables."""
    guarantee = case.fitted(case.tables[0], 1, SeededBits(1, "stated")).guarantee_
    return Fraction(guarantee.epsilon or 0)


def _shown(case: LearnCase, table: Table) -> str:
    held = [case.records[number] for number in table]
    return "[" + ", ".join(f"{'/'.join(map(str, one.features))} {one.label}" for one in held) + "]"


def fit_gate(version: LearnVersion, setting: LearnDrawn, *, bits: BitSource) -> Iterator[Finding]:
    """Yield how uniform every released number is under its conditional law."""
    case, draws = setting.case, setting.draws
    found = version.release(case, setting.fits[0], draws, bits)
    spare = (
        bits.words(draws * len(case.classes) * (1 + 2 * found.means.shape[1])) >> np.uint64(11)
    ) / 2.0**53
    uniform = Definition.of(case).uniforms(case, setting.fits[0], found, spare)
    p_values = {}
    for name, values in uniform.items():
        cells = _cells(values, CELLS)
        p_values[name] = fit(cells, EVEN).p_value
        p_values[f"neighbouring fits, {name}"] = fit_pairs(cells, EVEN).p_value
    for (one, a), (other, b) in combinations(uniform.items(), 2):
        p_values[f"{one} and {other}"] = fit(_cells(a, FEW) * FEW + _cells(b, FEW), BOTH).p_value
    yield fit_finding(case, f"{draws:,} fits", p_values)


def _cells(values: Float64[np.ndarray, " n"], count: int) -> Int64[np.ndarray, " n"]:
    found: Int64[np.ndarray, " n"] = np.floor(values * count).astype(np.int64).clip(0, count - 1)
    return found


def bound_gate(version: LearnVersion, setting: LearnDrawn, *, bits: BitSource) -> Iterator[Finding]:
    """Yield lower bounds on the cost of pairs of tables, from models alone; alpha covers all pairs."""
    case, draws = setting.case, setting.draws

    def bound(pair: tuple[Table, Table], alpha: float) -> Bound:
        one, other = (_bytes(version.release(case, table, 2 * draws, bits), 2 * draws) for table in pair)
        return of_releases((one, other), draws, alpha)

    limit = float(min(stated(case), case.asked))
    pairs = [
        ComparedPair(
            f"{case}, {_shown(case, pair[0])} and {_shown(case, pair[1])}", limit, partial(bound, pair)
        )
        for pair in setting.pairs
    ]
    yield from bound_findings(pairs, f"{draws:,} models")


def _bytes(found: Moments, draws: int) -> UInt8[np.ndarray, "n values"]:
    """Return sizes, means and deviations as bytes, one model per row."""
    columns = (
        found.counts.reshape(draws, -1),
        (found.means * 255 // LEVELS).reshape(draws, -1),
        (found.deviations * 255).reshape(draws, -1),
    )
    return np.concatenate([np.clip(column, 0, 255).astype(np.uint8) for column in columns], axis=1)
