"""What is audited, and how: one entry beside every method of the table and every sampler.

To add a method: its steps, what is right for it, its mutants, and the settings of the quick and the deep
level. A test fails where a method of `mechanisms.pixel.TABLE` has no entry here.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from dpveil.audit.case import Case, Pixelisation, Right, right_scale, right_variance
from dpveil.audit.exact import gaussian_level_law, level_law
from dpveil.audit.mutants_own import gaussian_mutants, laplace_mutants
from dpveil.audit.samplers import SamplerAudit, sampler_audits
from dpveil.audit.steps import INTACT, INTACT_GAUSSIAN, Steps
from dpveil.mechanisms.pixel import DPPix, DPPixGaussian

OWN_DRAWS: Final = 10_000


@dataclass(frozen=True)
class Drawn:
    """A setting for a gate that draws. `chance` is that of the event that shows a violation best."""

    case: Case
    draws: int
    chance: float = 0.5


@dataclass(frozen=True)
class Level:
    """The settings of one level of an audit."""

    exact: tuple[Case, ...]
    fit: tuple[Drawn, ...]
    bound: tuple[Drawn, ...]

    def of(self, method: Pixelisation) -> Level:
        """Return the same sizes with a method of the user's own, and one that its blocks do not divide."""
        ragged = min(method.block + 1, 33)
        sizes = [Case(ragged, ragged + 1, 1, method)] if method.block > 1 else []

        def drawn(settings: tuple[Drawn, ...]) -> tuple[Drawn, ...]:
            return tuple(dict.fromkeys(replace(s, case=s.case.of(method)) for s in settings))

        own = tuple(Drawn(case.of(method), OWN_DRAWS) for case in sizes)
        exact = tuple(dict.fromkeys(case.of(method) for case in self.exact))
        return Level(exact, drawn(self.fit), drawn(self.bound) + own)


@dataclass(frozen=True)
class MethodAudit:
    """How one method is audited: its steps, what is right for it, its mutants and its levels."""

    method: type[Pixelisation]
    steps: Steps
    right: Right
    mutants: dict[str, Steps]
    levels: dict[str, Level]


def _laplace_levels() -> dict[str, Level]:
    def pure(h: int, w: int, c: int, b: int, m: int | None, e: object = 1, *levels: int) -> Case:
        method = DPPix(epsilon=e, block=b, neighbourhood=m)  # type: ignore[arg-type]
        return Case(h, w, c, method, levels or (0, 255))

    def both(h: int, w: int, c: int, b: int, m: int | None, e: object, d: object) -> Case:
        method = DPPix(epsilon=e, delta=d, block=b, neighbourhood=m)  # type: ignore[arg-type]
        return Case(h, w, c, method)

    exact = (
        pure(2, 3, 1, 2, 2, 1, 0, 1, 255),
        pure(1, 3, 3, 2, 1),
        both(2, 3, 1, 2, 3, 2, "0.01"),
        both(1, 3, 3, 2, 2, 2, "0.01"),
        both(2, 4, 1, 1, None, 3, "1e-6"),
    )
    fit = (pure(3, 5, 1, 2, 2), both(3, 4, 3, 2, 4, 60, "0.01"), pure(3, 4, 3, 2, 1, 50))
    bound = (
        (pure(17, 17, 1, 16, 1), 10_000, 0.5),
        (pure(24, 24, 1, 24, 1), 10_000, 0.5),
        (pure(2, 2, 1, 1, None), 10_000, 0.5),
        (both(2, 2, 3, 2, 4, 2, "0.05"), 20_000, 0.3),
        (both(2, 3, 1, 1, None, 2, "0.05"), 20_000, 0.3),
        (pure(3, 5, 3, 2, 2), 10_000, 0.5),
        (pure(3, 5, 1, 2, 1), 60_000, 0.5),
    )
    more = (
        pure(2, 3, 1, 2, 1, 1, 0, 1, 100, 255),
        pure(2, 3, 1, 2, None, "0.3", 0, 1, 255),
        pure(3, 3, 1, 2, 4, 3),
        pure(2, 2, 3, 2, 1),
        both(3, 3, 1, 2, 5, 1, "1e-4"),
        both(2, 2, 3, 1, None, 5, "1e-3"),
    )
    return _levels(exact, more, fit, bound)


def _gaussian_levels() -> dict[str, Level]:
    def rho(h: int, w: int, c: int, b: int, m: int | None, r: object) -> Case:
        return Case(h, w, c, DPPixGaussian(rho=r, block=b, neighbourhood=m))  # type: ignore[arg-type]

    def both(h: int, w: int, c: int, b: int, m: int | None, e: object, d: object) -> Case:
        method = DPPixGaussian(epsilon=e, delta=d, block=b, neighbourhood=m)  # type: ignore[arg-type]
        return Case(h, w, c, method)

    exact = (
        rho(2, 3, 1, 2, 3, 1),
        rho(1, 3, 3, 2, 2, "0.3"),
        rho(2, 3, 1, 1, None, 2),
        both(2, 3, 1, 2, 3, 2, "0.01"),
        both(1, 3, 3, 2, 1, 1, "1e-5"),
    )
    fit = (rho(3, 5, 1, 2, 2, 2), both(3, 5, 1, 2, 3, 20, "0.01"), rho(3, 4, 3, 2, 4, 50))
    bound = (
        (rho(17, 17, 1, 16, 1, 2), 10_000, 0.5),
        (rho(24, 24, 1, 24, 1, 2), 10_000, 0.5),
        (rho(2, 2, 1, 1, None, 2), 10_000, 0.5),
        (both(3, 5, 1, 2, 3, 2, "0.05"), 20_000, 0.3),
        (rho(3, 5, 3, 2, 2, 2), 10_000, 0.5),
        (rho(3, 5, 1, 2, 1, 2), 40_000, 0.5),
    )
    more = (
        rho(3, 3, 1, 2, 5, "0.01"),
        rho(2, 2, 3, 2, 1, 5),
        both(3, 3, 1, 2, 5, 1, "1e-4"),
        both(2, 2, 3, 1, None, 5, "1e-3"),
    )
    return _levels(exact, more, fit, bound)


def _levels(
    exact: tuple[Case, ...],
    more: tuple[Case, ...],
    fit: tuple[Case, ...],
    bound: tuple[tuple[Case, int, float], ...],
) -> dict[str, Level]:
    """Return both levels: the deep one looks at more small images, and draws five times as often."""
    return {
        "quick": Level(exact, tuple(Drawn(c, 20_000) for c in fit), tuple(Drawn(*b) for b in bound)),
        "deep": Level(
            exact + more,
            tuple(Drawn(case, 100_000) for case in fit),
            tuple(Drawn(case, 5 * draws, chance) for case, draws, chance in bound),
        ),
    }


TABLE: Final[dict[str, MethodAudit]] = {
    DPPix.name: MethodAudit(
        method=DPPix,
        steps=INTACT,
        right=Right(right_scale, level_law),
        mutants=laplace_mutants(),
        levels=_laplace_levels(),
    ),
    DPPixGaussian.name: MethodAudit(
        method=DPPixGaussian,
        steps=INTACT_GAUSSIAN,
        right=Right(right_variance, gaussian_level_law, power=2),
        mutants=gaussian_mutants(),
        levels=_gaussian_levels(),
    ),
}
"""Method name to its audit."""

SAMPLER_DRAWS: Final = {"quick": 100_000, "deep": 1_000_000}


def samplers() -> dict[str, SamplerAudit]:
    """Return the audits of the samplers, by name."""
    return sampler_audits()
