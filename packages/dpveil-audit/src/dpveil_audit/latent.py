"""Latent mechanisms, intact and mutated: laws of released coordinates from their formulas, and draws."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, cached_property, lru_cache
from typing import Any, Final

import numpy as np
from jaxtyping import Float64

from dpveil.codecs import Bounds
from dpveil.core.guarantee import Guarantee
from dpveil.core.rationals import Number, show
from dpveil.mechanisms.latent import (
    BoxGaussian,
    BoxLaplace,
    BoxTruncatedLaplace,
    CroftMetric,
    Directional,
    LatentMechanism,
    PCABasis,
)
from dpveil.noise.bits import BitSource
from dpveil_audit import engine
from dpveil_audit.distributions import laplace_distribution
from dpveil_audit.divergence import Masses, Outcomes, ProductLaw
from dpveil_audit.engine import BY_DRAWS, Audit, Drawn, LawOf, Level, Version, law_gates

BINS: Final = 360
"""Bins of the angle of a direction in the plane: they hide less than a hundredth of a log-ratio."""
FINE: Final = 64  # angles of a bin over which a density is summed
ANGLES: Final = ((np.arange(BINS * FINE) + 0.5) / FINE - BINS / 2) * (2 * math.pi / BINS)
"""Angles from -π to π, `FINE` in each bin."""


SIDE: Final = 1 << 16  # steps of a side of the box, independent of the mechanisms' own constant
Code = tuple[float, ...]
Codes = Float64[np.ndarray, "n m"]


@dataclass(frozen=True)
class AuditSpace:
    """A public box without a codec; `energy`, deviations (`spread`) and the usual radius (`far`) as given."""

    low: Code
    high: Code
    energy: Code
    spread: Code | None = None
    far: float = 0.5

    @property
    def length(self) -> int:
        return len(self.low)

    @property
    def column_energy(self) -> Float64[np.ndarray, " m"]:
        """Squared grey levels in the picture per squared unit of each coordinate."""
        return np.array(self.energy)

    @property
    def deviations(self) -> Float64[np.ndarray, " m"] | None:
        return None if self.spread is None else np.array(self.spread)

    def radius(self, clip: Number = 0) -> float:
        """Return the usual distance from the centre, in half sides."""
        return self.far

    def bounds(self, clip: Number = 0) -> Bounds:
        """Return the box; each per cent of `clip` removes a hundredth at both ends of every side."""
        low, high = np.array(self.low), np.array(self.high)
        cut = float(Fraction(clip)) / 100 * (high - low)
        return Bounds(low + cut, high - cut)


@dataclass(frozen=True)
class LatentCase(engine.Case):
    """One mechanism in one space, the codes whose releases are distinguished, and some to draw for."""

    mechanism: LatentMechanism
    space: AuditSpace
    inputs: tuple[Code, ...]
    fits: tuple[Code, ...] = ()

    @cached_property
    def box(self) -> Bounds:
        return self.space.bounds(self.mechanism.clip)

    @cached_property
    def guarantee(self) -> Guarantee:
        return self.mechanism.guarantee(self.space)

    @property
    def metric(self) -> bool:
        return self.guarantee.kind == "metric"

    @cached_property
    def apart(self) -> Any:
        codes = self.inputs
        return np.array([self.distance(codes[i], codes[j]) for i, j in self.pairs]) if self.metric else None

    @property
    def in_plane(self) -> bool:
        """Whether releases are directions in two coordinates."""
        return isinstance(self.mechanism, Directional)

    @cached_property
    def coordinates_read(self) -> int:
        """How many leading coordinates are read: all except for pca-basis, where it is searched for."""
        method, spread = self.mechanism, self.space.spread
        if not isinstance(method, PCABasis) or spread is None:
            return self.space.length
        needed = self.box.width / float(Fraction(method.epsilon))
        room = [float(Fraction(method.ratio)) * deviation for deviation in spread]
        good = [c for c in range(1, len(room) + 1) if all(c * needed[i] < room[i] for i in range(c))]
        return max(good)

    def points(self, code: Code) -> list[int]:
        """Return a code, moved into the box, in steps from the lower end of every side."""
        inside = self.box.clip(np.array([code]))
        return [int(step) for step in np.rint((inside[0] - self.box.low) / self.box.width * SIDE)]

    def direction(self, code: Code) -> tuple[float, float]:
        """Return a code of two coordinates relative to the centre, in half sides."""
        x, y = (2 * step / SIDE - 1 for step in self.points(code))
        return (x, y) if (x, y) != (0.0, 0.0) else (1.0, 0.0)

    def distance(self, first: Code, second: Code) -> float:
        """Return the distance of two codes in the mechanism's metric, by its definition."""
        if self.in_plane:
            ends = [np.array(self.direction(code)) for code in (first, second)]
            return math.dist(*(end / math.hypot(*end) for end in ends))
        moved = [abs(a - b) for a, b in zip(self.points(first), self.points(second), strict=True)]
        return sum(moved[: self.coordinates_read]) / SIDE / self.coordinates_read

    def read(self, released: Codes) -> Outcomes:
        """Return the outcome of every part; -1 off the grid of the public box."""
        steps = (released - self.box.low) / self.box.width * SIDE
        whole = np.rint(steps)
        good = (np.abs(steps - whole) < 1e-6) & (whole >= 0) & (whole <= SIDE)
        points: Outcomes = np.where(good, whole, -1).astype(np.int64)
        if not self.in_plane:
            return points
        away = points - SIDE // 2
        on_circle = np.abs(np.hypot(*away.T) - self.space.far * SIDE / 2) < 1
        turned = (np.arctan2(*away.T[::-1]) / (2 * math.pi) + 0.5) * BINS
        return np.where(on_circle, np.minimum(turned, BINS - 1), -1).astype(np.int64)[:, None]

    def label(self, number: int) -> str:
        return "(" + ", ".join(f"{value:g}" for value in self.inputs[number]) + ")"

    def __str__(self) -> str:
        method = self.mechanism
        budget = {"epsilon": "ε", "rho": "ρ"}
        names = [f"{budget.get(k, k)} = {show_plain(v)}" for k, v in method.parameters().items()]
        return f"{self.space.length} coordinates, {', '.join(names)}"


def show_plain(value: Any) -> str:
    return value if isinstance(value, str) and not value[:1].isdigit() else show(Fraction(value))


REACH: Final = 12  # standard deviations at which Gaussian tails are cut, below 10^-32
SHOWN: Final = "shown"
DROPPED: Final = "dropped"
Amount = Fraction | str
"""The noise of a coordinate: its scale in steps (variance for Gaussians), `SHOWN` without noise, or `DROPPED`
for 0.
"""
Amounts = Callable[[LatentCase], tuple[Amount, ...]]


@lru_cache(maxsize=256)
def clipped_laplace(centre: int, scale: Fraction) -> Masses:
    """Return discrete Laplace noise around a point, clipped to the box."""
    rate = 1 / float(scale)
    mass = np.exp(-rate * np.abs(np.arange(SIDE + 1) - centre)) * math.tanh(rate / 2)
    law = laplace_distribution(scale)
    mass[0], mass[-1] = law.cdf(np.array(-centre)), law.survival(np.array(SIDE - 1 - centre))
    return mass


@lru_cache(maxsize=256)
def truncated_laplace(centre: int, scale: Fraction) -> Masses:
    """Return probabilities ∝ exp(-|y - centre|/scale) within the box."""
    mass = np.exp(-np.abs(np.arange(SIDE + 1) - min(max(centre, 0), SIDE)) / float(scale))
    return mass / mass.sum()


@lru_cache(maxsize=256)
def clipped_gaussian(centre: int, variance: Fraction) -> Masses:
    """Return discrete Gaussian noise around a point, clipped to the box."""
    reach = math.ceil(REACH * math.sqrt(float(variance))) + SIDE + abs(centre)
    mass = np.exp(-((np.arange(-reach, reach + 1) - centre) ** 2) / (2 * float(variance)))
    mass /= mass.sum()
    inside = mass[reach : reach + SIDE + 1].copy()
    inside[0], inside[-1] = mass[: reach + 1].sum(), mass[reach + SIDE :].sum()
    return inside


def always(point: int) -> Masses:
    """Return the law of a coordinate that is released without noise."""
    mass = np.zeros(SIDE + 1)
    mass[min(max(point, 0), SIDE)] = 1.0
    return mass


FAMILIES: Final = {"laplace": clipped_laplace, "truncated": truncated_laplace, "gaussian": clipped_gaussian}


def noisy(family: str, amounts: Amounts) -> LawOf:
    """Return the law of codes with noise of a family on every coordinate."""

    def law(case: LatentCase, codes: Sequence[Code]) -> ProductLaw:
        columns = zip(*map(case.points, codes), strict=True)
        return ProductLaw.of(
            [
                np.stack([_chances(family, amount, point, middle(case, number)) for point in column])
                for number, (amount, column) in enumerate(zip(amounts(case), columns, strict=True))
            ]
        )

    return law


def _chances(family: str, amount: Amount, point: int, at_zero: int) -> Masses:
    if isinstance(amount, str):
        return always(point if amount == SHOWN else at_zero)
    return FAMILIES[family](point, amount)


def middle(case: LatentCase, number: int) -> int:
    """Return the point of 0, to which dropped components are set."""
    place = round(float(-case.box.low[number] / case.box.width[number]) * SIDE)
    return min(max(place, 0), SIDE)


def draw(case: LatentCase, code: Code, count: int, bits: BitSource) -> Outcomes:
    """Return the outcomes of the mechanism's own releases of a code, from one batch."""
    return case.read(case.mechanism.release(np.tile(np.array([code]), (count, 1)), case.space, bits=bits))


def own(amounts: Callable[[Any, AuditSpace], Sequence[Fraction]]) -> Amounts:
    """Return the amounts of a mechanism by its own methods; their cost is computed independently."""
    return lambda case: tuple(amounts(case.mechanism, case.space))


own_scales = own(lambda method, space: method.scales(space))
own_variances = own(lambda method, space: method.variances(space))
# A range with two ends allows smaller scales of truncated noise.
own_ranges = own(lambda method, space: [SIDE / Fraction(one.epsilon) for one in method.coordinates(space)])


def own_leading(case: LatentCase) -> tuple[Amount, ...]:
    """Return the scale of the kept components; the others are dropped."""
    method: Any = case.mechanism
    return leading(case, case.coordinates_read, method.scale(case.space))


def leading(case: LatentCase, count: int, scale: Fraction) -> tuple[Amount, ...]:
    """Return one scale for `count` leading components."""
    return tuple(scale if i < count else DROPPED for i in range(case.space.length))


def _epsilon(case: LatentCase) -> Fraction:
    return Fraction(case.guarantee.epsilon or 1)


def _of_each(amount: Callable[[LatentCase], Fraction]) -> Amounts:
    return lambda case: (amount(case),) * case.space.length


def mutants(family: str, amounts: Amounts, others: dict[str, Amounts]) -> tuple[Version, ...]:
    """Return the mutants of a mechanism with noise on coordinates: usual ones, and others of its amounts."""
    narrower = Fraction(4, 5) ** (2 if family == "gaussian" else 1)
    wrong: dict[str, Amounts] = {
        "noise ×0.8": lambda case: tuple(a if isinstance(a, str) else a * narrower for a in amounts(case)),
        "last coordinate without noise": lambda case: (*amounts(case)[:-1], SHOWN),
    }
    laws = {name: noisy(family, other) for name, other in (wrong | others).items()}
    shared = Version(
        name="one draw for all coordinates", law=noisy(family, amounts), gates=BY_DRAWS, shared=True
    )
    return (*(Version(name=name, law=law) for name, law in laws.items()), shared)


# Directions


def directional_law(
    concentration: Callable[[LatentCase, Code], float], *, kept: Callable[[Any, Any], Any] | None = None
) -> LawOf:
    """Return the law ∝ e^(k·⟨x, μ⟩) of the angle of a direction in the plane, on the whole circle or where
    `kept`(angles, that of the code) says.
    """

    def chances(case: LatentCase, code: Code) -> Masses:
        x, y = case.direction(code)
        own = math.atan2(y, x)
        found = np.exp(concentration(case, code) * (np.cos(ANGLES - own) - 1))
        mass = (found if kept is None else found * kept(ANGLES, own)).reshape(BINS, FINE).sum(axis=1)
        return mass / mass.sum()

    return lambda case, codes: ProductLaw.of([np.stack([chances(case, code) for code in codes])])


def _k(case: LatentCase, code: Code) -> float:
    return float(_epsilon(case))


right_directions = directional_law(_k)


DIRECTIONAL: Final = (
    Version(name="noise ×0.8", law=directional_law(lambda case, code: 1.25 * _k(case, code))),
    Version(
        name="length of the code kept",
        law=directional_law(lambda case, code: _k(case, code) * math.hypot(*case.direction(code))),
    ),
    Version(
        name="nearer half of the sphere only",
        law=directional_law(_k, kept=lambda angles, own: np.cos(angles - own) > 0),
    ),
    Version(name="every draw used twice", gates=BY_DRAWS, law=right_directions, repeated=2),
)


# Audit entries of the latent mechanisms

Settings = tuple[tuple[AuditSpace, dict[str, Any]], ...]
DRAWS: Final = 20_000
FITTED: Final = (0, 2, 6)  # an end, the middle, and a code outside, of those of `codes_of`
FEW_DRAWS: Final = 1_000  # draws of directions, each of which takes interval arithmetic
TWO: Final = AuditSpace((0, -4), (1, 4), (1, 1), (0.25, 2))
THREE: Final = AuditSpace((-1, 0, -0.125), (1, 8, 0.125), (4, 1, 40), (0.5, 2, 0.03125))
PLANE: Final = AuditSpace((-1, -2), (1, 2), (1, 1))
ROUND: Final[tuple[Code, ...]] = (
    (1, 0),
    (-1, 0.001),
    (0, 0),
    (0.5, 1),
    (0.25, 0.5),
    (3, 4),
    (-0.125, 0.0625),
    (0, -2),
)
"""Codes in all directions, close to the centre and outside the box."""


def latent_audit(
    method: type[LatentMechanism],
    law: LawOf,
    wrong: tuple[Version, ...],
    cases: Sequence[LatentCase],
    drawn: Sequence[LatentCase],
    draws: int = DRAWS,
) -> Audit:
    """Return the audit of a mechanism, whose intact version has the law of its definition."""
    intact = Version(name="intact", law=cache(law), draw=draw)
    level = Level(tuple(cases), tuple(Drawn(case, draws) for case in drawn))
    return Audit(method=method, intact=intact, mutants=wrong, level=level, gates=law_gates(intact))


def codes_of(space: AuditSpace) -> tuple[Code, ...]:
    """Return codes at the ends, at the centre, a step and half a step next to it, and far outside."""
    low, high = space.low, space.high
    middle = tuple((a + b) / 2 for a, b in zip(low, high, strict=True))
    step = tuple((b - a) / 2**16 for a, b in zip(low, high, strict=True))
    beside = (middle[0] + step[0], *middle[1:])
    between = tuple(a + 0.4 * b for a, b in zip(middle, step, strict=True))
    outside = tuple(b + 3 * (b - a) for a, b in zip(low, high, strict=True))
    below = (low[0] - 2 * (high[0] - low[0]), *middle[1:])
    return low, high, middle, beside, between, (high[0], *low[1:]), outside, below


def _audit(
    method: type[LatentMechanism],
    family: str,
    amounts: Amounts,
    others: dict[str, Amounts],
    settings: Settings,
) -> Audit:
    few = slice(None, None, 2 if method is BoxGaussian else 1)
    cases = [
        LatentCase(method(**given), space, codes[few], tuple(codes[n] for n in FITTED))
        for codes, space, given in ((codes_of(space), space, given) for space, given in settings)
    ]
    return latent_audit(method, noisy(family, amounts), mutants(family, amounts, others), cases, cases)


def _directions() -> Audit:
    cases = [
        LatentCase(Directional(epsilon=epsilon), PLANE, ROUND, (ROUND[3], ROUND[6]))
        for epsilon in (2, "0.3", 12)
    ]
    return latent_audit(Directional, right_directions, DIRECTIONAL, cases, cases[:1], FEW_DRAWS)


def _pure(epsilon: Any, **more: Any) -> dict[str, Any]:
    return {"epsilon": epsilon, **more}


USUAL: Final[Settings] = (
    (THREE, _pure(4)),
    (TWO, _pure("0.7", allocation="equal")),
    (THREE, _pure(30, clip=10)),
)
AUDITS: Final[dict[str, Audit]] = {
    audit.method.name: audit
    for audit in (
        _audit(
            CroftMetric,
            "laplace",
            own_scales,
            {"number of coordinates forgotten": _of_each(lambda case: SIDE / _epsilon(case))},
            ((TWO, _pure(4)), (THREE, _pure("0.5")), (THREE, _pure(60, clip=10))),
        ),
        _audit(
            PCABasis,
            "laplace",
            own_leading,
            {
                "number of components forgotten": lambda case: leading(
                    case, case.coordinates_read, SIDE / _epsilon(case)
                ),
            },
            ((THREE, _pure(6)), (TWO, _pure(20)), (THREE, _pure(4, clip=10))),
        ),
        _audit(
            BoxLaplace,
            "laplace",
            own_scales,
            {
                # Li & Clifton's algorithm 2 as printed (errata E7)
                "weights in the numerator": _of_each(
                    lambda case: SIDE / (case.space.length * _epsilon(case))
                ),
            },
            USUAL,
        ),
        _audit(
            BoxTruncatedLaplace,
            "truncated",
            own_ranges,
            {"ε not divided": _of_each(lambda case: SIDE / _epsilon(case))},
            USUAL,
        ),
        _audit(
            BoxGaussian,
            "gaussian",
            own_variances,
            {"ρ not divided": _of_each(lambda case: SIDE**2 / (2 * Fraction(case.guarantee.rho or 1)))},
            ((THREE, {"rho": 4}), (TWO, {"rho": "0.7"}), (THREE, {"rho": 30, "clip": 10})),
        ),
        _directions(),
    )
}
