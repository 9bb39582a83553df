"""Gates that compute: equality of a version with the method, and exact divergences on small images.

Each yields one finding for each check over all neighbours. Only one release is drawn, so nothing is left to
chance: violations are detected up to the tolerances below, and without any where probabilities are exact.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final

import numpy as np

from dpveil.noise.bits import SeededBits
from dpveil_audit.divergence import ORDERS, compose, renyi_of_masses, unit_of
from dpveil_audit.findings import Finding
from dpveil_audit.pixel.case import Case, Known
from dpveil_audit.pixel.gates_noise import held, sums_finding, tolerance
from dpveil_audit.pixel.images import all_images
from dpveil_audit.pixel.pairs import uneven_image
from dpveil_audit.pixel.product import EXACT, Images, Masses, Pairs, ProductDistribution
from dpveil_audit.pixel.version import Version

LOSS_TOLERANCE: Final = 1e-9
DISTRIBUTION_TOLERANCE: Final = 1e-7
MOST_JOINT: Final = 4096
"""Most joint outcomes of several draws that are enumerated; beyond, privacy losses are composed."""


def same_gate(version: Version, case: Case) -> Iterator[Finding]:
    """Yield how many values of the version's release differ from those of `release` for the same bits."""
    image = uneven_image(case.size)
    released = case.method.release(image, bits=SeededBits(3, "same"))
    differ = int(np.sum(version.releases(case.method, image, 1, SeededBits(3, "same"))[0] != released))
    what = "values unlike release()"
    yield Finding("same", what, str(case), differ, 0, differ == 0, "values", sees="any")


@dataclass(frozen=True, eq=False)
class _Look:
    """The inputs of a divergence."""

    version: Version
    case: Case
    entry: Known
    images: Images
    pairs: Pairs
    distribution: ProductDistribution


def exact_gate(version: Version, case: Case, entry: Known) -> Iterator[Finding]:
    """Yield the largest divergences over all neighbours on the case's levels, and the law's error.

    The first is that of additive noise before post-processing; it is left out if there is none.
    """
    images = all_images(case.height, case.width, case.channels, case.levels)
    pairs = entry.neighbours(case, images)
    if version.noise is not None:
        yield sums_finding(version.noise, case, images, pairs)
    if version.distribution is None:
        return
    distribution = version.distribution(case.method, images)
    yield DIVERGENCES[case.guarantee.kind](_Look(version, case, entry, images, pairs, distribution))
    if case.guarantee.diameter is not None and entry.distances is not None:
        most, farthest = float(case.guarantee.diameter), float(entry.distances(images, pairs).max())
        kept = farthest <= most + LOSS_TOLERANCE
        yield held("distance of two images", case, farthest, most, kept, "d", LOSS_TOLERANCE)
    if entry.right is not None:
        gap = distribution.distance(entry.right(case.method, images))
        label = "distance to the right distribution"
        yield Finding("exact", label, str(case), gap, DISTRIBUTION_TOLERANCE, gap <= DISTRIBUTION_TOLERANCE)


def _pure(look: _Look) -> Finding:
    return _loss(look, "loss of the output", look.distribution.largest_loss(look.pairs))


def _metric(look: _Look) -> Finding:
    """Compare the loss of every pair with ε times its distance; at distance 0 it must be 0."""
    distances = look.entry.distances
    apart = np.ones(len(look.pairs)) if distances is None else distances(look.images, look.pairs)
    losses = look.distribution.losses(look.pairs)
    value = max(
        float(loss) / d if d else math.inf if loss > LOSS_TOLERANCE else 0.0
        for loss, d in zip(losses, apart.tolist(), strict=True)
    )
    return _loss(look, "loss by distance of the output", value)


def _loss(look: _Look, what: str, value: Any) -> Finding:
    promised = look.case.guarantee.epsilon or Fraction(0)
    slack = LOSS_TOLERANCE if isinstance(value, float) else 0.0
    kept = math.isfinite(value) and Fraction(value) <= promised + Fraction(slack or EXACT)
    return held(what, look.case, float(value), float(promised), kept, "ε", slack)


def _zcdp(look: _Look) -> Finding:
    limit = float(look.case.guarantee.rho or 0)
    value = max(float(_divergences(look.distribution, look.pairs, order).max()) / order for order in ORDERS)
    slack = tolerance("ρ", limit)
    return held("Rényi rate of the output", look.case, value, limit, value <= limit + slack, "ρ", slack)


def _divergences(distribution: ProductDistribution, pairs: Pairs, order: float) -> Any:
    total = np.zeros(len(pairs))
    for part, masses in enumerate(distribution.floats):
        total += renyi_of_masses(masses, order)[
            distribution.index[pairs[:, 0], part], distribution.index[pairs[:, 1], part]
        ]
    return total


def _approximate(look: _Look) -> Finding:
    """Check all neighbours; for additive noise, whose sums are checked already, adversarial pairs only."""
    distribution, pairs, unit = look.distribution, look.pairs, None
    noise, method = look.version.noise, look.case.method
    if noise is not None and look.version.distribution is not None:
        made = look.entry.pairs(look.case)
        distribution = look.version.distribution(
            method, np.stack([i for pair in made for i in (pair.first, pair.second)])
        )
        pairs = np.arange(2 * len(made)).reshape(-1, 2)
        pairs = np.concatenate([pairs, pairs[:, ::-1]])
        unit = unit_of(noise.kind, noise.parameters(method, look.case.size))
    promise = look.case.guarantee
    delta = promise.delta or Fraction(0)
    value = max(
        (
            hockey_stick(differ, promise.epsilon or Fraction(0), unit)
            for differ in distribution.between(pairs)
        ),
        default=0,
    )
    slack = 0.0 if isinstance(value, Fraction) else tolerance("δ", float(delta))
    kept = value <= delta + Fraction(slack)
    return held("divergence of the output", look.case, float(value), float(delta), kept, "δ", slack)


def hockey_stick(draws: list[tuple[Masses, Masses]], epsilon: Fraction, unit: float | None = None) -> Any:
    """Return the hockey-stick divergence of independent draws from their laws under both inputs.

    Never below the truth; for exact probabilities of few outcomes at ε = 0 it is the truth, as a Fraction.

    >>> coin = np.array([Fraction(1, 3), Fraction(2, 3)], object)
    >>> hockey_stick([(coin, coin[::-1])], Fraction(0))
    Fraction(1, 3)
    """
    if math.prod(len(first) for first, _ in draws) > MOST_JOINT:
        return compose([(_floats(p), _floats(q)) for p, q in draws], unit).delta(float(epsilon))
    first: Any = np.ones(1, np.int64)
    second: Any = np.ones(1, np.int64)
    for p, q in draws:
        p, q = (_rationals(m) if epsilon == 0 and m.dtype == object else _floats(m) for m in (p, q))
        first, second = np.outer(first, p).ravel(), np.outer(second, q).ravel()
    return np.maximum(first - (math.exp(epsilon) if epsilon else 1) * second, 0).sum()


def _floats(masses: Masses) -> Any:
    return (masses / masses.sum()).astype(np.float64)


def _rationals(masses: Masses) -> Any:
    whole = masses.sum()
    return np.array([Fraction(mass, whole) for mass in masses], object)


DIVERGENCES: Final[dict[str, Callable[[_Look], Finding]]] = {
    "pure": _pure,
    "zcdp": _zcdp,
    "approximate": _approximate,
    "metric": _metric,
}
