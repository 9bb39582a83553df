"""Scalar mechanisms: how far apart neighbours' answers arrive, laws from the definitions, and the gates.

A law gives the chances of *cells* of the lattice: single points around answers, edges and far out in the
tails, and what lies between. It shares with the mechanism the numbering of points, and the scale or the
stairs of the noise, whose sufficiency is what is tested. A mechanism's integers, where it has some, are its
law.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property, lru_cache
from types import SimpleNamespace
from typing import Any, Final

import numpy as np
from jaxtyping import Int64

from dpveil.core.rationals import exact, show
from dpveil.errors import InvalidParameter
from dpveil.mechanisms.scalar import ScalarMechanism
from dpveil.mechanisms.scalar.base import ANY_DATABASE
from dpveil.mechanisms.scalar.lattice import Lattice
from dpveil.noise.bits import BitSource, SeededBits
from dpveil_audit import engine
from dpveil_audit.distributions import Distribution, laplace_distribution
from dpveil_audit.divergence import CLOSE, Masses, Outcomes, Pairs, ProductLaw, worst
from dpveil_audit.engine import Finding, Version, count_finding

Points = Int64[np.ndarray, " n"]
Cells = Int64[np.ndarray, "cells 2"]
"""The first and the last allowed point of each cell."""
Read = Callable[[Lattice, Any], int]
OFF: Final = Fraction(1, 1 << 40)
"""Largest error of a float, relative to the larger one, that mechanisms say they allow for."""
HALVINGS: Final = 64
PROBES: Final = 8
FAR_POINTS: Final = tuple(sign * ((1 << k) + 3) for k in (10, 19, 29) for sign in (1, -1))
"""Points far from all edges, where floats that no longer resolve halves have to be refused."""
FAR: Final = 1 << 60  # stands for an infinite end
FEW: Final = 20  # points of a lattice that are all answers
MOST_CELLS: Final = 400
SCALES: Final = (1, 2, 5, 10, 20, 50, 100, 300)  # noise scales from the answers at which tails are evaluated
LEAST: Final = 1e-300  # smallest probability that is told from others: floats hold log-ratios up to 690
UNLIKE: Final = 1e-4
"""Largest difference of a probability by integers from the definition, as their ε is lowered a little."""
SAME: Final = 200


def read(lattice: Lattice, answer: Any) -> int:
    """Return the point that mechanisms read an answer as."""
    return int(lattice.index(answer)[0])


@lru_cache(maxsize=64)
def furthest(lattice: Lattice, read: Read) -> int:
    """Return the most points between neighbours' answers as they are read, next to thresholds.

    One is next to a threshold between points, the other ΔF further on. Refused answers are left out, such as
    floats that are too large for the steps.
    """
    return max((abs(read(lattice, a) - read(lattice, b)) for a, b in _arrivals(lattice)), default=0)


@lru_cache(maxsize=64)
def _arrivals(lattice: Lattice) -> tuple[tuple[Any, Any], ...]:
    """Return pairs of neighbours' answers, as they are passed in: the mechanism decides where turns are."""
    found: list[tuple[Any, Any]] = []
    for point in _probes(lattice):
        lower, upper = (lattice.origin + at * lattice.step for at in (point - 1, point))
        middle, home = (lower + upper) / 2, None
        if not all(number in lattice.range for number in (lower, middle, upper)):
            continue
        below, above, home = lower, upper, read(lattice, lower)
        for _ in range(HALVINGS):
            half = (below + above) / 2
            below, above = (half, above) if read(lattice, half) == home else (below, half)
        for start, sign in ((below, 1), (above, -1), (middle, 1)):
            found += _further(start, sign * lattice.sensitivity)
    return tuple(pair for pair in found if all(_is_accepted(lattice, number) for number in pair))


def _is_accepted(lattice: Lattice, number: Any) -> bool:
    try:
        return exact(number) in lattice.range and read(lattice, number) is not None
    except InvalidParameter:
        return False


def _probes(lattice: Lattice) -> list[int]:
    """Return points next to every edge, in the middle, and one record further."""
    ends = [end for span in lattice.spans for end in span if end is not None] or [0]
    reach = max(1, int(lattice.sensitivity / lattice.step))
    near = [end + sign * k for end in ends for k in (0, 1, 2, reach, reach + 1) for sign in (1, -1)]
    middle = [(a + b) // 2 + k for a, b in lattice.spans if a is not None and b is not None for k in (0, 1)]
    found, far = (np.unique(np.array(some, np.int64)) for some in ([*near, *middle], FAR_POINTS))
    kept = found[lattice.is_allowed(found)]
    chosen = [*kept[:: max(1, len(kept) // (PROBES * len(ends)))], *far[lattice.is_allowed(far)]]
    return [int(point) for point in chosen]


def _further(start: Fraction, moved: Fraction) -> Iterator[tuple[Any, Any]]:
    """Yield a number and another `moved` on: exactly, as floats, and with the largest allowed error."""
    yield start, start + moved
    one, other = float(start), float(start + moved)
    sign = math.copysign(math.inf, moved)
    starts = (one, math.nextafter(one, -sign), math.nextafter(one, sign))
    yield from ((a, b) for a in starts for b in (other, math.nextafter(other, sign)))
    off = 2 * OFF * max(abs(start), abs(start + moved))
    most = float(start + moved + (off if moved > 0 else -off))
    for a in starts:
        for b in (most, math.nextafter(most, -sign)):
            if abs(Fraction(b) - Fraction(a)) <= abs(moved) + off:  # as floats round
                yield a, b
    yield np.float32(one), np.float32(other)


@dataclass(frozen=True)
class ScalarCase(engine.Case):
    """One mechanism with its settings, how it reads answers, and the `answers` (all that matter, if empty).

    Inputs are answers, as points.
    """

    method: ScalarMechanism
    reading: Read = read
    answers: tuple[int, ...] = ()

    @cached_property
    def guarantee(self) -> Any:
        return self.method.guarantee()

    @cached_property
    def reach(self) -> int:
        """The most steps between two neighbours' answers: as observed, and at least ⌈ΔF/step⌉."""
        lattice = self.method.lattice
        return max(furthest(lattice, self.reading), -(-lattice.sensitivity // lattice.step).__floor__())

    @cached_property
    def inputs(self) -> Points:
        """Answers around every edge, where normalising constants change fastest, and far from all.

        All of them for integers, and if they are few.
        """
        lattice, length = self.method.lattice, self.length
        if self.answers:
            return np.array(self.answers, np.int64)
        if self.method.integers is not None or (lattice.size or FAR) <= FEW:
            return np.asarray(lattice.points, np.int64)
        steps = [0, 1, self.reach, self.reach + 1, 2 * self.reach, length, 3 * length, 50 * length]
        around = [edge + sign * step for edge in self.edges for step in steps for sign in (1, -1)]
        inside = [(a + b) // 2 for a, b in lattice.spans if a is not None and b is not None]
        return self._allowed([*around, *inside])

    @property
    def fits(self) -> Points:
        """An end, the middle, and both extremes."""
        points = self.inputs
        edge = [p for p in self.edges[:1] if p in points]
        return np.unique([points[0], points[len(points) // 2], points[-1], *edge]).astype(np.int64)

    @cached_property
    def pairs(self) -> Pairs:
        """All pairs about which something is promised; adjacent ones for integers, as log-ratios add up."""
        moved = np.abs(self.inputs[:, None] - self.inputs[None])
        if self.method.promise != ANY_DATABASE:
            return np.argwhere((moved > 0) & (moved <= self.reach))
        near = np.abs(np.subtract.outer(np.arange(len(moved)), np.arange(len(moved)))) == 1
        return np.argwhere(near if self.method.integers is not None else moved > 0)

    @cached_property
    def apart(self) -> Any:
        """Under any-database, the distance of two answers in ΔF, as neighbours' answers are read."""
        if self.method.promise != ANY_DATABASE:
            return None
        moved = np.abs(np.subtract(*self.inputs[self.pairs].T)).tolist()
        return np.array([Fraction(steps, self.reach) for steps in moved], object)

    @cached_property
    def length(self) -> int:
        """Approximate steps per noise scale, at least 1."""
        return max(1, round(self.method.lattice.reach / self.method.budget))

    @cached_property
    def edges(self) -> list[int]:
        """The ends of the range and of its gaps as points, or 0 if there are none."""
        return [edge for span in self.method.lattice.spans for edge in span if edge is not None] or [0]

    @cached_property
    def noises(self) -> dict[Any, Distribution]:
        """What `noisy` laws made of this case, whose scales take a while."""
        return {}

    def _allowed(self, points: Any) -> Points:
        unique = np.unique(np.asarray(points, np.int64))
        found: Points = unique[self.method.lattice.is_allowed(unique)]
        return found

    @cached_property
    def cells(self) -> Cells:
        """The categories of responses: every point if few, else single ones near answers and in tails."""
        lattice, edges = self.method.lattice, self.edges
        if lattice.size is not None and lattice.size <= MOST_CELLS:
            return np.stack([lattice.points, lattice.points], axis=1)
        far = [s * k * self.length for k in SCALES for s in (1, -1)]
        single = [base + step for base in (*self.inputs, *edges) for step in (-1, 0, 1)]
        single += [base + step for base in edges for step in far]
        low, high = min(edges), max(edges)
        cuts = [*np.linspace(low - 30 * self.length, high + 30 * self.length, 240).round()]
        cuts += [*np.linspace(low - 4 * self.length, high + 4 * self.length, 80).round()]
        starts = self._allowed([*cuts, *single, *(point + 1 for point in single)])
        found: list[tuple[int, int]] = []
        for first, last in lattice.spans:
            a, b = -FAR if first is None else first, FAR if last is None else last
            own = sorted({a, *(int(p) for p in starts if a <= p <= b)})
            found += zip(own, [*(p - 1 for p in own[1:]), b], strict=True)
        return np.array(found, np.int64)

    def read(self, points: Points) -> Outcomes:
        """Return the cells of responses, given as points."""
        at = np.searchsorted(self.cells[:, 0], points, side="right") - 1
        inside = (at >= 0) & (points <= self.cells[at, 1])
        return np.where(inside, at, -1).astype(np.int64)[:, None]

    def label(self, number: int) -> str:
        lattice = self.method.lattice
        return f"{float(lattice.origin + int(self.inputs[number]) * lattice.step):.6g}"

    def __str__(self) -> str:
        method = self.method
        words = [f"{method.range}", f"ΔF = {show(method.sensitivity)}", f"step {show(method.lattice.step)}"]
        return ", ".join([*words, method.promise, f"ε = {show(method.budget)}"])


# Laws by definition


def stairs(epsilon: float, width: int, inner: int) -> Distribution:
    """Return noise of heights e^(-ε·k), where k is the stair of |z|; the first stair ends before `inner`."""
    drop = math.exp(-epsilon)

    def above(j: Any) -> Any:  # the heights from j ≥ 0 on: the rest of the stair of j, and all further ones
        below = np.where(j < inner, 0, (j - inner) // width + 1).astype(np.float64)
        return drop**below * (inner + below * width - j + width * drop / (1 - drop))

    whole = 2 * float(above(np.array(0))) - 1
    return _symmetric(lambda j: above(j) / whole)


def _symmetric(tail: Callable[[Any], Any]) -> Distribution:
    """Return a symmetric distribution, given P(Z ≥ j) for j ≥ 1."""

    def survival(z: Any) -> Any:
        return np.where(z >= 0, tail(np.maximum(z + 1, 1)), 1 - tail(np.maximum(-z, 1)))

    return Distribution(cdf=lambda z: survival(-z - 1), survival=survival)


def one_sided(whole: Distribution) -> Distribution:
    """Return noise conditioned on 0 or more, as in formula 5.71 with z in ℕ (errata E11)."""
    kept = 1 - whole.survival(np.array([0]))

    def survival(z: Any) -> Any:
        return np.where(z >= 0, whole.survival(np.maximum(z, 0)) / kept, 1.0)

    return Distribution(cdf=lambda z: 1 - survival(z), survival=survival)


def laplace(method: Any, times: Any = 1) -> Distribution:
    """Return Laplace noise of scale ΔF/ε, divided by `times`, in steps."""
    return laplace_distribution(Fraction(method.lattice.reach) / method.budget / times)


def own_stairs(method: Any, times: Any = 1) -> Distribution:
    """Return the stairs of formula 5.69, the first rounded to whole steps and at least one."""
    reach, epsilon = method.lattice.reach, float(method.budget)
    inner = round(reach / (1 + math.exp(epsilon / 2)))
    return stairs(epsilon * times, reach, min(max(inner, 1), reach))


def snapped(noise: Distribution, x: int, cells: Cells) -> Masses:
    """Return noise around x, snapped to the nearest allowed point, the lower one halfway."""
    ends = np.append((cells[:-1, 1] + cells[1:, 0]) // 2, FAR)
    return noise.between(np.append(-FAR, ends[:-1]) - x, ends - x)


def lost(noise: Distribution, x: int, cells: Cells) -> Masses:
    """Return noise around x; what is not on an allowed point is lost."""
    return noise.between(cells[:, 0] - 1 - x, cells[:, 1] - x)


def truncated(noise: Distribution, x: int, cells: Cells) -> Masses:
    """Return noise around x under the condition that it lands on an allowed point."""
    masses = lost(noise, x, cells)
    return masses / masses.sum()


def noisy(noise: Callable[[Any], Distribution], end: Callable[..., Masses] = snapped) -> engine.LawOf:
    """Return the law of noise that ends within the range in a way: `snapped`, `truncated` or `lost`."""

    def law(case: ScalarCase, answers: Points) -> ProductLaw:
        if noise not in case.noises:
            case.noises[noise] = noise(case.method)
        rows = np.stack([end(case.noises[noise], int(x), case.cells) for x in answers])
        return ProductLaw.of([np.maximum(rows, LEAST)])

    return law


def table(rows: Callable[[Any, int], Any]) -> engine.LawOf:
    """Return the law with a matrix of a finite mechanism: `rows(method, points)` from the lowest on."""

    def law(case: ScalarCase, answers: Points) -> ProductLaw:
        points = case.method.lattice.points
        made = rows(case.method, len(points))
        return ProductLaw.of([np.asarray(made)[np.searchsorted(points, answers)]])

    return law


def whole_weights(method: Any, count: int = 0) -> Any:
    """Return the integers of a finite mechanism, as objects."""
    return np.array(method.integers.weights, object)


def fair(method: Any, count: int, *, even: bool = False) -> Any:
    """Return formula 5.73 with its constants: 5.74 for even sizes, the corrected one for odd (erratum E11).

    `even` takes 5.74 for odd sizes as well, as printed.
    """
    size, a = count - 1, math.exp(-float(method.budget / method.lattice.reach))
    truth = (1 - a) / ((1 + a) * (1 - a ** ((size + 1) // 2)))
    if size % 2 == 0 or even:
        truth = (1 - a) / (1 + a - 2 * a ** (size / 2 + 1))
    rows = []
    for x in range(size + 1):
        near = min(x, size - x)
        far = [abs(x - y) for y in range(size + 1)]
        rows.append([truth * a ** (d if d < near else (d + near + 1) // 2) for d in far])
    return rows


DEFINITIONS: Final[dict[str, engine.LawOf]] = {
    "laplace": noisy(laplace),
    "geometric": noisy(laplace),
    "staircase": noisy(own_stairs),
    "truncated-laplace": noisy(lambda m: laplace_distribution(m.scale / m.lattice.step), truncated),
    "explicit-fair": table(fair),
    "uniform": table(lambda method, count: np.full((count, count), 1 / count)),
}
"""The law by definition, by mechanism name; for others the integers are the definition."""


def right(case: ScalarCase, answers: Points) -> ProductLaw:
    return DEFINITIONS.get(case.method.name, table(whole_weights))(case, answers)


def own_law(case: ScalarCase, answers: Points) -> ProductLaw:
    """Return the law of the integers that are drawn from, or else by definition."""
    return right(case, answers) if case.method.integers is None else table(whole_weights)(case, answers)


def draw(case: ScalarCase, answer: int, count: int, bits: BitSource) -> Outcomes:
    return case.read(case.method.draw(np.full(count, answer, np.int64), bits))


@dataclass(frozen=True, kw_only=True)
class ScalarVersion(Version):
    """One way to carry out a mechanism; `reading` returns the point that an answer is read as."""

    reading: Read = read


INTACT: Final = ScalarVersion(name="intact", law=own_law, draw=draw)


def same_gate(version: ScalarVersion, case: ScalarCase) -> Iterator[Finding]:
    """Yield whether `draw`, which other gates use, agrees with `release` for the same bits."""
    method = case.method
    points = np.resize(case.inputs, SAME)
    numbers = np.array([method.lattice.origin + int(p) * method.lattice.step for p in points], dtype=object)
    released = method.release(numbers, SeededBits(1, "same"))
    drawn = method.lattice.value(method.draw(points, SeededBits(1, "same")))
    outside = ~method.lattice.is_allowed(method.lattice.index(released))
    yield count_finding("same", "values unlike those of release", case, released != drawn, "values")
    yield count_finding("same", "values out of range", case, outside, "values")


def exact_gate(version: ScalarVersion, case: ScalarCase) -> Iterator[Finding]:
    """Yield the largest log-ratio over answers as far apart as neighbours' arrive as this version reads them.

    That is not how far the mechanism says that it made noise for. Integers must also keep their certificate.
    """
    case = case if version.reading is case.reading else replace(case, reading=version.reading)
    yield from engine.exact_gate(version, case, right, near=UNLIKE)
    stated = case.method.certificate
    if stated is not None and version.law is own_law:
        logs = np.log(whole_weights(case.method).astype(np.float64).clip(1e-300))
        ends = np.searchsorted(case.inputs, case.inputs + case.reach, side="right")
        most = max(np.abs(logs[i:end] - logs[i]).max() for i, end in enumerate(ends))
        beyond = max((logs.max(axis=0) - logs.min(axis=0)).max() - float(stated.overall), 0.0)
        beyond = max(beyond, most - float(stated.epsilon))
        yield Finding("exact", "cost beyond the certificate", str(case), beyond, CLOSE, beyond <= CLOSE, "ε")


# The law of all numbers that are released about several tables, which are drawn independently

Number = tuple[tuple[ScalarMechanism, int], ...]
"""A number's mechanism and true answer, as a point: each of several, by what may be public by then."""


def released_law(tables: Sequence[tuple[Number, ...]], facts: Sequence[Hashable] = ()) -> ProductLaw:
    """Return the law of the numbers released about each table.

    Tables about which other `facts` are public, or other numbers by other mechanisms are released, are told
    apart with certainty.
    """
    kinds = [tuple(tuple(mechanism for mechanism, _ in number) for number in table) for table in tables]
    known = list(zip(facts, kinds, strict=True)) if facts else kinds
    distinct = list(dict.fromkeys(known))
    if len(distinct) > 1:
        return ProductLaw.of([np.eye(len(distinct))[[distinct.index(one) for one in known]]])
    rows = []
    for place, mechanisms in enumerate(kinds[0]):
        points = np.array([[point for _, point in table[place]] for table in tables], np.int64)
        parts = [_rows(*both) for both in zip(mechanisms, points.T, strict=True)]
        exact = all(part.dtype == object for part in parts)
        parts = parts if exact else [part / part.sum(axis=1, keepdims=True) for part in parts]
        rows.append(np.concatenate([p if exact else p.astype(np.float64) for p in parts], axis=1))
    return ProductLaw.of(rows)


def _rows(mechanism: ScalarMechanism, points: Points) -> Masses:
    """Return the law of a number for each of these answers."""
    answers, at = np.unique(points, return_inverse=True)
    case = ScalarCase(mechanism, answers=tuple(answers.tolist()))
    law = own_law(case, case.inputs)
    return law.masses[0][law.index[at, 0]]


def cost_findings(
    case: Any,
    stated: Fraction,
    tables: Sequence[tuple[Number, ...]],
    facts: Sequence[Hashable] = (),
    *,
    apart: Any = None,
    kind: bool = True,
) -> Iterator[Finding]:
    """Yield whether tables are priced as was asked, and the largest log-ratio of all that is released about
    neighbours; `kind` says whether the guarantee is of the right one.
    """
    beyond = max(Fraction(0), stated - case.requested_epsilon)
    kept = kind and not beyond
    yield Finding("exact", "ε stated beyond ε asked", str(case), float(beyond), 0, kept, "ε")
    promise: Any = SimpleNamespace(epsilon=min(stated, case.requested_epsilon), delta=None, rho=None)
    what = f"log-ratio of all that is released, {len(case.pairs):,} pairs of tables"
    found = worst(promise, released_law(tables, facts), case.pairs, apart)
    yield engine.exact_finding(case, what, found, case.label)


def setting_words(settings: dict[str, Any], *without: str) -> list[str]:
    shown = {name: value for name, value in settings.items() if name not in without}
    return [f"{n} {':'.join(map(str, v)) if isinstance(v, tuple) else v}" for n, v in shown.items()]
