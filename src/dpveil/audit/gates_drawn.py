"""Gates that draw: goodness of fit to the exact law, and a lower bound on the budget from adversarial pairs.

They take a `Drawer`, so that they fit any pixel method. Each has a probability of at most alpha to reject
a right method, over everything it looks at together.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache
from itertools import combinations
from typing import Final

import numpy as np
from jaxtyping import Float64, Int64

from dpveil.audit.case import Case, Right, filled
from dpveil.audit.exact import cells, totals
from dpveil.audit.findings import Finding
from dpveil.audit.fit import ALPHA, MOST_BINS, fit, power
from dpveil.audit.laws import finite_law
from dpveil.audit.lower_bound import Bound, lower_bound
from dpveil.audit.measures import (
    Measure,
    epsilon_at,
    epsilon_event,
    gaussian_events,
    rho_seen,
    smallest_detectable,
)
from dpveil.audit.pairs import Pair, adversarial_pairs, uneven_image
from dpveil.audit.steps import Image, Releases
from dpveil.core.guarantee import Guarantee
from dpveil.mechanisms.pixel import PixelMethod
from dpveil.noise.bits import BitSource

CLASSES: Final = 8
HALF: Final = 0.5
MISSED: Final = 1e-9
MISSED_FIT: Final = 1e-6

Place = tuple[int, int, int]
Drawer = Callable[[Image, int, BitSource], Releases]
"""Gives a number of independent releases of one image."""


def fit_gate(
    drawer: Drawer, case: Case, right: Right, *, draws: int, bits: BitSource, alpha: float = ALPHA
) -> list[Finding]:
    """Return how well the releases of one uneven image follow the exact law, pixel by pixel and in pairs.

    `value` is minus the corrected p-value's logarithm to base 10; alpha covers the whole gate.
    """
    image = uneven_image(case.size)
    grid = cells(case.height, case.width, case.method.block)
    parts = [[(row, column, k) for row, column in cell] for cell in grid for k in range(case.channels)]
    p_values = fit_releases(drawer(image, draws, bits), parts, _right_masses(image, case, right))
    worst = min(p_values, key=lambda name: p_values[name])
    value = max(0.0, float(-np.log10(max(1e-300, p_values[worst]) * len(p_values))))
    limit = float(-np.log10(alpha))
    what = f"fit of {draws:,} draws, worst at {worst}"
    seen = narrowest(case, right, draws, alpha / len(p_values))
    sees = f"noise ×{seen:.2f} or less" if seen else ""
    return [Finding("fit", what, str(case), value, limit, value <= limit, "-log10 p", sees=sees)]


@lru_cache(maxsize=64)
def narrowest(case: Case, right: Right, draws: int, alpha: float) -> float:
    """Return the factor of the noise's width, in hundredths, from which on down the fit of one cell sees it.

    0 where it never does. Source: `power` of the coarse chi-square alone, at least 1 - 1e-6.
    """
    wanted = _right_masses(uneven_image(case.size), case, right)[0]
    for hundredths in range(99, 0, -1):
        factor = Fraction(hundredths, 100)
        narrow = _right_masses(uneven_image(case.size), case, right, factor)[0]
        if power(finite_law(wanted), finite_law(narrow), draws, alpha=alpha) > 1 - MISSED_FIT:
            return hundredths / 100
    return 0.0


def fit_releases(
    releases: Releases, parts: list[list[Place]], masses: list[Float64[np.ndarray, 256]]
) -> dict[str, float]:
    """Return a p-value for every place (row, column, channel) and for every two parts together.

    All places of part j must show one level with law `masses[j]`, and parts must be independent of each
    other. Fits any method whose release is made of such parts.
    """
    return dict(_place_fits(releases, parts, masses)) | dict(_pair_fits(releases, parts, masses))


def _right_masses(
    image: Image, case: Case, right: Right, width: Fraction = Fraction(1)
) -> list[Float64[np.ndarray, 256]]:
    """Return the exact law of every part, with the noise of methods §3 or `width` times as much."""
    parameter = right.parameter(case, filled(case)) * width**right.power
    grid = cells(case.height, case.width, case.method.block)
    areas = [len(c) for c in grid for _ in range(case.channels)]
    sums = totals(image, case.method.block)
    laws = [np.array(right.level_law(s, a, parameter)) for s, a in zip(sums, areas, strict=True)]
    return [mass / mass.sum() for mass in laws]


def _place_fits(
    releases: Releases, parts: list[list[Place]], masses: list[Float64[np.ndarray, 256]]
) -> Iterator[tuple[str, float]]:
    for places, mass in zip(parts, masses, strict=True):
        law = finite_law(mass)
        distinct = {releases[:, r, c, k].tobytes(): (r, c, k) for r, c, k in reversed(places)}
        for row, column, channel in distinct.values():
            samples = releases[:, row, column, channel].astype(np.int64)
            yield f"pixel {row},{column} channel {channel}", fit(samples, law).p_value


def _pair_fits(
    releases: Releases, parts: list[list[Place]], masses: list[Float64[np.ndarray, 256]]
) -> Iterator[tuple[str, float]]:
    edges = [_class_edges(mass) for mass in masses]
    chances = [np.add.reduceat(mass, np.append(0, e)) for mass, e in zip(masses, edges, strict=True)]
    shown = [releases[:, r, c, k].astype(np.int64) for (r, c, k), *_ in parts]
    classes = [np.searchsorted(e, levels, side="right") for e, levels in zip(edges, shown, strict=True)]
    for i, j in combinations(range(len(parts)), 2):
        codes = (classes[i] * len(chances[j]) + classes[j]).astype(np.int64)
        law = finite_law(np.outer(chances[i], chances[j]).ravel())
        yield f"parts {i} and {j}", fit(codes, law, bins=MOST_BINS).p_value


def _class_edges(mass: Float64[np.ndarray, 256]) -> Int64[np.ndarray, " edges"]:
    """Return levels that cut the law into at most 8 classes of similar chance."""
    inner = np.searchsorted(np.cumsum(mass), np.arange(1, CLASSES) / CLASSES) + 1
    edges: Int64[np.ndarray, " edges"] = np.unique(inner[inner < len(mass)]).astype(np.int64)
    return edges


def bound_gate(
    drawer: Drawer, case: Case, *, draws: int, bits: BitSource, chance: float = HALF, alpha: float = ALPHA
) -> list[Finding]:
    """Return a lower bound on the budget for every adversarial pair; alpha covers all pairs together.

    `chance` is that of the event for which the smallest detectable violation is stated.
    """
    pairs = adversarial_pairs(
        height=case.height,
        width=case.width,
        channels=case.channels,
        block=case.method.block,
        neighbourhood=case.method.neighbourhood,
    )
    found = bound_pairs(drawer, pairs, case.guarantee, draws=draws, bits=bits, alpha=alpha)
    least = detectable(case.guarantee, draws, chance=chance, alpha=alpha / len(pairs))
    _, limit, letter = measure_of(case.guarantee)
    sees = f"{letter} ≥ {least:.3g} for {limit:.3g}" if math.isfinite(least) else ""
    return [replace(f, case=f"{case}, {f.case}", detectable=least, sees=sees) for f in found]


def measure_of(promise: Guarantee) -> tuple[Measure, float, str]:
    """Return how a promise is measured, what it promises, and its letter."""
    if promise.rho is not None:
        return rho_seen, float(promise.rho), "ρ"
    return epsilon_at(float(promise.delta or 0)), float(promise.epsilon or 0), "ε"


def detectable(promise: Guarantee, draws: int, *, chance: float, alpha: float) -> float:
    """Return the smallest violation of a promise that this many test draws a side show for certain."""
    measure, limit, _ = measure_of(promise)
    event = epsilon_event(chance, float(promise.delta or 0)) if promise.rho is None else gaussian_events
    return smallest_detectable(draws, limit, event, measure, alpha=alpha, missed=MISSED)


def bound_pairs(
    drawer: Drawer,
    pairs: list[Pair],
    promise: Guarantee,
    *,
    draws: int,
    bits: BitSource,
    alpha: float = ALPHA,
) -> list[Finding]:
    """Return a lower bound for every pair against what is promised; alpha covers all of them."""
    measure, limit, letter = measure_of(promise)
    found = []
    for pair in pairs:
        bound = pair_bound(drawer, pair, draws=draws, bits=bits, measure=measure, alpha=alpha / len(pairs))
        what = f"lower bound from {draws:,} draws, {bound.event}"
        passed = bound.lower <= limit
        found.append(Finding("bound", what, pair.name, bound.lower, limit, passed, letter))
    return found


def pair_bound(
    drawer: Drawer,
    pair: Pair,
    *,
    draws: int,
    bits: BitSource,
    measure: Measure | None = None,
    alpha: float = ALPHA,
) -> Bound:
    """Return the lower bound from `draws` train and as many test releases of both images of a pair."""
    sides = [drawer(image, 2 * draws, bits) for image in (pair.first, pair.second)]
    first, second = (side.reshape(2 * draws, -1) for side in sides)
    train, test = (first[:draws], second[:draws]), (first[draws:], second[draws:])
    return lower_bound(train, test, measure=measure, alpha=alpha)


def one_by_one(method: PixelMethod) -> Drawer:
    """Return the drawer that calls `release` of any pixel method for every draw: slow, and the real road."""

    def draw(image: Image, count: int, bits: BitSource) -> Releases:
        return np.stack([method.release(image, bits=bits) for _ in range(count)])

    return draw
