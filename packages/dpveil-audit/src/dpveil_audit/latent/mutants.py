"""Latent mechanisms, intact and mutated: laws of released coordinates from their formulas, and draws."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache, lru_cache, partial
from itertools import permutations
from typing import Any, Final

import numpy as np
from jaxtyping import Float64, Int64

from dpveil.mechanisms.latent import (
    BoxGaussian,
    BoxLaplace,
    BoxTruncatedLaplace,
    CroftMetric,
    Directional,
    LatentMechanism,
    PCABasis,
)
from dpveil.mechanisms.scalar.base import RECORD
from dpveil.mechanisms.scalar.laplace import TruncatedLaplace
from dpveil.noise.bits import BitSource, SeededBits
from dpveil.noise.gaussian import discrete_gaussian
from dpveil.noise.laplace import discrete_laplace
from dpveil.noise.matrix import quantise
from dpveil_audit.divergence import ORDERS, log_sum
from dpveil_audit.engine import (
    BY_LAW,
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
    SIDE,
    AuditSpace,
    Code,
    CodeDistribution,
    Codes,
    DistributionOf,
    LatentCase,
    LatentDrawn,
    LatentLevel,
    LatentVersion,
    Logs,
)
from dpveil_audit.lower_bound import Draws, epsilon_at, rho_seen

REACH: Final = 12
"""Standard deviations at which Gaussian tails are cut, below 10^-32."""


@lru_cache(maxsize=256)
def clipped_laplace(centre: int, scale: Fraction) -> Logs:
    """Return discrete Laplace noise around a point, clipped to the box."""
    rate = 1 / float(scale)
    steps = np.arange(SIDE + 1)
    logs = -rate * np.abs(steps - centre) + math.log(math.tanh(rate / 2))
    logs[0], logs[-1] = _below(-centre, rate), _below(centre - SIDE, rate)
    return logs


def _below(most: int, rate: float) -> float:
    """Return ln P(Z ≤ most) of discrete Laplace noise of this rate."""
    if most < 0:
        return rate * most - math.log1p(math.exp(-rate))
    return math.log1p(-math.exp(-rate * (most + 1)) / (1 + math.exp(-rate)))


@lru_cache(maxsize=256)
def truncated_laplace(centre: int, scale: Fraction) -> Logs:
    """Return probabilities ∝ exp(-|y - centre|/scale) within the box."""
    logs = -np.abs(np.arange(SIDE + 1) - centre) / float(scale)
    found: Logs = logs - log_sum(logs)
    return found


@lru_cache(maxsize=256)
def clipped_gaussian(centre: int, variance: Fraction) -> Logs:
    """Return discrete Gaussian noise around a point, clipped to the box."""
    twice = 2 * float(variance)
    reach = math.ceil(REACH * math.sqrt(float(variance))) + SIDE + abs(centre)
    steps = np.arange(-reach, reach + 1, dtype=np.float64)
    logs = -((steps - centre) ** 2) / twice
    logs -= log_sum(logs)
    inside = logs[reach : reach + SIDE + 1].copy()
    inside[0], inside[-1] = log_sum(logs[: reach + 1]), log_sum(logs[reach + SIDE :])
    return inside


@lru_cache(maxsize=256)
def always(point: int) -> Logs:
    """Return the law of a coordinate that is released without noise."""
    logs = np.full(SIDE + 1, -np.inf)
    logs[min(max(point, 0), SIDE)] = 0.0
    return logs


FAMILIES: Final = {"laplace": clipped_laplace, "truncated": truncated_laplace, "gaussian": clipped_gaussian}


def loss(case: LatentCase, first: CodeDistribution, second: CodeDistribution) -> float:
    """Return the privacy loss between two codes in the promise's unit: ε, or ρ over twelve orders.

    As a release has independent parts, the largest log-ratio is the sum of theirs, and so are divergences.
    """
    if first.box != second.box:
        return math.inf
    pairs = list(zip(first.parts, second.parts, strict=True))
    if case.guarantee.rho is None:
        return sum(_ratio(a, b) for a, b in pairs)
    divergences = np.sum([_renyi(a, b) for a, b in pairs], axis=0)
    return float(np.max(divergences / np.array(ORDERS)))


def _ratio(first: Logs, second: Logs) -> float:
    """Return the largest log-ratio of two laws; infinite where only the first allows an outcome."""
    if first is second:
        return 0.0
    seen = first > -np.inf
    return float(np.max(first[seen] - second[seen]))


def _renyi(first: Logs, second: Logs) -> Float64[np.ndarray, " orders"]:
    """Return D_α of the first law from the second at every order."""
    if first is second:
        return np.zeros(len(ORDERS))
    seen = first > -np.inf
    if np.any(second[seen] == -np.inf):
        return np.full(len(ORDERS), np.inf)
    own, ratio = first[seen], first[seen] - second[seen]
    return np.array([log_sum(own + (order - 1) * ratio) / (order - 1) for order in ORDERS])


# Recipes for releasing coordinates, intact or mutated, which give both the law and the draws

SHOWN: Final = "shown"
DROPPED: Final = "dropped"
Amount = Fraction | str
"""The noise of a coordinate: its scale in steps (variance for Gaussians), `SHOWN` without noise, or `DROPPED`
for 0.
"""
Amounts = Callable[[LatentCase], tuple[Amount, ...]]
Points = Int64[np.ndarray, " n"]


@dataclass(frozen=True)
class Recipe:
    """Noise of a family on every coordinate; `clipped`, `own_box` and `reused` select faults.

    Without `clipped`, noise is added to unclipped codes and the result is clipped. With `own_box`, a code is
    in the middle of the box that it is released in. With `reused`, all coordinates get the same draw.
    """

    family: str
    amounts: Amounts
    clipped: bool = True
    own_box: bool = False
    reused: bool = False

    def distribution(self, case: LatentCase, code: Code) -> CodeDistribution:
        """Return the law of a code's release."""
        parts = tuple(
            self._part(amount, point, case, number)
            for number, (amount, point) in enumerate(
                zip(self.amounts(case), self._points(case, code), strict=True)
            )
        )
        return CodeDistribution(self._box(case, code), parts)

    def release(self, case: LatentCase, codes: Codes, bits: BitSource) -> Codes:
        """Return releases of repeated copies of one code."""
        code = tuple(float(value) for value in codes[0])
        points = self._points(case, code)
        seed = int(bits.words(1)[0])
        columns = []
        for number, (amount, point) in enumerate(zip(self.amounts(case), points, strict=True)):
            own = SeededBits(seed) if self.reused else bits
            columns.append(self._draw(amount, point, len(codes), case, number, own))
        low, high = (np.array(end) for end in self._box(case, code))
        released: Codes = low + (high - low) * np.clip(np.stack(columns, axis=1), 0, SIDE) / SIDE
        return released

    def _points(self, case: LatentCase, code: Code) -> list[int]:
        return [SIDE // 2] * len(code) if self.own_box else case.points(code, clipped=self.clipped)

    def _box(self, case: LatentCase, code: Code) -> tuple[Code, Code]:
        half = case.box.width / 2
        low, high = (case.box.low, case.box.high)
        if self.own_box:
            low, high = np.array(code) - half, np.array(code) + half
        return tuple(low.tolist()), tuple(high.tolist())

    def _part(self, amount: Amount, point: int, case: LatentCase, number: int) -> Logs:
        if isinstance(amount, str):
            return always(point if amount == SHOWN else middle(case, number))
        return FAMILIES[self.family](point, amount)

    def _draw(
        self, amount: Amount, point: int, count: int, case: LatentCase, number: int, bits: BitSource
    ) -> Points:
        if isinstance(amount, str):
            return np.full(count, point if amount == SHOWN else middle(case, number), np.int64)
        if self.family == "truncated":
            return truncated_mechanism(amount).draw(np.full(count, point, np.int64), bits)
        draw = discrete_gaussian if self.family == "gaussian" else discrete_laplace
        return point + draw(amount, count, bits)


def middle(case: LatentCase, number: int) -> int:
    """Return the point of 0, to which dropped components are set."""
    place = round(float(-case.box.low[number] / case.box.width[number]) * SIDE)
    return min(max(place, 0), SIDE)


def truncated_mechanism(scale: Fraction) -> TruncatedLaplace:
    """Return a truncated Laplace mechanism of this scale over a whole side."""
    return TruncatedLaplace(range=(0, SIDE), sensitivity=SIDE, epsilon=SIDE / scale, relation=RECORD, step=1)


def wrong(name: str, recipe: Recipe, gates: tuple[str, ...] = ()) -> LatentVersion:
    """Return a mutant with another recipe; only draws detect a reused one."""
    distribution = None if recipe.reused else recipe.distribution
    return LatentVersion(name=name, gates=gates, distribution=distribution, release=recipe.release)


def times(amounts: Amounts, factor: Fraction | int) -> Amounts:
    """Return all amounts times a factor."""

    def scale_amounts(case: LatentCase) -> tuple[Amount, ...]:
        return tuple(a if isinstance(a, str) else a * factor for a in amounts(case))

    return scale_amounts


def without_last(amounts: Amounts) -> Amounts:
    """Return the amounts without noise on the last coordinate."""

    def drop_last(case: LatentCase) -> tuple[Amount, ...]:
        return (*amounts(case)[:-1], SHOWN)

    return drop_last


# Latent mechanisms, intact and mutated

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


def directional_law(
    case: LatentCase, code: Code, concentration: float, *, half: bool = False
) -> CodeDistribution:
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
    return directional_law(case, code, float(_epsilon(case)))


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


def _directional_version(
    name: str, distribution: Callable[[LatentCase, Code], CodeDistribution]
) -> LatentVersion:
    return LatentVersion(name=name, distribution=distribution, release=drawn_from(distribution))


def _narrow(case: LatentCase, code: Code) -> CodeDistribution:
    return directional_law(case, code, float(_epsilon(case)) * 1.25)


def _by_length(case: LatentCase, code: Code) -> CodeDistribution:
    return directional_law(case, code, float(_epsilon(case)) * float(np.hypot(*case.direction(code))))


def _nearer_half(case: LatentCase, code: Code) -> CodeDistribution:
    return directional_law(case, code, float(_epsilon(case)), half=True)


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
    _directional_version("noise ×0.8", _narrow),
    _directional_version("length of the code kept", _by_length),
    _directional_version("nearer half of the sphere only", _nearer_half),
    _directional_version("sign of the first coordinate kept", _sign_kept),
    LatentVersion(name="every draw used twice", distribution=None, release=_twice),
)


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
        made = right(case, code).part_laws
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

    def draw(code: Code, count: int) -> Draws:
        return case.levels(version.release(case, np.tile(np.array([code]), (count, 1)), bits))

    yield from bounds(setting, draw, case.allowance, label=_place, measure=measure, unit=unit)


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
    level = LatentLevel(exact, tuple(map(_drawn_setting, exact)))
    return latent_audit(method, recipe.distribution, mutants, level, _cases(method, deep))


def _drawn_setting(case: LatentCase) -> LatentDrawn:
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
