"""Mutants of scalar mechanisms: published errors, common slips, wrong integers, wrong rounding."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache, partial
from typing import Any, Final

import numpy as np

from dpveil.core.numbers import exact
from dpveil.errors import DPVeilError, NoiseError
from dpveil.mechanisms.scalar import TABLE, Range, ScalarMechanism, TruncatedLaplace
from dpveil.mechanisms.scalar.base import ANY
from dpveil.mechanisms.scalar.lattice import Lattice, log_ratio
from dpveil.noise.matrix import IntegerMatrix, quantise
from dpveil_audit.engine import BY_LAW, Audit, Check, Drawn, Gate, Level, drawing
from dpveil_audit.scalar.case import (
    INTACT,
    Read,
    ScalarCase,
    ScalarVersion,
    cases,
    exact_gate,
    fit_gate,
    log_weights,
    same_gate,
    wrong,
)
from dpveil_audit.scalar.laws import (
    MP,
    End,
    Exponential,
    Noise,
    PointDistribution,
    Real,
    Snapped,
    Spans,
    Stairs,
    Table,
    Truncated,
    distribution_of,
    integer_distribution,
    published_fair_distribution,
    real,
    stairs_of,
)

PARTS: Final = 1 << 30


def _rate(method: Any) -> Fraction:
    """Return ε per step: the rate of Laplace noise of scale ΔF/ε."""
    rate: Fraction = method.budget / method.lattice.reach
    return rate


def one_scale(method: Any) -> Truncated:
    """Return the truncated law at ΔF/ε, as if its normalising constant cost nothing."""
    return Truncated(Spans.of(method), _rate(method))


def has_edge(case: ScalarCase) -> bool:
    """Return whether anything is truncated."""
    return case.method.lattice.spans != ((None, None),)


@dataclass(frozen=True)
class OneSided(Noise):
    """Noise conditioned on 0 or more, as in formula 5.71 with z in ℕ (errata E11)."""

    whole: Noise

    def tail(self, j: int) -> Real:
        """Return P(Z ≥ j | Z ≥ 0)."""
        return self.whole.tail(j) / (1 - self.whole.tail(1)) if j >= 1 else MP.mpf(1)

    def between(self, low: End, high: End) -> Real:
        """Return P(low ≤ Z ≤ high)."""
        first = max(0, low or 0)
        if high is not None and high < first:
            return MP.mpf(0)
        return self.tail(first) - (0 if high is None else self.tail(high + 1))


@dataclass(frozen=True)
class Published(PointDistribution):
    """Truncated noise whose scale depends on the answer: Croft thesis formulas 5.35 and 5.36 (errata E1).

    For one end, i·ΔF away from the answer.
    """

    spans: Spans
    epsilon: Fraction
    reach: int

    def mass(self, x: int, low: End, high: End) -> Real:
        """Return the probability under the scale of this answer."""
        end = self.spans.low if self.spans.low is not None else self.spans.high
        return Truncated(self.spans, self._rate(abs(x - (end or 0)))).mass(x, low, high)

    @lru_cache(maxsize=1024)  # noqa: B019  frozen, and made once for a setting
    def _rate(self, distance: int) -> Fraction:
        """Return 1/σ in steps, to 30 digits."""
        eps, i = real(self.epsilon), MP.mpf(distance) / self.reach
        first = -1 / (MP.lambertw(-1 / (2 * MP.e)).real * MP.e * eps)
        scale = first
        if distance:
            share = i * MP.exp(-i * eps) / first
            w = MP.lambertw(-2 * share * MP.exp(-share), 0 if i * eps <= 1 else -1).real
            scale = -i * MP.exp(i * eps) * first / (w * MP.exp(i * eps) * first + i)
        return Fraction(int(10**30 / (scale * self.reach)), 10**30)


def published_law(method: Any) -> Published:
    """Return the law with the thesis's variable scale."""
    return Published(Spans.of(method), method.budget, method.lattice.reach)


def one_end(case: ScalarCase) -> bool:
    """Return whether the range has one end and no gaps."""
    [*spans] = case.method.lattice.spans
    return len(spans) == 1 and (spans[0][0] is None) != (spans[0][1] is None)


@lru_cache(maxsize=256)
def bounds(spans: Spans, epsilon: Fraction, reach: int) -> tuple[Fraction, ...]:
    """Return the 3n + 2 lower bounds on the scale, in steps, each by bisection of its own condition."""
    conditions = list(spans.gaps)
    for low, high in spans.pieces():
        conditions += [(low, low + 1)] if low is not None else []
        conditions += [(high - 1, high)] if high is not None else []
    found = []
    for x, other in conditions:
        left, right = PARTS, 2 * PARTS
        while right - left > 1:
            middle = (left + right) // 2
            distribution = Truncated(spans, epsilon / reach * PARTS / middle)
            cost = max(abs(distribution.log(x, y) - distribution.log(other, y)) for y in (x, other))
            kept = cost <= real(epsilon * (other - x) / reach)
            left, right = (left, middle) if kept else (middle, right)
        found.append(reach / epsilon * right / PARTS)
    return tuple(found)


def without_a_bound(method: Any) -> Truncated:
    """Return the law at the scale that ignores the largest of the 3n + 2 bounds."""
    spans = Spans.of(method)
    rest = sorted(bounds(spans, method.budget, method.lattice.reach))[:-1]
    return Truncated(spans, 1 / max(rest, default=1 / _rate(method)))


def _one_bound_decides(case: ScalarCase) -> bool:
    if not case.method.lattice.gaps or case.method.promise != ANY:
        return False
    found = sorted(bounds(Spans.of(case.method), case.method.budget, case.method.lattice.reach))
    return found[-1] > found[-2] * Fraction(101, 100)


def for_one_record(method: Any) -> Truncated:
    """Return the law at the scale that suffices for one record, where any two databases are promised."""
    less = replace(method, relation="database-record")
    return Truncated(Spans.of(method), method.lattice.step / less.scale)


TRUNCATED: Final = (
    wrong("scale ΔF/ε", one_scale, has_edge),
    wrong(
        "normaliser missing",
        lambda m: Snapped(Spans.of(m), Exponential(m.lattice.step / m.scale), lost=True),
        has_edge,
        gates=BY_LAW,
    ),
    wrong("largest of 3n + 2 bounds dropped", without_a_bound, _one_bound_decides, gates=("exact",)),
    wrong(
        "scale of one record for any database",
        for_one_record,
        lambda case: has_edge(case) and case.method.promise == ANY,
        gates=BY_LAW,
    ),
)
"""Mutants of the truncated Laplace, but for the published one."""


def snapped_law(change: Callable[[Any], Noise]) -> Callable[[Any], PointDistribution]:
    """Return the law of other noise, snapped."""
    return lambda method: Snapped(Spans.of(method), change(method))


def _laplace(method: Any, times: Fraction = Fraction(1)) -> Exponential:
    return Exponential(times * _rate(method))


LAPLACE: Final = (
    wrong("redrawn until in range", one_scale, has_edge),
    wrong(
        "mass outside the range dropped",
        lambda m: Snapped(Spans.of(m), _laplace(m), lost=True),
        has_edge,
        gates=BY_LAW,
    ),
    wrong("one-sided noise", snapped_law(lambda m: OneSided(_laplace(m)))),
    wrong("noise ×0.8", snapped_law(partial(_laplace, times=Fraction(5, 4)))),
)

STAIRCASE: Final = (
    wrong(
        "first stair of full width",
        snapped_law(lambda m: Stairs(m.budget, m.lattice.reach, m.lattice.reach)),
        lambda case: case.method.lattice.reach > 2,
        gates=("fit",),
    ),
    wrong("ε doubled", snapped_law(lambda m: stairs_of(m, 2 * m.budget))),
)


def _odd(case: ScalarCase) -> bool:
    return (case.method.lattice.size or 1) % 2 == 0


def not_halved(method: Any) -> Table:
    """Return weights e^(-ε·d) throughout, each row normalised separately."""
    size, a = method.lattice.size, MP.exp(-real(_rate(method)))
    rows = [[a ** abs(x - y) for y in range(size)] for x in range(size)]
    return Table(tuple(range(size)), tuple(tuple(w / sum(row) for w in row) for row in rows))


FAIR: Final = (
    wrong("constant of even sizes at odd ones", published_fair_distribution, _odd, gates=BY_LAW),
    wrong("distances not halved", not_halved),
)


def uneven_law(method: ScalarMechanism) -> Table:
    """Return the law in which the true answer is a quarter more likely."""
    distribution, points = distribution_of(method), tuple(method.lattice.points.tolist())
    rows = []
    for x in points:
        row = [distribution.mass(x, y, y) * (MP.mpf(5) / 4 if x == y else 1) for y in points]
        rows.append(tuple(weight / sum(row) for weight in row))
    return Table(points, tuple(rows))


UNIFORM: Final = (wrong("the truth a quarter likelier", uneven_law),)


# Wrong integer matrices: mutants that apply to every finite scalar mechanism

SMALL: Final = 64
"""Points of the largest matrix in which one weight is raised."""


def own_integers(method: ScalarMechanism) -> IntegerMatrix:
    """Return the integers of a finite mechanism."""
    if method.integers is None:
        raise ValueError(method.name)
    return method.integers


def raised_weight(method: ScalarMechanism, excess: float) -> IntegerMatrix:
    """Return the integers with one weight raised, so that its log-ratio exceeds the limit by `excess`."""
    rows = [list(row) for row in own_integers(method).weights]
    points, case = method.lattice.points.tolist(), ScalarCase(method)
    limit = case.allowance(points[0], points[1]) or Fraction(0)
    logs = log_weights(rows)
    y = int((logs[0] - logs[1]).argmin())
    raised = int(rows[0][y] * MP.exp(real(limit) + excess)) + 1
    need = raised - rows[1][y]
    # What is added is taken where both answers are most alike, so that nothing else comes near the limit.
    others = [z for z in range(len(points)) if z != y and rows[1][z] > need]
    if not others:
        return own_integers(method)  # a budget that no single weight can exceed here
    rows[1][min(others, key=lambda z: abs(logs[0][z] - logs[1][z]))] -= need
    rows[1][y] = raised
    return IntegerMatrix(tuple(tuple(row) for row in rows))


def sharper(method: ScalarMechanism, power: float = 1.25) -> IntegerMatrix:
    """Return the mechanism's integers with every probability raised to a power, which multiplies ε."""
    logs = log_weights(own_integers(method).weights)
    raised = np.exp(power * (logs - logs.max(axis=1, keepdims=True)))
    return quantise([[int(weight * PARTS**2) for weight in row] for row in raised])


def shift_rows(method: ScalarMechanism) -> IntegerMatrix:
    """Return the integers with each row replaced by that of the next answer, the last one repeated."""
    rows = own_integers(method).weights
    return IntegerMatrix((*rows[1:], rows[-1]))


def drop_response(method: ScalarMechanism) -> IntegerMatrix:
    """Return the mechanism's integers without one response, for the first answer only."""
    rows = [list(row) for row in own_integers(method).weights]
    lightest = min((y for y in range(len(rows[0])) if rows[0][y]), key=lambda y: (rows[0][y], y))
    heaviest = max((y for y in range(len(rows[0])) if y != lightest), key=lambda y: rows[0][y])
    rows[0][heaviest] += rows[0][lightest]
    rows[0][lightest] = 0
    return IntegerMatrix(tuple(tuple(row) for row in rows))


def _small(case: ScalarCase) -> bool:
    return case.method.integers is not None and 2 <= len(case.method.lattice.points) <= SMALL


def _has_uneven_rows(case: ScalarCase) -> bool:
    return _small(case) and len({*case.method.integers.weights}) > 1  # type: ignore[union-attr]


def integers(
    name: str,
    change: Callable[[ScalarMechanism], IntegerMatrix],
    fits: Callable[[ScalarCase], bool] = _small,
    gates: tuple[str, ...] = (),
) -> ScalarVersion:
    """Return a mutant that draws from other integers."""
    made = lru_cache(maxsize=32)(change)

    def distribution(method: Any) -> PointDistribution:
        return integer_distribution(method.lattice.points.tolist(), made(method))

    return ScalarVersion(
        name=name,
        gates=gates,
        distribution=distribution,
        integers=made,
        fits=fits,
    )


WEIGHTS: Final = (
    integers("a weight 1e-9 beyond", partial(raised_weight, excess=1e-9), gates=("exact",)),
    integers("a response never given", drop_response),
)
"""Mutants of every finite mechanism."""
ROWS: Final = (
    integers("chances to the power 1.25", sharper, _has_uneven_rows),
    integers("row of the next answer", shift_rows, _has_uneven_rows, ("fit",)),
)
"""Mutants of finite mechanisms whose rows differ."""


# Mutants of the rounding of answers and of its sensitivity, for every scalar mechanism

HALF: Final = Fraction(1, 2)


def shortest_decimal(lattice: Lattice, answer: Any) -> int:
    """Return the point nearest to the shortest decimal of a float, halves up (errata E21)."""
    return _steps(lattice, exact(answer)).__floor__()


def halves_to_even(lattice: Lattice, answer: Any) -> int:
    """Return the nearest point, halves to the even one, as Python and NumPy round."""
    return round(_steps(lattice, exact(answer)) - HALF)


def _steps(lattice: Lattice, value: Fraction) -> Fraction:
    """Return the steps of a number from point 0, plus a half."""
    return (value - lattice.origin) / lattice.step + HALF


def _reading(name: str, read: Read) -> ScalarVersion:
    return ScalarVersion(name=name, read=read, fits=_halves_matter, gates=("exact",))


def _halves_matter(case: ScalarCase) -> bool:
    """Return whether the noise covers only the steps of ΔF, and one step more costs more than is promised."""
    lattice = case.method.lattice
    return lattice.reach * lattice.step == lattice.sensitivity and _over(case.method, case, 1)


def _over(method: ScalarMechanism, case: ScalarCase, more: int) -> bool:
    """Return whether `method` costs too much for answers `more` steps further apart than a record."""
    if method.integers is None:
        return True
    return log_ratio(method.integers, method.lattice.points, case.reach + more) > case.limit


def _rounded_down(method: ScalarMechanism) -> ScalarMechanism:
    """Return the mechanism for ⌊ΔF/step⌋ steps."""
    lattice = method.lattice
    whole = (lattice.sensitivity / lattice.step).__floor__()
    return replace(method, sensitivity=whole * lattice.step, step=lattice.step)


def _does_not_divide(case: ScalarCase) -> bool:
    lattice = case.method.lattice
    uneven = lattice.sensitivity % lattice.step and lattice.sensitivity > lattice.step
    return bool(uneven) and _over(_rounded_down(case.method), case, 0)


READINGS: Final = (
    _reading("floats read as their shortest decimals", shortest_decimal),
    _reading("halves rounded to even", halves_to_even),
    wrong(
        "steps to ΔF rounded down", lambda method: distribution_of(_rounded_down(method)), _does_not_divide
    ),
)


DRAWS: Final = 20_000
FINITE_DRAWS: Final = 50_000
GAP: Final = Range(None, None, gaps=[(0, 2)])
GAPS: Final = Range(0, None, gaps=[(1, "2.5"), (4, 6)])
BETWEEN: Final = Range(0, 6, gaps=[(1, 2), (3, "4.5")])
OPEN: Final[tuple[dict[str, Any], ...]] = (
    {"range": (0, 4), "step": "1/4"},
    {"range": "0:", "step": "1/8"},
    {"range": GAP, "step": "1/4", "epsilon": 2},
)
"""Settings for gates that draw, for mechanisms on ranges without ends."""
OPEN_EXACT: Final[tuple[dict[str, Any], ...]] = (
    {"range": GAPS, "step": "1/2", "epsilon": "1.5"},
    {"range": BETWEEN, "step": "1/4", "epsilon": "0.7"},
    {"range": (0, 5), "sensitivity": "0.7", "epsilon": "0.5", "step": "0.1"},
    {"range": (0, 1)},
    {"range": ":-1", "epsilon": 8},
    {"range": "0:", "epsilon": "0.01", "step": 1},
    {"range": ":", "sensitivity": 3},
    {"range": (0, 6), "sensitivity": "2.5", "step": 1},
    {"range": "0:", "sensitivity": "2.5", "step": 1, "epsilon": 2},
)
"""Settings for gates that compute; the last ones have steps that do not divide ΔF."""
OPEN_DEEP: Final[tuple[dict[str, Any], ...]] = (
    {"range": (-5, 300), "sensitivity": 2, "epsilon": "0.1"},
    {"range": GAPS, "step": "1/64", "epsilon": 4},
    {"range": "0:", "epsilon": 40, "step": "1/16"},
    {"range": BETWEEN, "step": "1/16", "epsilon": "0.05"},
)
FINITE: Final[tuple[dict[str, Any], ...]] = (
    {"range": (0, 5)},
    {"range": (0, 6), "sensitivity": 2, "epsilon": "0.5"},
)
FINITE_EXACT: Final[tuple[dict[str, Any], ...]] = (
    {"range": (0, 1), "epsilon": 3},
    {"range": (3, 13), "sensitivity": "2.5", "step": 1, "epsilon": "0.1"},
    {"range": (0, 20), "epsilon": 2},
)
FINITE_DEEP: Final[tuple[dict[str, Any], ...]] = ({"range": (0, 40)}, {"range": (0, 5), "epsilon": 12})
PUBLISHED: Final = wrong("scale of each answer, as published", published_law, one_end)
"""Breaks its promise at rare responses, so that only its law shows it."""
NOISY: Final[dict[str, tuple[ScalarVersion, ...]]] = {
    "laplace": LAPLACE,
    "truncated-laplace": (*TRUNCATED, PUBLISHED),
    "staircase": STAIRCASE,
    "geometric": LAPLACE,
}
OWN: Final[dict[str, tuple[ScalarVersion, ...]]] = {"explicit-fair": FAIR + ROWS, "uniform": UNIFORM}


@dataclass(frozen=True, kw_only=True)
class ScalarAudit(Audit):
    """The audit of one mechanism."""

    intact: ScalarVersion = INTACT
    gates: tuple[Gate, ...] = (
        Gate("same", same_gate, lambda level: level.cases, ties=True),
        Gate("exact", exact_gate, lambda level: level.cases),
        drawing("fit", fit_gate),
    )
    refusals: tuple[type[DPVeilError], ...] = (NoiseError,)
    common: bool = True

    def differs(self, mutant: ScalarVersion, check: Check) -> bool:
        """Return whether a mutant differs here; if the mechanism itself refuses, its findings say so."""
        try:
            check.case.method.prepare()
            return mutant.fits(check.case)
        except NoiseError:
            return False


def scalars() -> dict[str, ScalarAudit]:
    """Return the audits of all scalar mechanisms, by name: that in `NOISY`, or the usual one."""
    return {
        name: noisy_audit(method, NOISY[name]) if name in NOISY else finite_audit(method)
        for name, method in TABLE.items()
    }


def finite_audit(method: type[ScalarMechanism]) -> ScalarAudit:
    """Return the usual audit of a mechanism with a matrix, under every relation that it can promise."""
    if not method.finite_only:
        raise ValueError(f"{method.name} goes without ends, so it needs an entry in NOISY")
    drawn = tuple(Drawn(case, FINITE_DRAWS) for case in _settings(method, FINITE))
    levels = Level(_settings(method, FINITE_EXACT), drawn).levels(_settings(method, FINITE_DEEP))
    return ScalarAudit(method=method, levels=levels, mutants=OWN.get(method.name, ROWS) + READINGS + WEIGHTS)


def noisy_audit(method: type[ScalarMechanism], mutants: tuple[ScalarVersion, ...]) -> ScalarAudit:
    """Return the audit of a mechanism with additive noise, on ranges with and without ends.

    A law that is the same under every relation is drawn under each, and computed under the strongest.
    """
    own = method.relations if method is TruncatedLaplace else method.relations[:1]
    drawn = tuple(Drawn(case, DRAWS) for case in _settings(method, OPEN))
    levels = Level(_settings(method, OPEN_EXACT, own), drawn).levels(_settings(method, OPEN_DEEP, own))
    return ScalarAudit(method=method, levels=levels, mutants=mutants + READINGS)


def _settings(
    method: type[ScalarMechanism], given: tuple[dict[str, Any], ...], relations: tuple[str, ...] = ()
) -> tuple[ScalarCase, ...]:
    names = relations or method.relations
    return cases(method, *({**setting, "relation": name} for setting in given for name in names))
