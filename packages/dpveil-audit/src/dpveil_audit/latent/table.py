"""Audits of the latent mechanisms: exact cost of every two codes, fits, and lower bounds."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import cache, partial
from itertools import permutations
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
from dpveil_audit.engine import (
    NUMBERED,
    Audit,
    Bits,
    Check,
    Finding,
    Gate,
    bounds,
    drawing,
    fit_finding,
    p_values,
)
from dpveil_audit.fit import pair_fits
from dpveil_audit.latent.case import (
    AuditSpace,
    Code,
    Codes,
    DistributionOf,
    LatentCase,
    LatentDrawn,
    LatentLevel,
    LatentVersion,
)
from dpveil_audit.latent.mutants import (
    CROFT,
    DIRECTIONAL,
    GAUSSIAN,
    LAPLACE,
    LEADING,
    TRUNCATED,
    Recipe,
    loss,
    own_leading,
    own_ranges,
    own_scales,
    own_variances,
    right_direction,
)
from dpveil_audit.lower_bound import Draws, epsilon_at, rho_seen

CLOSE: Final = 1e-9
"""Relative error of 64-bit floats on a limit."""
TINY: Final = 1e-12
"""Absolute error where the limit is 0."""


def exact_gate(version: LatentVersion, case: LatentCase) -> Iterator[Finding]:
    """Yield the largest cost of ordered pairs of codes against its limit, and sums of probabilities."""
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
    case, found = setting.case, dict[str, float]()
    for code, released in _releases(version, setting, bits):
        seen = case.read(released)
        made = right(case, code).drawn
        for number, (mass, law) in enumerate(made):
            name = f"coordinate {number} of {_place(code)}"
            own = seen[:, number]
            certain = {name: float(np.all(own == mass.argmax()))}  # where nothing is drawn
            found |= certain if mass.max() == 1 else p_values(name, own, law)
        drawn = [number for number, (mass, _) in enumerate(made) if mass.max() < 1]
        inside = np.maximum(seen[:, drawn], 0)
        both = pair_fits(inside, [made[number][0] for number in drawn])
        found |= {f"{name} of {_place(code)}": p_value for name, p_value in both.items()}
    yield fit_finding(case, f"{setting.draws:,} draws", found)


def _releases(version: LatentVersion, setting: LatentDrawn, bits: BitSource) -> Iterator[tuple[Code, Codes]]:
    """Yield every code with its releases, from one mixed batch; mutants draw one code at a time."""
    codes = np.array(setting.fits)
    if version.intact:
        mixed = version.release(setting.case, np.tile(codes, (setting.draws, 1)), bits)
        yield from ((code, mixed[number :: len(codes)]) for number, code in enumerate(setting.fits))
        return
    for code in setting.fits:
        yield code, version.release(setting.case, np.tile(np.array([code]), (setting.draws, 1)), bits)


def bound_gate(version: LatentVersion, setting: LatentDrawn, *, bits: BitSource) -> Iterator[Finding]:
    """Yield lower bounds on the cost of pairs of codes."""
    case = setting.case
    unit, measure = ("ε", epsilon_at(0.0)) if case.guarantee.rho is None else ("ρ", rho_seen)

    def shown(code: Code, count: int) -> Draws:
        return case.levels(version.release(case, np.tile(np.array([code]), (count, 1)), bits))

    yield from bounds(setting, shown, case.allowance, label=_place, measure=measure, unit=unit)


def _place(code: Code) -> str:
    return "(" + ", ".join(f"{value:g}" for value in code) + ")"


# Audit entries of the latent mechanisms

Settings = tuple[tuple[AuditSpace, dict[str, Any]], ...]
DRAWS: Final = 20_000
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


class LatentAudit(Audit):
    """The audit of one mechanism, whose intact version has the law of its definition."""

    def checks(self, level: LatentLevel, bits: Bits) -> Iterator[Check]:
        """Yield every gate with every setting; laws are computed once a run."""
        gates = (
            Gate("exact", exact_gate),
            drawing("fit", partial(fit_gate, right=cache(self.intact.distribution)), stream=NUMBERED),
            drawing("bound", bound_gate, stream=NUMBERED),
        )
        return (check for gate in gates for check in gate.checks(level, bits, self.intact))


def latent_audit(
    method: type[LatentMechanism],
    law: DistributionOf,
    mutants: tuple[LatentVersion, ...],
    quick: LatentLevel,
    deep: tuple[LatentCase, ...],
) -> Audit:
    """Return the audit of a mechanism with this law."""
    levels = {"quick": quick, "deep": quick.more(deep)}
    intact = LatentVersion(name="intact", distribution=law)
    return LatentAudit(method=method, intact=intact, mutants=mutants, levels=levels)


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
    level = LatentLevel(exact, tuple(map(_drawn, exact)))
    return latent_audit(method, recipe.distribution, mutants, level, _cases(method, deep))


def _drawn(case: LatentCase) -> LatentDrawn:
    """Return pairs of both ends, of one coordinate alone, and of an end and a code outside."""
    low, high, middle, *_, alone, outside, _ = codes_of(case.space)
    return LatentDrawn(case, DRAWS, (low, middle, outside), ((low, high), (low, alone), (low, outside)))


def _directions() -> Audit:
    def case(epsilon: Any) -> LatentCase:
        return LatentCase(Directional(epsilon=epsilon), PLANE, ROUND)

    drawn = LatentDrawn(case(2), FEW_DRAWS, (ROUND[3], ROUND[6]), ((ROUND[3], (-0.5, -1)),))
    level = LatentLevel(tuple(case(epsilon) for epsilon in ("0.3", 2, 12)), (drawn,))
    return latent_audit(Directional, right_direction, DIRECTIONAL, level, (case("0.01"), case(60)))


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
