"""Gates for pixel methods, computed and drawn, and the audit of a method."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache, partial
from typing import Any, Final

import numpy as np
from jaxtyping import Int64

from dpveil.accounting.zcdp import zcdp_delta
from dpveil.core.guarantee import Guarantee
from dpveil.errors import InvalidParameter
from dpveil.mechanisms.pixel import PixelMethod
from dpveil.noise.bits import BitSource, SeededBits
from dpveil_audit.distributions import finite_distribution
from dpveil_audit.divergence import (
    ORDERS,
    LossDistribution,
    Move,
    NoiseKind,
    compose,
    move_loss,
    renyi_of_masses,
    renyi_of_shift,
    unit_of,
)
from dpveil_audit.engine import (
    Audit,
    Bits,
    Check,
    ComparedPair,
    Finding,
    Gate,
    bound_findings,
    count_finding,
    drawing,
    fit_finding,
    of_releases,
)
from dpveil_audit.fit import ALPHA, fit, pair_fits, power
from dpveil_audit.lower_bound import (
    MISSED,
    Bound,
    Measure,
    delta_event,
    delta_seen,
    epsilon_at,
    epsilon_event,
    gaussian_events,
    rho_seen,
    smallest_detectable,
)
from dpveil_audit.pixel.case import (
    EXACT,
    AddedNoise,
    Case,
    DistributionOf,
    Drawer,
    DrawLaw,
    Drawn,
    Image,
    Images,
    Known,
    Level,
    Masses,
    Pair,
    Pairs,
    ProductLaw,
    Releases,
    Version,
    all_images,
    made_once,
    uneven_image,
)

TOLERANCE: Final = 1e-9
ROUNDING: Final = {"δ": 1e-13, "ρ": 1e-12}
"""Absolute errors of floats: in Fourier transforms, and in Rényi divergences of orders next to 1."""
AGREEMENT: Final = 0.02
FLOOR: Final = 1e-5
"""Two accountants may differ by the share `AGREEMENT` of δ plus this: connecting dots costs less."""
STEP: Final = 4e-3


def tolerance(unit: str, limit: float) -> float:
    """Return by how much a divergence in floats may exceed the promise."""
    return limit * TOLERANCE + ROUNDING[unit]


def excess(unit: str, limit: float, slack: float = 0.0) -> str:
    """Return in words which excess over `limit` is detected: any, or one beyond the tolerance."""
    return f"{unit} above {limit:.4g} by {slack:.2g}" if slack else "any excess"


def held(
    what: str, case: Case, value: float, limit: float, kept: bool, unit: str, slack: float = 0.0
) -> Finding:
    """Return the finding of an exact divergence; `slack` is the tolerance of one in floats."""
    return Finding("exact", what, str(case), value, limit, kept, unit, sees=excess(unit, limit, slack))


def sums_finding(noise: AddedNoise, case: Case, images: Images, pairs: Pairs) -> Finding:
    """Return the largest divergence of noisy answers over all neighbours, before post-processing."""
    return SUMS[case.guarantee.kind](noise, case, noise.moves(case.method, images, pairs))


def _sums_pure(noise: AddedNoise, case: Case, moves: list[Move]) -> Finding:
    promised = case.guarantee.epsilon or Fraction(0)
    if noise.kind.unit(Fraction(1)) is None:
        return held("loss of the sums", case, float("inf"), float(promised), False, "ε")
    value = max(sum((gap / parameter for gap, parameter in move), Fraction(0)) for move in moves)
    return held("loss of the sums", case, float(value), float(promised), value <= promised, "ε")


def _sums_zcdp(noise: AddedNoise, case: Case, moves: list[Move]) -> Finding:
    limit = float(case.guarantee.rho or 0)
    value = max(renyi_rate(noise.kind, move, order) for move in moves for order in ORDERS)
    slack = tolerance("ρ", limit)
    return held("Rényi rate of the sums", case, value, limit, value <= limit + slack, "ρ", slack)


def _sums_approximate(noise: AddedNoise, case: Case, moves: list[Move]) -> Finding:
    epsilon, limit = float(case.guarantee.epsilon or 0), float(case.guarantee.delta or 0)
    value = max(move_loss(noise.kind, move).delta(epsilon) for move in moves)
    slack = tolerance("δ", limit)
    return held("divergence of the sums", case, value, limit, value <= limit + slack, "δ", slack)


SUMS: Final[dict[str, Callable[[AddedNoise, Case, list[Move]], Finding]]] = {
    "pure": _sums_pure,
    "zcdp": _sums_zcdp,
    "approximate": _sums_approximate,
}


def renyi_rate(kind: NoiseKind, move: Move, order: float) -> float:
    """Return D_α/α of one move, a lower bound on ρ."""
    return sum(renyi_of_shift(kind, parameter, gap, order) for gap, parameter in move) / order


def pld_gate(version: Version, case: Case, entry: Known) -> Iterator[Finding]:
    """Yield the result of `dp_accounting` for the worst move, against the promise and against our own δ.

    The worst move is that of the largest divergence of ours among all neighbours; the promise is evaluated at
    several ε where it implies a δ at each.
    """
    if version.noise is None:
        return
    kind = version.noise.kind
    images = all_images(case.height, case.width, case.channels, case.levels)
    moves = version.noise.moves(case.method, images, entry.neighbours(case, images))
    promises = implied_pairs(case)
    worst = max(
        ((move, loss) for move in moves for loss in [move_loss(kind, move)]),
        key=lambda made: made[1].delta(promises[0][0]),
    )
    theirs = _their_pld(kind, worst[0])
    for epsilon, delta in promises:
        value = float(theirs.get_delta_for_epsilon(epsilon))
        slack = tolerance("δ", delta)
        kept, sees = value <= delta + slack, excess("δ", delta, slack)
        label = f"{case}, at ε = {epsilon:.4g}"
        yield Finding("pld", "δ by dp_accounting", label, value, delta, kept, "δ", sees=sees)
    apart = max(_apart(theirs, worst[1], share * promises[0][0]) for share in (0.5, 0.8, 1.0))
    what = "both accountants apart"
    yield Finding("pld", what, str(case), apart, AGREEMENT, apart <= AGREEMENT, "share of δ")


def _apart(theirs: Any, ours: LossDistribution, epsilon: float) -> float:
    first, second = float(theirs.get_delta_for_epsilon(epsilon)), ours.delta(epsilon)
    return max(0.0, abs(first - second) - FLOOR) / max(first, second, FLOOR)


def implied_pairs(case: Case) -> list[tuple[float, float]]:
    """Return pairs (ε, δ) that the promise implies, the most telling first."""
    promise = case.guarantee
    if promise.rho is not None:
        spread = 2 * float(promise.rho) ** 0.5
        points = [float(promise.rho) + spread * share for share in (0.25, 0.75, 1.5)]
        return [(e, float(zcdp_delta(promise.rho, Fraction(e)))) for e in points]
    return [(float(promise.epsilon or 0), float(promise.delta or 0))]


def _their_pld(kind: NoiseKind, move: Move) -> Any:
    unit = unit_of(kind, [parameter for _, parameter in move])
    step = STEP if unit is None else unit / np.ceil(unit / STEP)
    composed = None
    for gap, parameter in move:
        one = kind.pld(parameter, gap, step)
        composed = one if composed is None else composed.compose(one)
    return composed


# Gates that compute: equality of a version with the method, and exact divergences on small images.
#
# Each yields one finding for each check over all neighbours. Only one release is drawn, so nothing is left to
# chance: violations are detected up to the tolerances below, and without any where probabilities are exact.

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
    yield count_finding("same", what, case, differ, "values", sees="any")


@dataclass(frozen=True, eq=False)
class _Look:
    """The inputs of a divergence."""

    version: Version
    case: Case
    entry: Known
    images: Images
    pairs: Pairs
    distribution: ProductLaw


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


def _divergences(distribution: ProductLaw, pairs: Pairs, order: float) -> Any:
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
    "pure": lambda look: _loss(look, "loss of the output", look.distribution.largest_loss(look.pairs)),
    "zcdp": _zcdp,
    "approximate": _approximate,
    "metric": _metric,
}


# Gates that draw: goodness of fit to the exact law, and lower bounds from adversarial pairs.
#
# They work on any `Version`. Each rejects a right method with probability at most alpha, over everything it
# tests together.

MISSED_FIT: Final = 1e-6
SHARPEST: Final = 400
"""Largest power, in hundredths, that is tried."""
DISTINGUISHED: Final = math.log(10)
"""The ε that a method without a guarantee must exceed for its neighbours to count as distinguished."""

Outcomes = Int64[np.ndarray, "n parts"]


def fit_gate(
    version: Version, setting: Drawn, distribution_of: DistributionOf, *, bits: BitSource
) -> Iterator[Finding]:
    """Yield how well the releases of one irregular image follow their law, draw by draw and in pairs.

    `value` is -log10 of the corrected p-value; alpha covers the whole gate.
    """
    case, draws = setting.case, setting.draws
    outcomes, right = _observe(version, setting, distribution_of, bits)
    columns = enumerate(zip(np.ascontiguousarray(outcomes.T), right, strict=True))
    p_values = {f"draw {j}": fit(seen, distribution).p_value for j, (seen, (_, distribution)) in columns}
    masses = [mass for mass, _ in right]
    p_values |= pair_fits(outcomes, masses)
    seen = sharpest(tuple(masses[0].tolist()), draws, ALPHA / len(p_values))
    sees = f"power ≥ {seen:.2f}" if seen else ""
    yield fit_finding(case, f"{draws:,} draws", p_values, sees=sees)


def _observe(
    version: Version, setting: Drawn, distribution_of: DistributionOf, bits: BitSource
) -> tuple[Outcomes, list[DrawLaw]]:
    """Return the outcomes of every draw, -1 for impossible ones, and their laws."""
    image, method = uneven_image(setting.case.size), setting.case.method
    distribution = distribution_of(method, image[None])
    if version.outcomes is not None:
        return version.outcomes(method, image, setting.draws, bits), distribution.draw_laws
    if len(distribution.parts) != len(distribution.masses):
        raise InvalidParameter(
            "distribution", None, "shows no places", hint="give parts, or outcomes of the version"
        )
    shown = version.releases(method, image, setting.draws, bits)
    return np.stack([part.read(shown) for part in distribution.parts], axis=1), distribution.visible_laws


@lru_cache(maxsize=256)
def sharpest(mass: tuple[float, ...], draws: int, alpha: float) -> float:
    """Return the smallest power of all probabilities, in hundredths, that the fit of one draw detects; 0 if
    none.

    The power is the factor on the budget, for Laplace noise, randomised response and exponential mechanisms
    alike. Source: `power` of the coarse bins alone, about 1 - 1e-6.
    """
    wanted = finite_distribution(np.array(mass) / sum(mass))

    def is_detected(hundredths: int) -> bool:
        raised = np.array(mass) ** (hundredths / 100)
        return power(wanted, finite_distribution(raised / raised.sum()), draws, alpha=alpha) > 1 - MISSED_FIT

    low, high = 100, SHARPEST
    if not is_detected(high):
        return 0.0
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if is_detected(middle) else (middle, high)
    return high / 100


def bound_gate(version: Version, setting: Drawn, entry: Known, *, bits: BitSource) -> Iterator[Finding]:
    """Yield a lower bound on the budget for every adversarial pair; alpha covers all pairs together.

    Under a metric guarantee a pair may cost ε times its distance.
    """
    case = setting.case
    promise, drawer = case.guarantee, drawn_once(version.drawer(case.method))
    measure, limit, letter = measure_of(promise)
    pairs = [
        ComparedPair(
            f"{case}, {pair.name}",
            limit * pair.distance,
            partial(pair_bound, drawer, pair, setting.draws, bits, measure),
        )
        for pair in entry.pairs(case)
    ]
    least = partial(detectable, promise, setting.draws, setting.chance)
    yield from bound_findings(pairs, f"{setting.draws:,} draws", unit=letter, least=least)


def distinguish_gate(version: Version, setting: Drawn, entry: Known, *, bits: BitSource) -> Iterator[Finding]:
    """Yield the first pair of neighbours that a method without a guarantee distinguishes, or else the
    closest.

    If none were distinguished, the method's reason for promising nothing would be wrong.
    """
    case, seen = setting.case, []
    pairs, drawer = entry.pairs(case), drawn_once(version.drawer(case.method))
    for pair in pairs:
        found = pair_bound(drawer, pair, setting.draws, bits, epsilon_at(0.0), ALPHA / len(pairs))
        seen.append((found, pair))
        if found.lower >= DISTINGUISHED:
            break
    bound, pair = max(seen, key=lambda found: found[0].lower)
    what = f"neighbours told apart in {setting.draws:,} draws, {bound.event}"
    kept = bound.lower >= DISTINGUISHED
    yield Finding("distinguish", what, f"{case}, {pair.name}", bound.lower, DISTINGUISHED, kept, "ε at least")


def measure_of(promise: Guarantee) -> tuple[Measure, float, str]:
    """Return the measure of a promise, its budget, and its symbol."""
    if promise.rho is not None:
        return rho_seen, float(promise.rho), "ρ"
    if promise.delta is not None and not promise.epsilon:
        return delta_seen, float(promise.delta), "δ"
    return epsilon_at(float(promise.delta or 0)), float(promise.epsilon or 0), "ε"


@lru_cache(maxsize=1024)
def detectable(promise: Guarantee, draws: int, chance: float, limit: float, alpha: float) -> float:
    """Return the smallest violation that this many test draws per side detect, given the event that shows it.

    The training draws have to find that event; missing it is not part of the probability.
    """
    measure, _, letter = measure_of(promise)
    event = {"ρ": gaussian_events, "δ": delta_event}.get(letter)
    event = event or epsilon_event(chance, float(promise.delta or 0))
    return smallest_detectable(draws, limit, event, measure, alpha=alpha, missed=MISSED)


def drawn_once(drawer: Drawer) -> Drawer:
    """Return a drawer that draws from an image once, for all pairs that it is in.

    The bound of every pair holds by itself, whatever draws it shares with others.
    """
    kept: dict[tuple[bytes, int], Releases] = {}

    def draw(image: Image, count: int, bits: BitSource) -> Releases:
        key = image.tobytes(), count
        if key not in kept:
            kept[key] = drawer(image, count, bits)
        return kept[key]

    return draw


def pair_bound(
    drawer: Drawer, pair: Pair, draws: int, bits: BitSource, measure: Measure, alpha: float = ALPHA
) -> Bound:
    """Return the lower bound from `draws` training and as many test releases of both images of a pair."""
    sides = [drawer(image, 2 * draws, bits) for image in (pair.first, pair.second)]
    return of_releases((sides[0], sides[1]), draws, alpha, measure)


# The audit entry of a pixel method, and of a method that a user passes in

MOST: Final = {"epsilon": 200, "rho": 50}
"""Largest budgets that are audited: beyond, probabilities are too small for 64-bit floats, and little is
promised.
"""
COMPUTED: Final = ("exact", "pld")
"""Gates that use laws alone, so they cannot detect a mutant with the intact law."""


def _drawing(name: str, look: Callable[..., Iterator[Finding]]) -> Gate:
    return drawing(name, look, of=lambda level: getattr(level, name), stream="{gate} {number}")


@dataclass(frozen=True, kw_only=True)
class MethodAudit(Audit, Known):
    """The audit of one method: its versions, the facts about it, and the settings of both levels.

    A method that promises nothing, and of which nothing can be shown, has no levels, with the reason in
    `note`. `refuse(method, level)` raises `InvalidParameter` for what takes too long to audit.
    """

    refuse: Callable[[Any, Level], None] = lambda method, level: None

    @property
    def distribution(self) -> DistributionOf | None:
        """The law that releases have to follow: the independent one, or that of the intact version."""
        return self.right or self.intact.distribution

    def mutant(self, name: str) -> Version:
        """Return the mutant of that name."""
        found: Version = next(mutant for mutant in self.mutants if mutant.name == name)
        return found

    def checks(self, level: Level, bits: Bits) -> Iterator[Check]:
        """Yield every gate with every setting."""
        law = made_once(self.distribution) if self.distribution is not None else None
        gates = [
            Gate("same", same_gate, lambda level: level.cases, ties=True),
            Gate("exact", partial(exact_gate, entry=self)),
            self.intact.noise is not None and Gate("pld", partial(pld_gate, entry=self)),
            law and _drawing("fit", partial(fit_gate, distribution_of=law)),
            _drawing("bound", partial(bound_gate, entry=self)),
            _drawing("distinguish", partial(distinguish_gate, entry=self)),
        ]
        for gate in gates:
            yield from gate.checks(level, bits, self.intact) if gate else ()

    def differs(self, mutant: Version, check: Check) -> bool:
        """Return whether a mutant can behave differently from the intact version in this gate's setting."""
        intact, case = self.intact, check.case
        blind = mutant.distribution is intact.distribution and mutant.noise is intact.noise
        return mutant.unlike(intact, case.method, case.size) and not (check.gate in COMPUTED and blind)

    def own(self, method: PixelMethod, level: str) -> MethodAudit:
        """Return the audit of a user's own method, at the table's sizes and without mutants.

        Raises `InvalidParameter` for a budget or parameters that are too large to audit.
        """
        settings = self.levels[level].of(method)
        for promise in (case.guarantee for case in settings.cases):
            for name, most in MOST.items():
                if (getattr(promise, name) or 0) > most:
                    raise InvalidParameter(
                        name, getattr(promise, name), "is too large to audit", hint=f"audits reach {most}"
                    )
        self.refuse(method, settings)
        note = "" if settings.cases else self.note
        return replace(self, mutants=(), levels={level: settings}, note=note)
