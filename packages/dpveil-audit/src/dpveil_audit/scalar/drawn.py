"""Gates that draw, for scalar mechanisms: fits of responses, and lower bounds on ε."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, lru_cache, partial
from typing import Final

import numpy as np
from jaxtyping import Bool, Int64

from dpveil.noise.bits import BitSource
from dpveil_audit.distributions import Distribution, finite_distribution
from dpveil_audit.findings import Finding
from dpveil_audit.fit import fit, fit_pairs
from dpveil_audit.gates import ComparedPair, bound_findings, fit_finding, least_epsilon
from dpveil_audit.lower_bound import Bound, certain, scores
from dpveil_audit.measures import epsilon_at
from dpveil_audit.scalar.case import ScalarCase, ScalarDrawn, ScalarVersion, masses
from dpveil_audit.scalar.distributions import PointDistribution, distribution_of
from dpveil_audit.scalar.gates import place

Counts = Int64[np.ndarray, " cells"]


def fit_gate(
    version: ScalarVersion,
    setting: ScalarDrawn,
    right: PointDistribution | None = None,
    *,
    bits: BitSource,
) -> Iterator[Finding]:
    """Yield how well responses to an edge, a point next to it, and the middle follow the law."""
    case = setting.case
    right = right or distribution_of(case.method)
    answers = case.answers
    chosen = sorted({answers[0], answers[len(answers) // 2], answers[-1], case.edges[0]} & set(answers))
    p_values = {}
    for x in chosen:
        distribution = _in_cells(right, x, case)
        seen = version.draw(case, x, setting.draws, bits)
        name = place(case, x)
        p_values[f"answer {name}"] = fit(seen, distribution).p_value
        p_values[f"neighbouring draws at {name}"] = fit_pairs(seen, distribution).p_value
    yield fit_finding(case, f"{setting.draws:,} draws", p_values)


@lru_cache(maxsize=512)
def _in_cells(distribution: PointDistribution, x: int, case: ScalarCase) -> Distribution:
    found = np.array([float(chance) for chance in masses(distribution, x, case.cells)])
    return finite_distribution(found / found.sum())


@dataclass(frozen=True)
class _Event:
    score: float
    name: str
    cells: Bool[np.ndarray, " cells"]
    swapped: bool


def bound_gate(version: ScalarVersion, setting: ScalarDrawn, *, bits: BitSource) -> Iterator[Finding]:
    """Yield a lower bound on ε for pairs of answers, from samples alone; alpha covers all pairs together.

    Half of the draws choose an event, of which a half learns which responses distinguish the pair; exact
    confidence limits come from the other half.
    """
    case, draws = setting.case, setting.draws

    @cache  # an answer is in several pairs, whose bounds hold each by itself
    def counted(z: int) -> list[Counts]:
        return [_count(version, case, z, n, bits) for n in (draws // 2, draws // 2, draws)]

    def bound(pair: tuple[int, int], share: float) -> Bound:
        sides = [counted(z) for z in pair]
        event = _best(sides, case, draws // 2)
        first, second = sides[::-1] if event.swapped else sides
        hits = int(first[2][event.cells].sum()), int(second[2][event.cells].sum())
        return Bound(certain(hits, (draws, draws), epsilon_at(0.0), share), event.name, hits, draws, share)

    pairs = [
        ComparedPair(
            f"{case}, answers {place(case, x)} and {place(case, other)}",
            float(case.allowance(x, other) or 0),
            partial(bound, (x, other)),
        )
        for x, other in setting.pairs or case.pairs
    ]
    yield from bound_findings(pairs, f"{draws:,} draws", least=partial(least_epsilon, draws))


CHUNK: Final = 1 << 20


def _count(version: ScalarVersion, case: ScalarCase, x: int, count: int, bits: BitSource) -> Counts:
    found = np.zeros(len(case.cells), np.int64)
    for start in range(0, count, CHUNK):
        cells = version.draw(case, x, min(CHUNK, count - start), bits)
        found += np.bincount(cells, minlength=len(found))
    return found


def _best(sides: list[list[Counts]], case: ScalarCase, draws: int) -> _Event:
    """Return the event that distinguishes a pair best on draws that did not make it."""
    cells = case.cells
    learned = np.log(sides[0][0] + 1.0) - np.log(sides[1][0] + 1.0)
    orders = {"response ≤ {}": np.arange(len(cells)), "likelier ones": np.argsort(-learned, kind="stable")}
    found = []
    for name, order in orders.items():
        for reverse in (False, True):
            way = order[::-1] if reverse else order
            first, second = (np.cumsum(side[1][way]) for side in sides)
            for swapped in (False, True):
                a, b = (second, first) if swapped else (first, second)
                ranked = scores(a, b, draws, epsilon_at(0.0))
                at = int(np.argmax(ranked))
                chosen = np.zeros(len(cells), np.bool_)
                chosen[way[: at + 1]] = True
                words = (name.replace("≤", "≥") if reverse else name).format(place(case, int(cells[way[at]])))
                found.append(_Event(float(ranked[at]), words, chosen, swapped))
    return max(found, key=lambda event: event.score)
