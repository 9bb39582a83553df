"""Audit entries of the latent mechanisms."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, partial
from typing import Any, Final

from dpveil.mechanisms.latent import (
    BoxGaussian,
    BoxLaplace,
    BoxTruncatedLaplace,
    CroftMetric,
    Directional,
    LatentMechanism,
    PCABasis,
)
from dpveil_audit.entry import NUMBERED, Bits, Check, Entry, computed, drawn
from dpveil_audit.latent.case import (
    AuditSpace,
    Code,
    DistributionOf,
    LatentCase,
    LatentDrawn,
    LatentLevel,
    LatentVersion,
)
from dpveil_audit.latent.gates import bound_gate, exact_gate, fit_gate
from dpveil_audit.latent.mutants import (
    CROFT,
    DIRECTIONAL,
    GAUSSIAN,
    LAPLACE,
    LEADING,
    TRUNCATED,
    own_leading,
    own_ranges,
    own_scales,
    own_variances,
    right_direction,
)
from dpveil_audit.latent.recipes import Recipe

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


@dataclass(frozen=True, kw_only=True)
class LatentAudit(Entry[LatentVersion, LatentLevel]):
    """The audit of one latent mechanism."""

    method: type[LatentMechanism]
    definition: DistributionOf

    def checks(self, level: LatentLevel, bits: Bits) -> Iterator[Check[LatentVersion]]:
        """Yield every gate with every setting."""
        yield from computed("exact", exact_gate, level.exact)
        right = cache(self.definition)
        yield from drawn("fit", partial(fit_gate, right=right), level.drawn, bits, NUMBERED)
        yield from drawn("bound", bound_gate, level.drawn, bits, NUMBERED)


def latents() -> dict[str, LatentAudit]:
    """Return the audits of all latent mechanisms, by name."""
    return AUDITS


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
) -> LatentAudit:
    exact = _cases(method, quick)
    level = LatentLevel(exact, tuple(map(_drawn, exact)))
    return LatentAudit(
        method=method,
        intact=LatentVersion(name="intact", distribution=recipe.distribution),
        definition=recipe.distribution,
        mutants=mutants,
        levels={"quick": level, "deep": level.more(_cases(method, deep))},
    )


def _drawn(case: LatentCase) -> LatentDrawn:
    """Return pairs of both ends, of one coordinate alone, and of an end and a code outside."""
    low, high, middle, *_, alone, outside, _ = codes_of(case.space)
    return LatentDrawn(case, DRAWS, (low, middle, outside), ((low, high), (low, alone), (low, outside)))


def _directions() -> LatentAudit:
    def case(epsilon: Any) -> LatentCase:
        return LatentCase(Directional(epsilon=epsilon), PLANE, ROUND)

    drawn = LatentDrawn(case(2), FEW_DRAWS, (ROUND[3], ROUND[6]), ((ROUND[3], (-0.5, -1)),))
    level = LatentLevel(tuple(case(epsilon) for epsilon in ("0.3", 2, 12)), (drawn,))
    return LatentAudit(
        method=Directional,
        intact=LatentVersion(name="intact", distribution=right_direction),
        definition=right_direction,
        mutants=DIRECTIONAL,
        levels={"quick": level, "deep": level.more((case("0.01"), case(60)))},
    )


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

AUDITS: Final[dict[str, LatentAudit]] = {
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
