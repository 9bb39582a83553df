"""Gates for latent mechanisms: exact cost of every two codes, fits, and lower bounds."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import cache, partial
from itertools import permutations
from typing import Final

import numpy as np
from jaxtyping import Float64, Int64

from dpveil.noise.bits import BitSource
from dpveil_audit.distributions import Distribution
from dpveil_audit.findings import Finding
from dpveil_audit.fit import fit, fit_pairs, pair_fits
from dpveil_audit.gates import ComparedPair, bound_findings, fit_finding, of_releases
from dpveil_audit.latent.case import Code, Codes, DistributionOf, LatentCase, LatentDrawn, LatentVersion
from dpveil_audit.latent.distributions import loss
from dpveil_audit.lower_bound import Bound, Draws
from dpveil_audit.measures import epsilon_at, rho_seen

CLOSE: Final = 1e-9
"""Relative error of 64-bit floats on a limit."""
TINY: Final = 1e-12
"""Absolute error where the limit is 0."""


def exact_gate(version: LatentVersion, case: LatentCase) -> Iterator[Finding]:
    """Yield the largest cost over every ordered pair of codes, against its limit, and sums of
    probabilities.
    """
    if version.distribution is None:
        return
    distributions = {code: version.distribution(case, code) for code in case.codes}
    unit = "ε" if case.guarantee.rho is None else "ρ"
    worst = (False, -math.inf, 0.0, 0.0, case.codes[:2])
    for first, second in permutations(case.codes, 2):
        allowed = case.allowance(first, second)
        cost = loss(case, distributions[first], distributions[second])
        broken = cost > allowed * (1 + CLOSE) + TINY
        worst = max(worst, (broken, cost / (allowed + TINY), cost, allowed, (first, second)))
    broken, _, cost, allowed, pair = worst
    what = "log-ratio" if unit == "ε" else "Rényi divergence"
    what = f"{what} of the distribution, {len(distributions)} codes"
    where = f"{case}, {_place(pair[0])} and {_place(pair[1])}"
    yield Finding("exact", what, where, min(cost, 1e9), allowed, not broken, unit)
    if case.guarantee.diameter is not None:
        farthest = max(case.distance(first, second) for first, second in permutations(case.codes, 2))
        most = float(case.guarantee.diameter) * (1 + CLOSE)
        yield Finding("exact", "distance of two codes", str(case), farthest, most, farthest <= most, "d")
    lost = max(
        abs(1 - float(np.exp(part).sum()))
        for distribution in distributions.values()
        for part in distribution.parts
    )
    yield Finding("exact", "sum of chances unlike 1", str(case), lost, CLOSE, lost <= CLOSE)


def fit_gate(
    version: LatentVersion, setting: LatentDrawn, right: DistributionOf, *, bits: BitSource
) -> Iterator[Finding]:
    """Yield how well releases follow the right law: parts, joint parts, and adjacent draws."""
    case, p_values = setting.case, dict[str, float]()
    for code, released in _releases(version, setting, bits):
        seen = case.read(released)
        made = right(case, code).drawn
        for number, (mass, distribution) in enumerate(made):
            own = np.ascontiguousarray(seen[:, number])
            for name, p_value in _fits(own, mass, distribution).items():
                p_values[f"{name} {number} of {_place(code)}"] = p_value
        drawn = [number for number, (mass, _) in enumerate(made) if mass.max() < 1]
        inside = np.maximum(seen[:, drawn], 0)
        both = pair_fits(inside, [made[number][0] for number in drawn])
        p_values |= {f"{name} of {_place(code)}": p_value for name, p_value in both.items()}
    yield fit_finding(case, f"{setting.draws:,} draws", p_values)


def _releases(version: LatentVersion, setting: LatentDrawn, bits: BitSource) -> Iterator[tuple[Code, Codes]]:
    """Yield every code with its releases, from one mixed batch; mutants draw one code at a time."""
    codes = np.array(setting.fits)
    if version.intact:
        mixed = version.release(setting.case, np.tile(codes, (setting.draws, 1)), bits)
        yield from ((code, mixed[number :: len(codes)]) for number, code in enumerate(setting.fits))
        return
    for code in setting.fits:
        yield code, version.release(setting.case, np.tile(np.array([code]), (setting.draws, 1)), bits)


def _fits(
    seen: Int64[np.ndarray, " n"], mass: Float64[np.ndarray, " outcomes"], distribution: Distribution
) -> dict[str, float]:
    if mass.max() == 1:  # nothing is drawn
        return {"coordinate": float(np.all(seen == mass.argmax()))}
    return {
        "coordinate": fit(seen, distribution).p_value,
        "neighbouring draws of": fit_pairs(seen, distribution).p_value,
    }


def bound_gate(version: LatentVersion, setting: LatentDrawn, *, bits: BitSource) -> Iterator[Finding]:
    """Yield lower bounds on the cost of pairs of codes, from samples alone; alpha covers all pairs
    together.
    """
    case, draws = setting.case, setting.draws
    unit, measure = ("ε", epsilon_at(0.0)) if case.guarantee.rho is None else ("ρ", rho_seen)

    @cache  # a code is in several pairs, whose bounds hold each by itself
    def shown(code: Code) -> Draws:
        return case.levels(version.release(case, np.tile(np.array([code]), (2 * draws, 1)), bits))

    def bound(first: Code, second: Code, alpha: float) -> Bound:
        return of_releases((shown(first), shown(second)), draws, alpha, measure)

    pairs = [
        ComparedPair(f"{case}, {_place(a)} and {_place(b)}", case.allowance(a, b), partial(bound, a, b))
        for a, b in setting.pairs
    ]
    yield from bound_findings(pairs, f"{draws:,} draws", unit=unit)


def _place(code: Code) -> str:
    return "(" + ", ".join(f"{value:g}" for value in code) + ")"
