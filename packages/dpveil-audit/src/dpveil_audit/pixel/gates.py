"""Gates for pixel methods, computed and drawn, and the audit of a method."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial
from typing import Any, Final

import numpy as np

from dpveil.errors import InvalidParameter
from dpveil.noise.bits import BitSource, SeededBits
from dpveil_audit.divergence import (
    CLOSE,
    ORDERS,
    Move,
    NoiseKind,
    Pairs,
    Worst,
    move_loss,
    renyi_of_shift,
    slack,
    unit_of,
    worst,
)
from dpveil_audit.engine import (
    Audit,
    Bits,
    Chances,
    Check,
    Drawn,
    Finding,
    Gate,
    Level,
    Outcomes,
    count_finding,
    drawing,
    exact_finding,
    fit_finding,
)
from dpveil_audit.fit import ALPHA
from dpveil_audit.lower_bound import lower_bound
from dpveil_audit.pixel.case import (
    Case,
    DistributionOf,
    Image,
    Images,
    Known,
    all_images,
    uneven_image,
)

SAME_LAW: Final = 1e-7
"""Largest difference of a probability from the law that is written independently."""
DISTINGUISHED: Final = math.log(10)
"""The ε that a method without a guarantee must exceed for its neighbours to count as distinguished."""


def same_gate(version: Any, case: Case) -> Iterator[Finding]:
    """Yield how many values of the version's release differ from those of `release` for the same bits."""
    image = uneven_image(case.size)
    released = case.method.release(image, bits=SeededBits(3, "same"))
    differ = int(np.sum(version.releases(case.method, image, 1, SeededBits(3, "same"))[0] != released))
    yield count_finding("same", "values unlike release()", case, differ, "values", sees="any")


def exact_gate(version: Any, case: Case, entry: Known, *, larger: bool = False) -> Iterator[Finding]:
    """Yield the divergence of the worst neighbours on the case's levels, and the law's error.

    A `larger` image has too many neighbours: the adversarial ones are taken. For additive noise, the
    divergence before post-processing comes first. It covers what follows, so that the output is looked at on
    small images alone (larger ones have chances that floats do not hold), and under (ε, δ) for adversarial
    neighbours.
    """
    promise, added, unit = case.guarantee, version.added, None
    images, pairs = _adversarial(case, entry) if larger else _everything(case, entry)
    if not len(pairs):
        return
    if added is not None:
        found = SUMS[promise.kind](added.kind, promise, added.moves(case.method, images, pairs))
        yield exact_finding(case, "loss of the sums", found)
        unit = unit_of(added.kind, added.parameters(case.method, case.size))
        images, pairs = _adversarial(case, entry) if promise.kind == "approximate" else (images, pairs)
    if version.distribution is None or (larger and added is not None):
        return
    law = version.distribution(case.method, images)
    apart = None if entry.distances is None else entry.distances(images, pairs)
    metric = apart if promise.kind == "metric" else None
    yield exact_finding(case, "loss of the output", worst(promise, law, pairs, metric, unit))
    if promise.diameter is not None and apart is not None:
        most, farthest = float(promise.diameter), float(apart.max())
        kept = farthest <= most * (1 + CLOSE)
        yield Finding("exact", "distance of two images", str(case), farthest, most, kept, "d")
    if entry.right is not None:
        gap = law.distance(entry.right(case.method, images))
        yield Finding(
            "exact", "distance to the right distribution", str(case), gap, SAME_LAW, gap <= SAME_LAW
        )


def _everything(case: Case, entry: Known) -> tuple[Images, Pairs]:
    images = all_images(case.height, case.width, case.channels, case.levels)
    return images, entry.neighbours(case, images)


def _adversarial(case: Case, entry: Known) -> tuple[Images, Pairs]:
    images = np.array([image for pair in entry.pairs(case) for image in (pair.first, pair.second)])
    pairs = np.arange(len(images)).reshape(-1, 2)
    return images, np.concatenate([pairs, pairs[:, ::-1]])


def _sums_pure(kind: NoiseKind, promise: Any, moves: list[Move]) -> Worst:
    value: Any = math.inf  # Gaussian noise has no largest log-ratio
    if kind.unit(Fraction(1)) is not None:
        value = max(sum((gap / parameter for gap, parameter in move), Fraction(0)) for move in moves)
    return Worst("ε", value, promise.epsilon, 0.0)


def _sums_zcdp(kind: NoiseKind, promise: Any, moves: list[Move]) -> Worst:
    value = max(renyi_rate(kind, move, order) for move in moves for order in ORDERS)
    return Worst("ρ", value, promise.rho, slack("ρ", float(promise.rho)))


def _sums_approximate(kind: NoiseKind, promise: Any, moves: list[Move]) -> Worst:
    value = max(move_loss(kind, move).delta(float(promise.epsilon)) for move in moves)
    return Worst("δ", value, promise.delta, slack("δ", float(promise.delta)))


SUMS: Final[dict[str, Callable[[NoiseKind, Any, list[Move]], Worst]]] = {
    "pure": _sums_pure,
    "zcdp": _sums_zcdp,
    "approximate": _sums_approximate,
}


def renyi_rate(kind: NoiseKind, move: Move, order: float) -> float:
    """Return D_α/α of one move, a lower bound on ρ."""
    return sum(renyi_of_shift(kind, parameter, gap, order) for gap, parameter in move) / order


def fit_gate(version: Any, setting: Drawn, entry: MethodAudit, *, bits: BitSource) -> Iterator[Finding]:
    """Yield how well releases of an irregular image, and of an extreme one, follow their law."""
    case = setting.case
    images = {"an uneven image": uneven_image(case.size)}
    images |= {pair.name: pair.second for pair in entry.pairs(case)[:1]}
    seen = ((name, *_observe(version, setting, image, entry.law, bits)) for name, image in images.items())
    yield fit_finding(case, f"{setting.draws:,} draws", seen)


def _observe(
    version: Any, setting: Drawn, image: Image, law_of: DistributionOf, bits: BitSource
) -> tuple[Outcomes, Chances]:
    """Return the outcomes of every draw, -1 for impossible ones, and their law; alike ones are merged."""
    method = setting.case.method
    law = law_of(method, image[None])
    if version.outcomes is not None:
        return version.outcomes(method, image, setting.draws, bits), law.chances(0)
    if len(law.parts) != len(law.masses):
        raise InvalidParameter(
            "distribution", None, "shows no places", hint="give parts, or outcomes of the version"
        )
    shown = version.releases(method, image, setting.draws, bits)
    merged = [
        np.bincount(p.first, mass, len(mass)) for p, mass in zip(law.parts, law.chances(0), strict=True)
    ]
    return np.stack([part.read(shown) for part in law.parts], axis=1), merged


def distinguish_gate(version: Any, setting: Drawn, entry: Known, *, bits: BitSource) -> Iterator[Finding]:
    """Yield the first pair of neighbours that a method without a guarantee distinguishes, or else the last.

    If none were distinguished, the method's reason for promising nothing would be wrong.
    """
    case, pairs = setting.case, entry.pairs(setting.case)
    for pair in pairs:
        sides = [version.releases(case.method, i, 2 * setting.draws, bits) for i in (pair.first, pair.second)]
        bound = lower_bound(sides[0], sides[1], alpha=ALPHA / len(pairs))
        if bound.lower >= DISTINGUISHED:
            break
    what = f"neighbours told apart in {setting.draws:,} draws, {bound.event}"
    kept = bound.lower >= DISTINGUISHED
    yield Finding("distinguish", what, f"{case}, {pair.name}", bound.lower, DISTINGUISHED, kept, "ε at least")


@dataclass(frozen=True, kw_only=True)
class MethodAudit(Audit, Known):
    """The audit of one method: its versions, the facts about it, and the settings of both levels.

    A method that promises nothing, and of which nothing can be shown, has no levels, with the reason in
    `note`.
    """

    known: dict[Any, Any] = field(default_factory=dict, init=False, repr=False, compare=False)

    def law(self, method: Any, images: Images) -> Any:
        """Return the law that releases have to follow: the independent one, or that of the intact version."""
        key = method, images.shape, images.tobytes()
        if key not in self.known:
            self.known[key] = (self.right or self.intact.distribution)(method, images)
        return self.known[key]

    def mutant(self, name: str) -> Any:
        """Return the mutant of that name."""
        return next(mutant for mutant in self.mutants if mutant.name == name)

    def checks(self, level: Level, bits: Bits) -> list[Check]:
        """Return every gate with every setting."""
        gates = [
            Gate("same", same_gate, lambda level: level.cases, ties=True),
            Gate("exact", partial(exact_gate, entry=self)),
            Gate(
                "exact",
                partial(exact_gate, entry=self, larger=True),
                lambda level: [d.case for d in level.drawn],
            ),
            drawing("fit", partial(fit_gate, entry=self)),
            drawing("distinguish", partial(distinguish_gate, entry=self), of=lambda level: level.distinguish),
        ]
        return [check for gate in gates for check in gate.checks(level, bits)]

    def differs(self, mutant: Any, check: Check) -> bool:
        """Return whether a mutant can behave differently: laws do not show one with the intact law."""
        intact = self.intact
        blind = mutant.distribution == intact.distribution and mutant.added is intact.added
        return not (check.gate == "exact" and blind)
