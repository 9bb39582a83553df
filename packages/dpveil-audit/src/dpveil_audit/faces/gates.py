"""Gates for methods that show a face from a gallery: exact cost of every two crops, fits, lower bounds."""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from functools import cache, partial
from typing import Final

import numpy as np

from dpveil.noise.bits import BitSource
from dpveil.noise.matrix import log_above
from dpveil_audit.distributions import finite_distribution
from dpveil_audit.faces.case import DistributionOf, FacesCase, FacesDrawn, FacesVersion, Row
from dpveil_audit.findings import Finding
from dpveil_audit.fit import fit, fit_pairs
from dpveil_audit.gates import ComparedPair, bound_findings, fit_finding, least_epsilon, of_releases
from dpveil_audit.lower_bound import Bound, Draws

CLOSE: Final = 1e-7
"""Largest log-distance of probabilities from the definition, as integer weights are rounded."""
ANY: Final = "any excess"
INFINITE: Final = 1e9


def same_gate(version: FacesVersion, case: FacesCase, definition: DistributionOf) -> Iterator[Finding]:
    """Yield the distance of the integers in use from the law by definition."""
    pairs = [
        both
        for row in case.inputs
        for both in zip(version.distribution(case, row), definition(case, row), strict=True)
    ]
    far = max(
        abs(math.log(own / wanted)) if own and wanted else INFINITE * (own != wanted) for own, wanted in pairs
    )
    what = "log-ratio of whole weights to the distribution"
    yield Finding("same", what, str(case), far, CLOSE, far <= CLOSE, sees=f"more than {CLOSE:g}")


def exact_gate(version: FacesVersion, case: FacesCase) -> Iterator[Finding]:
    """Yield the largest log-ratio of any face over every two crops, without tolerance, and sums."""
    distributions = [version.distribution(case, row) for row in case.inputs]
    ends = [(max(of_face), min(of_face)) for of_face in zip(*distributions, strict=True)]
    certain = any(least == 0 < most for most, least in ends)
    cost = max((log_above(most / least) for most, least in ends if least), default=Fraction(0))
    kept = not certain and cost <= case.epsilon
    value = INFINITE if certain else float(cost)
    what = f"log-ratio of the distribution, {len(distributions)} crops"
    yield Finding("exact", what, str(case), value, float(case.epsilon), kept, "ε", sees=ANY)
    lost = max(abs(1 - sum(distribution, Fraction(0))) for distribution in distributions)
    yield Finding("exact", "sum of chances unlike 1", str(case), float(lost), 0.0, lost == 0, sees=ANY)


def fit_gate(
    version: FacesVersion, setting: FacesDrawn, definition: DistributionOf, *, bits: BitSource
) -> Iterator[Finding]:
    """Yield how well released faces follow the law by definition, and adjacent draws its square.

    All crops are drawn in one mixed batch; alpha covers the whole gate.
    """
    case, rows = setting.case, np.array(setting.fits, np.int64)
    mixed = version.draw(case, np.tile(rows, (setting.draws, 1)), bits)
    p_values: dict[str, float] = {}
    for number, row in enumerate(setting.fits):
        seen = np.ascontiguousarray(mixed[number :: len(rows)])
        distribution = finite_distribution([float(chance) for chance in definition(case, row)])
        p_values[f"{row}"] = fit(seen, distribution).p_value
        p_values[f"neighbouring draws of {row}"] = fit_pairs(seen, distribution).p_value
    yield fit_finding(case, f"{setting.draws:,} draws", p_values)


def bound_gate(version: FacesVersion, setting: FacesDrawn, *, bits: BitSource) -> Iterator[Finding]:
    """Yield lower bounds on the cost of pairs of crops, from faces alone; alpha covers all pairs together."""
    case, draws = setting.case, setting.draws

    @cache  # a crop is in several pairs, whose bounds hold each by itself
    def shown(row: Row) -> Draws:
        crops = np.tile(np.array([row], np.int64), (2 * draws, 1))
        return version.draw(case, crops, bits)[:, None].astype(np.uint8)

    def bound(pair: tuple[Row, Row], alpha: float) -> Bound:
        return of_releases((shown(pair[0]), shown(pair[1])), draws, alpha)

    pairs = [
        ComparedPair(f"{case}, {pair[0]} and {pair[1]}", float(case.epsilon), partial(bound, pair))
        for pair in setting.pairs
    ]
    yield from bound_findings(pairs, f"{draws:,} draws", least=partial(least_epsilon, draws))
