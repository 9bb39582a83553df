"""Gates that draw: goodness of fit to the exact law, and lower bounds from adversarial pairs.

They work on any `Version`. Each rejects a right method with probability at most alpha, over everything it
tests together.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import lru_cache, partial
from typing import Final

import numpy as np
from jaxtyping import Int64

from dpveil.core.guarantee import Guarantee
from dpveil.errors import InvalidParameter
from dpveil.noise.bits import BitSource
from dpveil_audit.distributions import finite_distribution
from dpveil_audit.findings import Finding
from dpveil_audit.fit import ALPHA, fit, pair_fits, power
from dpveil_audit.gates import ComparedPair, bound_findings, fit_finding, of_releases
from dpveil_audit.lower_bound import Bound
from dpveil_audit.measures import (
    MISSED,
    Measure,
    delta_event,
    delta_seen,
    epsilon_at,
    epsilon_event,
    gaussian_events,
    rho_seen,
    smallest_detectable,
)
from dpveil_audit.pixel.case import Drawn, Known
from dpveil_audit.pixel.pairs import Pair, uneven_image
from dpveil_audit.pixel.product import Drawn as DrawOf
from dpveil_audit.pixel.product import Image, Releases
from dpveil_audit.pixel.version import DistributionOf, Drawer, Version

MISSED_FIT: Final = 1e-6
SHARPEST: Final = 400
"""Largest power, in hundredths, that is tried."""
DISTINGUISHED: Final = math.log(10)
"""The ε that a method without a guarantee must exceed for its neighbours to count as distinguished."""

Outcomes = Int64[np.ndarray, "n parts"]


def fit_gate(
    version: Version, setting: Drawn, distribution_of: DistributionOf, *, bits: BitSource
) -> Iterator[Finding]:
    """Yield how well the releases of one irregular image follow their law, draw by draw and in pairs.

    `value` is -log10 of the corrected p-value; alpha covers the whole gate.
    """
    case, draws = setting.case, setting.draws
    outcomes, right = _observed(version, setting, distribution_of, bits)
    columns = enumerate(zip(np.ascontiguousarray(outcomes.T), right, strict=True))
    p_values = {f"draw {j}": fit(seen, distribution).p_value for j, (seen, (_, distribution)) in columns}
    masses = [mass for mass, _ in right]
    p_values |= pair_fits(outcomes, masses)
    seen = sharpest(tuple(masses[0].tolist()), draws, ALPHA / len(p_values))
    sees = f"power ≥ {seen:.2f}" if seen else ""
    yield fit_finding(case, f"{draws:,} draws", p_values, sees=sees)


def _observed(
    version: Version, setting: Drawn, distribution_of: DistributionOf, bits: BitSource
) -> tuple[Outcomes, list[DrawOf]]:
    """Return the outcomes of every draw, -1 for impossible ones, and their laws."""
    image, method = uneven_image(setting.case.size), setting.case.method
    distribution = distribution_of(method, image[None])
    if version.outcomes is not None:
        return version.outcomes(method, image, setting.draws, bits), distribution.drawn
    if len(distribution.parts) != len(distribution.masses):
        raise InvalidParameter(
            "distribution", None, "shows no places", hint="give parts, or outcomes of the version"
        )
    shown = version.releases(method, image, setting.draws, bits)
    return np.stack([part.read(shown) for part in distribution.parts], axis=1), distribution.seen


@lru_cache(maxsize=256)
def sharpest(mass: tuple[float, ...], draws: int, alpha: float) -> float:
    """Return the smallest power of all probabilities, in hundredths, that the fit of one draw detects; 0 if
    none.

    The power is the factor on the budget, for Laplace noise, randomised response and exponential mechanisms
    alike. Source: `power` of the coarse bins alone, about 1 - 1e-6.
    """
    wanted = finite_distribution(np.array(mass) / sum(mass))

    def seen(hundredths: int) -> bool:
        raised = np.array(mass) ** (hundredths / 100)
        return power(wanted, finite_distribution(raised / raised.sum()), draws, alpha=alpha) > 1 - MISSED_FIT

    low, high = 100, SHARPEST
    if not seen(high):
        return 0.0
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if seen(middle) else (middle, high)
    return high / 100


def bound_gate(version: Version, setting: Drawn, entry: Known, *, bits: BitSource) -> Iterator[Finding]:
    """Yield a lower bound on the budget for every adversarial pair; alpha covers all pairs together.

    Under a metric guarantee a pair may cost ε times its distance.
    """
    case = setting.case
    promise, drawer = case.guarantee, drawn_once(version.drawer(case.method))
    measure, limit, letter = measure_of(promise)
    pairs = [
        ComparedPair(
            f"{case}, {pair.name}",
            limit * pair.distance,
            partial(pair_bound, drawer, pair, setting.draws, bits, measure),
        )
        for pair in entry.pairs(case)
    ]
    least = partial(detectable, promise, setting.draws, setting.chance)
    yield from bound_findings(pairs, f"{setting.draws:,} draws", unit=letter, least=least)


def distinguish_gate(version: Version, setting: Drawn, entry: Known, *, bits: BitSource) -> Iterator[Finding]:
    """Yield the first pair of neighbours that a method without a guarantee distinguishes, or else the
    closest.

    If none were distinguished, the method's reason for promising nothing would be wrong.
    """
    case, seen = setting.case, []
    pairs, drawer = entry.pairs(case), drawn_once(version.drawer(case.method))
    for pair in pairs:
        found = pair_bound(drawer, pair, setting.draws, bits, epsilon_at(0.0), ALPHA / len(pairs))
        seen.append((found, pair))
        if found.lower >= DISTINGUISHED:
            break
    bound, pair = max(seen, key=lambda found: found[0].lower)
    what = f"neighbours told apart in {setting.draws:,} draws, {bound.event}"
    kept = bound.lower >= DISTINGUISHED
    yield Finding("distinguish", what, f"{case}, {pair.name}", bound.lower, DISTINGUISHED, kept, "ε at least")


def measure_of(promise: Guarantee) -> tuple[Measure, float, str]:
    """Return the measure of a promise, its budget, and its symbol."""
    if promise.rho is not None:
        return rho_seen, float(promise.rho), "ρ"
    if promise.delta is not None and not promise.epsilon:
        return delta_seen, float(promise.delta), "δ"
    return epsilon_at(float(promise.delta or 0)), float(promise.epsilon or 0), "ε"


@lru_cache(maxsize=1024)
def detectable(promise: Guarantee, draws: int, chance: float, limit: float, alpha: float) -> float:
    """Return the smallest violation that this many test draws per side detect, given the event that shows it.

    The training draws have to find that event; missing it is not part of the probability.
    """
    measure, _, letter = measure_of(promise)
    event = {"ρ": gaussian_events, "δ": delta_event}.get(letter)
    event = event or epsilon_event(chance, float(promise.delta or 0))
    return smallest_detectable(draws, limit, event, measure, alpha=alpha, missed=MISSED)


def drawn_once(drawer: Drawer) -> Drawer:
    """Return a drawer that draws from an image once, for all pairs that it is in.

    The bound of every pair holds by itself, whatever draws it shares with others.
    """
    kept: dict[tuple[bytes, int], Releases] = {}

    def draw(image: Image, count: int, bits: BitSource) -> Releases:
        key = image.tobytes(), count
        if key not in kept:
            kept[key] = drawer(image, count, bits)
        return kept[key]

    return draw


def pair_bound(
    drawer: Drawer, pair: Pair, draws: int, bits: BitSource, measure: Measure, alpha: float = ALPHA
) -> Bound:
    """Return the lower bound from `draws` training and as many test releases of both images of a pair."""
    sides = [drawer(image, 2 * draws, bits) for image in (pair.first, pair.second)]
    return of_releases((sides[0], sides[1]), draws, alpha, measure)
