"""Latent mechanisms, intact and mutated: laws of released coordinates from their formulas, and draws."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache, lru_cache, partial
from typing import Any, Final

import numpy as np

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
from dpveil_audit.distributions import laplace_distribution
from dpveil_audit.divergence import CLOSE, Masses, ProductLaw
from dpveil_audit.engine import (
    BY_LAW,
    Audit,
    Drawn,
    Finding,
    Gate,
    Level,
    Outcomes,
    Variant,
    drawing,
    exact_finding,
    fit_finding,
    sampled,
)
from dpveil_audit.latent.case import SIDE, AuditSpace, Code, LatentCase

REACH: Final = 12
"""Standard deviations at which Gaussian tails are cut, below 10^-32."""
SHOWN: Final = "shown"
DROPPED: Final = "dropped"
Amount = Fraction | str
"""The noise of a coordinate: its scale in steps (variance for Gaussians), `SHOWN` without noise, or `DROPPED`
for 0.
"""
Amounts = Callable[[LatentCase], tuple[Amount, ...]]
LawOf = Callable[[LatentCase, Sequence[Code]], ProductLaw]


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


@dataclass(frozen=True)
class Recipe:
    """Noise of a family on every coordinate; `clipped` and `own_box` select faults.

    Without `clipped`, noise is added to unclipped codes and the result is clipped. With `own_box`, a code is
    in the middle of the box that it is released in.
    """

    family: str
    amounts: Amounts
    clipped: bool = True
    own_box: bool = False

    def law(self, case: LatentCase, codes: Sequence[Code]) -> ProductLaw:
        """Return the law of the releases of codes: of every coordinate, and the box if that is private."""
        amounts = self.amounts(case)
        points = [
            [SIDE // 2] * len(code) if self.own_box else case.points(code, clipped=self.clipped)
            for code in codes
        ]
        rows = [
            np.stack([self._chances(amount, point, case, number) for point in column])
            for number, (amount, column) in enumerate(zip(amounts, zip(*points, strict=True), strict=True))
        ]
        return ProductLaw.of([*rows, *([np.eye(len(codes))] if self.own_box else [])])

    def _chances(self, amount: Amount, point: int, case: LatentCase, number: int) -> Masses:
        if isinstance(amount, str):
            return always(point if amount == SHOWN else middle(case, number))
        return FAMILIES[self.family](point, amount)


def middle(case: LatentCase, number: int) -> int:
    """Return the point of 0, to which dropped components are set."""
    place = round(float(-case.box.low[number] / case.box.width[number]) * SIDE)
    return min(max(place, 0), SIDE)


@dataclass(frozen=True, kw_only=True)
class LatentVersion(Variant):
    """One way to carry out a mechanism: with the law of its definition and its own draws, or a mutant.

    A mutant is drawn from its law, if `shared` all coordinates from one number, or each draw `repeated`.
    """

    law: LawOf
    own: bool = False
    shared: bool = False
    repeated: int = 1

    def draws(self, setting: Drawn, bits: BitSource) -> Iterator[Outcomes]:
        """Yield the outcomes of every code of a setting: the mechanism's own from one mixed batch."""
        case, codes = setting.case, np.array(setting.fits)
        if not self.own:
            for code in setting.fits:
                chances = self.law(case, [code]).chances(0)
                yield sampled(chances, setting.draws, bits, shared=self.shared, repeated=self.repeated)
            return
        mixed = case.mechanism.release(np.tile(codes, (setting.draws, 1)), case.space, bits=bits)
        yield from (case.read(mixed[number :: len(codes)]) for number in range(len(codes)))


def wrong(name: str, recipe: Recipe, gates: tuple[str, ...] = (), **more: Any) -> LatentVersion:
    """Return a mutant with another recipe."""
    return LatentVersion(name=name, gates=gates, law=recipe.law, **more)


def times(amounts: Amounts, factor: Fraction | int) -> Amounts:
    """Return all amounts times a factor."""
    return lambda case: tuple(a if isinstance(a, str) else a * factor for a in amounts(case))


def own_scales(case: LatentCase) -> tuple[Amount, ...]:
    """Return the mechanism's own scales; their cost is computed independently."""
    method: Any = case.mechanism
    return tuple(method.scales(case.space))


def own_ranges(case: LatentCase) -> tuple[Amount, ...]:
    """Return the scales of truncated noise: the smallest that a range with two ends allows."""
    method: Any = case.mechanism
    return tuple(SIDE / Fraction(one.epsilon) for one in method.coordinates(case.space))


def own_variances(case: LatentCase) -> tuple[Amount, ...]:
    """Return the mechanism's own variances."""
    method: Any = case.mechanism
    return tuple(method.variances(case.space))


def own_leading(case: LatentCase) -> tuple[Amount, ...]:
    """Return the scale of the kept components; the others are dropped."""
    method: Any = case.mechanism
    return leading(case, case.coordinates_read, method.scale(case.space))


def leading(case: LatentCase, count: int, scale: Fraction) -> tuple[Amount, ...]:
    """Return one scale for `count` leading components."""
    return tuple(scale if i < count else DROPPED for i in range(case.space.length))


def _epsilon(case: LatentCase) -> Fraction:
    return Fraction(case.guarantee.epsilon or 1)


def _undivided_noise(case: LatentCase) -> tuple[Amount, ...]:
    """Use the noise of a single coordinate for each."""
    return (SIDE / _epsilon(case),) * case.space.length


def _parts(case: LatentCase) -> list[float]:
    """Return W^(1/3)·S^(2/3) as printed: relative to the largest, so that shares do not sum to 1."""
    sides = zip(case.space.energy, case.box.width.tolist(), strict=True)
    found = [math.cbrt(energy * width**2) for energy, width in sides]
    return [part / max(found) for part in found]


def _unnormalised_shares(case: LatentCase) -> tuple[Amount, ...]:
    return _divide_noise(case, [Fraction(part) for part in _parts(case)])


def _partial(case: LatentCase) -> tuple[Amount, ...]:
    """Use FaceIDP's allocation: the coordinates that matter least for recognition get no noise."""
    parts = _parts(case)
    total = Fraction(sum(parts) - min(parts))
    return _divide_noise(case, [Fraction(part) / total if part > min(parts) else None for part in parts])


def _divide_noise(case: LatentCase, shares: Sequence[Fraction | None]) -> tuple[Amount, ...]:
    return tuple(SHOWN if share is None else SIDE / (share * _epsilon(case)) for share in shares)


def _in_the_numerator(case: LatentCase) -> tuple[Amount, ...]:
    """Use Li & Clifton's algorithm 2 as printed (errata E7)."""
    return (SIDE / (case.space.length * _epsilon(case)),) * case.space.length


def _whole_rho(case: LatentCase) -> tuple[Amount, ...]:
    return (SIDE**2 / (2 * Fraction(case.guarantee.rho or 1)),) * case.space.length


def _count_forgotten(case: LatentCase) -> tuple[Amount, ...]:
    return leading(case, case.coordinates_read, SIDE / _epsilon(case))


def _rest_shown(case: LatentCase) -> tuple[Amount, ...]:
    return tuple(SHOWN if amount == DROPPED else amount for amount in own_leading(case))


def common(
    family: str, amounts: Amounts, narrower: Fraction, gates: tuple[str, ...] = BY_LAW
) -> tuple[LatentVersion, ...]:
    """Return the mutants of every mechanism with noise on coordinates.

    `gates` are those for noise ×0.8.
    """
    right = Recipe(family, amounts)
    halved = Fraction(1, 4) if family == "gaussian" else Fraction(1, 2)
    found = (
        wrong("noise ×0.8", replace(right, amounts=times(amounts, narrower)), gates),
        wrong("sensitivity halved", replace(right, amounts=times(amounts, halved))),
        wrong(
            "last coordinate without noise", replace(right, amounts=lambda case: (*amounts(case)[:-1], SHOWN))
        ),
        wrong("box around the private code", replace(right, own_box=True)),
        wrong("one draw for all coordinates", right, ("fit",), shared=True),
    )
    # The truncated distribution of a place outside is that of the end: it forgets how far outside that was.
    outside = wrong("no clipping before the noise", replace(right, clipped=False))
    return found if family == "truncated" else (*found, outside)


def _instead(family: str, name: str, amounts: Amounts) -> LatentVersion:
    return wrong(name, Recipe(family, amounts))


EIGHT: Final = Fraction(4, 5)
CROFT: Final = (
    *common("laplace", own_scales, EIGHT, gates=()),
    _instead("laplace", "number of coordinates forgotten", _undivided_noise),
)
LAPLACE: Final = (
    *common("laplace", own_scales, EIGHT),
    _instead("laplace", "weights not normalised", _unnormalised_shares),
    _instead("laplace", "budget over a part of the coordinates", _partial),
    _instead("laplace", "weights in the numerator", _in_the_numerator),
)
TRUNCATED: Final = (
    *common("truncated", own_ranges, EIGHT),
    _instead("truncated", "weights not normalised", _unnormalised_shares),
)
GAUSSIAN: Final = (
    *common("gaussian", own_variances, EIGHT**2),
    _instead("gaussian", "ρ not divided", _whole_rho),
)
LEADING: Final = (
    *common("laplace", own_leading, EIGHT, gates=()),
    _instead("laplace", "number of components forgotten", _count_forgotten),
    _instead("laplace", "dropped components not noised", _rest_shown),
)

# Directions


def directional_law(concentration: Callable[[LatentCase, Code], float], *, half: bool = False) -> LawOf:
    """Return the law ∝ e^(k·⟨x, μ⟩) of a direction in the plane, on the whole circle or its nearer half."""

    def chances(case: LatentCase, code: Code) -> Masses:
        x, y = case.direction(code)

        def density(angles: Any) -> Any:
            near = np.cos(angles - np.arctan2(y, x))
            found = np.exp(concentration(case, code) * (near - 1))
            return np.where(near > 0, found, 0.0) if half else found

        return _circle(case).chances(density)

    return lambda case, codes: ProductLaw.of([np.stack([chances(case, code) for code in codes])])


def _circle(case: LatentCase) -> Any:
    if case.circle is None:
        raise ValueError(f"{case} has no directions in two coordinates")
    return case.circle


def _k(case: LatentCase, code: Code) -> float:
    return float(_epsilon(case))


right_directions = directional_law(_k)


def _sign_kept(case: LatentCase, codes: Sequence[Code]) -> ProductLaw:
    """Release the sign of the first coordinate."""
    right = np.array([case.direction(code)[0] >= 0 for code in codes])
    law = right_directions(case, codes)
    kept = law.floats[0][law.index[:, 0]] * ((_circle(case).cells[:, 0] >= 0) == right[:, None])
    return ProductLaw.of([kept / kept.sum(axis=1, keepdims=True)])


DIRECTIONAL: Final = (
    LatentVersion(name="noise ×0.8", law=directional_law(lambda case, code: 1.25 * _k(case, code))),
    LatentVersion(
        name="length of the code kept",
        law=directional_law(lambda case, code: _k(case, code) * math.hypot(*case.direction(code))),
    ),
    LatentVersion(name="nearer half of the sphere only", law=directional_law(_k, half=True)),
    LatentVersion(name="sign of the first coordinate kept", law=_sign_kept),
    LatentVersion(name="every draw used twice", gates=("fit",), law=right_directions, repeated=2),
)


def exact_gate(version: LatentVersion, case: LatentCase) -> Iterator[Finding]:
    """Yield the cost of the worst ordered pair of codes, the largest distance, and sums of probabilities."""
    law, promise = version.law(case, case.codes), case.guarantee
    pairs = np.array([(i, j) for i in range(len(case.codes)) for j in range(len(case.codes)) if i != j])
    apart = np.array([case.distance(case.codes[i], case.codes[j]) for i, j in pairs])
    metric = apart if promise.kind == "metric" else None
    what = f"loss of the distribution, {len(case.codes)} codes"
    yield exact_finding(case, what, promise, law, pairs, apart=metric, label=lambda i: _place(case.codes[i]))
    if promise.diameter is not None:
        most, farthest = float(promise.diameter) * (1 + CLOSE), float(apart.max())
        yield Finding("exact", "distance of two codes", str(case), farthest, most, farthest <= most, "d")
    lost = max(float(np.abs(1 - masses.sum(axis=1)).max()) for masses in law.masses)
    yield Finding("exact", "sum of chances unlike 1", str(case), lost, CLOSE, lost <= CLOSE)


def fit_gate(version: LatentVersion, setting: Drawn, right: LawOf, *, bits: BitSource) -> Iterator[Finding]:
    """Yield how well the releases of several codes follow the right law."""
    case = setting.case
    law = right(case, setting.fits)
    drawn = zip(setting.fits, version.draws(setting, bits), strict=True)
    seen = ((_place(code), outcomes, law.chances(number)) for number, (code, outcomes) in enumerate(drawn))
    yield fit_finding(case, f"{setting.draws:,} draws", seen)


def _place(code: Code) -> str:
    return "(" + ", ".join(f"{value:g}" for value in code) + ")"


# Audit entries of the latent mechanisms

Settings = tuple[tuple[AuditSpace, dict[str, Any]], ...]
DRAWS: Final = 20_000
FITTED: Final = (0, 2, 6)
"""An end, the middle, and a code outside, of those of `codes_of`."""
FEW_DRAWS: Final = 1_000
"""Draws of directions, each of which takes interval arithmetic."""
TWO: Final = AuditSpace((0, -4), (1, 4), (1, 1), (0.25, 2))
THREE: Final = AuditSpace((-1, 0, -0.125), (1, 8, 0.125), (4, 1, 40), (0.5, 2, 0.03125))
ONE: Final = AuditSpace((-2,), (2,), (1,), (1,))
PLANE: Final = AuditSpace((-1, -2), (1, 2), (1, 1), far=40 / 2**15)
"""A plane in which directions are released on a circle of 40 steps, with few enough points to enumerate."""
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
    mutants: tuple[LatentVersion, ...],
    quick: Level,
    deep: tuple[LatentCase, ...],
) -> Audit:
    """Return the audit of a mechanism, whose intact version has the law of its definition."""
    return Audit(
        method=method,
        intact=LatentVersion(name="intact", law=law, own=True),
        mutants=mutants,
        levels=quick.levels(deep),
        gates=(Gate("exact", exact_gate), drawing("fit", partial(fit_gate, right=cache(law)))),
    )


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


def _cases(method: type[LatentMechanism], settings: Settings) -> tuple[LatentCase, ...]:
    few = slice(None, None, 2) if method is BoxGaussian else slice(None)
    return tuple(LatentCase(method(**given), space, codes_of(space)[few]) for space, given in settings)


def _audit(
    method: type[LatentMechanism],
    recipe: Recipe,
    mutants: tuple[LatentVersion, ...],
    quick: Settings,
    deep: Settings,
) -> Audit:
    exact = _cases(method, quick)
    drawn = tuple(
        Drawn(case, DRAWS, tuple(codes_of(case.space)[number] for number in FITTED)) for case in exact
    )
    return latent_audit(method, recipe.law, mutants, Level(exact, drawn), _cases(method, deep))


def _directions() -> Audit:
    def case(epsilon: Any) -> LatentCase:
        return LatentCase(Directional(epsilon=epsilon), PLANE, ROUND)

    level = Level(tuple(map(case, ("0.3", 2, 12))), (Drawn(case(2), FEW_DRAWS, (ROUND[3], ROUND[6])),))
    return latent_audit(Directional, right_directions, DIRECTIONAL, level, (case("0.01"), case(60)))


def _pure(epsilon: Any, **more: Any) -> dict[str, Any]:
    return {"epsilon": epsilon, **more}


QUICK: Final[Settings] = (
    (THREE, _pure(4)),
    (TWO, _pure("0.7", allocation="equal")),
    (THREE, _pure(30, clip=10)),
)
DEEP: Final[Settings] = ((ONE, _pure(1)), (THREE, _pure("0.2", allocation="equal")), (TWO, _pure(200)))
QUICK_RHO: Final[Settings] = ((THREE, {"rho": 4}), (TWO, {"rho": "0.7"}), (THREE, {"rho": 30, "clip": 10}))
DEEP_RHO: Final[Settings] = ((ONE, {"rho": 1}), (THREE, {"rho": "0.2"}), (TWO, {"rho": 200}))
QUICK_MEAN: Final[Settings] = ((TWO, _pure(4)), (THREE, _pure("0.5")), (THREE, _pure(60, clip=10)))
DEEP_MEAN: Final[Settings] = ((ONE, _pure(1)), (TWO, _pure(500)))
QUICK_LEADING: Final[Settings] = ((THREE, _pure(6)), (TWO, _pure(20)), (THREE, _pure(4, clip=10)))
DEEP_LEADING: Final[Settings] = ((ONE, _pure(3)), (TWO, _pure(4, ratio=2)))
SCALED: Final = Recipe("laplace", own_scales)
RANGED: Final = Recipe("truncated", own_ranges)

AUDITS: Final[dict[str, Audit]] = {
    audit.method.name: audit
    for audit in (
        _audit(CroftMetric, SCALED, CROFT, QUICK_MEAN, DEEP_MEAN),
        _audit(PCABasis, Recipe("laplace", own_leading), LEADING, QUICK_LEADING, DEEP_LEADING),
        _audit(BoxLaplace, SCALED, LAPLACE, QUICK, DEEP),
        _audit(BoxTruncatedLaplace, RANGED, TRUNCATED, QUICK, DEEP),
        _audit(BoxGaussian, Recipe("gaussian", own_variances), GAUSSIAN, QUICK_RHO, DEEP_RHO),
        _directions(),
    )
}
