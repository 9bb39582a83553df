"""Latent mechanisms, intact and mutated."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any, Final

import numpy as np

from dpveil.noise.bits import BitSource
from dpveil.noise.matrix import quantise
from dpveil_audit.entry import BY_LAW
from dpveil_audit.latent.case import SIDE, Code, CodeDistribution, Codes, LatentCase, LatentVersion
from dpveil_audit.latent.recipes import DROPPED, SHOWN, Amount, Amounts, Recipe, times, without_last, wrong

FINE: Final = 1 << 60


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
    return leading(case, case.kept, method.scale(case.space))


def leading(case: LatentCase, count: int, scale: Fraction) -> tuple[Amount, ...]:
    """Return one scale for `count` leading components."""
    return tuple(scale if i < count else DROPPED for i in range(case.space.length))


def _epsilon(case: LatentCase) -> Fraction:
    return Fraction(case.guarantee.epsilon or 1)


def _undivided(case: LatentCase) -> tuple[Amount, ...]:
    """Use the noise of a single coordinate for each."""
    return (SIDE / _epsilon(case),) * case.space.length


def _parts(case: LatentCase) -> list[float]:
    """Return W^(1/3)·S^(2/3) as printed: relative to the largest, so that shares do not sum to 1."""
    sides = zip(case.space.energy, case.box.width.tolist(), strict=True)
    found = [math.cbrt(energy * width**2) for energy, width in sides]
    return [part / max(found) for part in found]


def _unnormalised(case: LatentCase) -> tuple[Amount, ...]:
    return _divided(case, [Fraction(part) for part in _parts(case)])


def _partial(case: LatentCase) -> tuple[Amount, ...]:
    """Use FaceIDP's allocation: the coordinates that matter least for recognition get no noise."""
    parts = _parts(case)
    total = Fraction(sum(parts) - min(parts))
    return _divided(case, [Fraction(part) / total if part > min(parts) else None for part in parts])


def _divided(case: LatentCase, shares: Sequence[Fraction | None]) -> tuple[Amount, ...]:
    return tuple(SHOWN if share is None else SIDE / (share * _epsilon(case)) for share in shares)


def _in_the_numerator(case: LatentCase) -> tuple[Amount, ...]:
    """Use Li & Clifton's algorithm 2 as printed (errata E7)."""
    return (SIDE / (case.space.length * _epsilon(case)),) * case.space.length


def _whole_rho(case: LatentCase) -> tuple[Amount, ...]:
    return (SIDE**2 / (2 * Fraction(case.guarantee.rho or 1)),) * case.space.length


def _count_forgotten(case: LatentCase) -> tuple[Amount, ...]:
    return leading(case, case.kept, SIDE / _epsilon(case))


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
        wrong("last coordinate without noise", replace(right, amounts=without_last(amounts))),
        wrong("box around the private code", replace(right, own_box=True)),
        wrong("one draw for all coordinates", replace(right, reused=True)),
    )
    # The truncated distribution of a place outside is that of the end: it forgets how far outside that was.
    outside = wrong("no clipping before the noise", replace(right, clipped=False))
    return found if family == "truncated" else (*found, outside)


def _instead(family: str, name: str, amounts: Amounts) -> LatentVersion:
    return wrong(name, Recipe(family, amounts))


EIGHT: Final = Fraction(4, 5)
CROFT: Final = (
    *common("laplace", own_scales, EIGHT, gates=()),
    _instead("laplace", "number of coordinates forgotten", _undivided),
)
LAPLACE: Final = (
    *common("laplace", own_scales, EIGHT),
    _instead("laplace", "weights not normalised", _unnormalised),
    _instead("laplace", "budget over a part of the coordinates", _partial),
    _instead("laplace", "weights in the numerator", _in_the_numerator),
)
TRUNCATED: Final = (
    *common("truncated", own_ranges, EIGHT),
    _instead("truncated", "weights not normalised", _unnormalised),
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


def around(case: LatentCase, code: Code, concentration: float, *, half: bool = False) -> CodeDistribution:
    """Return the law of a direction in two coordinates, on the whole circle or its nearer half."""
    circle = case.circle
    if circle is None:
        raise ValueError(f"{case} has no directions in two coordinates")
    x, y = case.direction(code)
    towards = np.arctan2(y, x)

    def density(angles: Any) -> Any:
        near = np.cos(angles - towards)
        found = np.exp(concentration * (near - 1))
        return np.where(near > 0, found, 0.0) if half else found

    return CodeDistribution((case.space.low, case.space.high), (circle.logs(density),))


def right_direction(case: LatentCase, code: Code) -> CodeDistribution:
    """Return the law ∝ e^(ε·⟨x, μ⟩) for a unit vector μ."""
    return around(case, code, float(_epsilon(case)))


def drawn_from(
    distribution: Callable[[LatentCase, Code], CodeDistribution],
) -> Callable[[LatentCase, Codes, BitSource], Codes]:
    """Return draws from a law of directions that no mechanism has."""

    def release(case: LatentCase, codes: Codes, bits: BitSource) -> Codes:
        chances = np.exp(distribution(case, tuple(codes[0].tolist())).parts[0])
        row = quantise([[int(chance * FINE) for chance in chances]])
        cells = case.circle.cells[row.sample(np.zeros(len(codes), np.int64), bits)]  # type: ignore[union-attr]
        released: Codes = case.box.low + case.box.width * (cells + SIDE // 2) / SIDE
        return released

    return release


def _directed(name: str, distribution: Callable[[LatentCase, Code], CodeDistribution]) -> LatentVersion:
    return LatentVersion(name=name, distribution=distribution, release=drawn_from(distribution))


def _narrow(case: LatentCase, code: Code) -> CodeDistribution:
    return around(case, code, float(_epsilon(case)) * 1.25)


def _by_length(case: LatentCase, code: Code) -> CodeDistribution:
    return around(case, code, float(_epsilon(case)) * float(np.hypot(*case.direction(code))))


def _nearer_half(case: LatentCase, code: Code) -> CodeDistribution:
    return around(case, code, float(_epsilon(case)), half=True)


def _sign_kept(case: LatentCase, code: Code) -> CodeDistribution:
    """Release the sign of the first coordinate."""
    right = case.direction(code)[0] >= 0
    distribution, cells = right_direction(case, code), case.circle.cells  # type: ignore[union-attr]
    kept = np.where((cells[:, 0] >= 0) == right, distribution.parts[0], -np.inf)
    return CodeDistribution(distribution.box, (kept - np.logaddexp.reduce(kept),))


def _twice(case: LatentCase, codes: Codes, bits: BitSource) -> Codes:
    half = drawn_from(right_direction)(case, codes[: -(-len(codes) // 2)], bits)
    return np.repeat(half, 2, axis=0)[: len(codes)]


DIRECTIONAL: Final = (
    _directed("noise ×0.8", _narrow),
    _directed("length of the code kept", _by_length),
    _directed("nearer half of the sphere only", _nearer_half),
    _directed("sign of the first coordinate kept", _sign_kept),
    LatentVersion(name="every draw used twice", distribution=None, release=_twice),
)
