"""The audits of scalar mechanisms: published errors, slips, wrong integers, wrong rounding; settings."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache
from typing import Any, Final

import numpy as np
from scipy.special import lambertw

from dpveil.core.rationals import exact
from dpveil.core.registry import SCALAR
from dpveil.errors import NoiseError
from dpveil.mechanisms.scalar import Range, ScalarMechanism, TruncatedLaplace
from dpveil.mechanisms.scalar.base import ANY_DATABASE
from dpveil.mechanisms.scalar.lattice import Lattice
from dpveil.mechanisms.scalar.matrix_cost import log_ratio
from dpveil.noise.integer_matrix import quantise
from dpveil_audit.distributions import laplace_distribution
from dpveil_audit.divergence import ProductLaw
from dpveil_audit.engine import Audit, Drawn, Gate, LawOf, Level, drawing
from dpveil_audit.engine import fit_gate as fit
from dpveil_audit.scalar.case import (
    INTACT,
    LEAST,
    Points,
    ScalarCase,
    ScalarVersion,
    exact_gate,
    fair,
    laplace,
    lost,
    noisy,
    one_sided,
    own_law,
    own_stairs,
    right,
    same_gate,
    table,
    truncated,
    whole_weights,
)

PARTS: Final = 1 << 30
EXACT: Final = ("exact",)
Fits = Callable[[ScalarCase], bool]


def wrong(name: str, law: LawOf, fits: Fits = lambda case: True, **more: Any) -> ScalarVersion:

    def prepared(case: ScalarCase) -> bool:
        try:
            case.method.prepare()
        except NoiseError:  # the mechanism itself refuses: its findings say so
            return False
        return fits(case)

    return ScalarVersion(name=name, law=law, fits=prepared, common=True, **more)


def has_edge(case: ScalarCase) -> bool:
    return case.method.lattice.spans != ((None, None),)


# Truncated Laplace noise: too small scales


def at(scale: Callable[[Any], Any], end: Callable[..., Any] = truncated) -> LawOf:
    """Return the law of Laplace noise with a scale in steps."""
    return noisy(lambda method: laplace_distribution(scale(method)), end)


def published_scale(epsilon: float, records: float) -> float:
    """Return σ for an answer i·ΔF away from the end (Croft thesis formulas 5.35 and 5.36; errata E1)."""
    first = -1 / (lambertw(-1 / (2 * math.e)).real * math.e * epsilon)
    if not records:
        return float(first)
    share = records * math.exp(-records * epsilon) / first
    w = lambertw(-2 * share * math.exp(-share), 0 if records * epsilon <= 1 else -1).real
    grown = math.exp(records * epsilon)
    return float(-records * grown * first / (w * grown * first + records))


def published_law(case: ScalarCase, answers: Points) -> ProductLaw:
    """Return the law with the thesis's variable scale, for one end."""
    reach, end, rows = case.method.lattice.reach, case.edges[0], []
    for x in answers.tolist():
        scale = published_scale(float(case.method.budget), abs(x - end) / reach) * reach
        rows.append(truncated(laplace_distribution(scale), x, case.cells))
    return ProductLaw.of([np.maximum(np.stack(rows), LEAST)])


def one_end(case: ScalarCase) -> bool:
    spans = case.method.lattice.spans
    return len(spans) == 1 and (spans[0][0] is None) != (spans[0][1] is None)


TRUNCATED: Final = (
    wrong("scale ΔF/ε", at(lambda m: Fraction(m.lattice.reach) / m.budget), has_edge),
    wrong("normaliser missing", at(lambda m: m.scale / m.lattice.step, lost), has_edge),
    wrong("scale of each answer, as published", published_law, one_end),
)


# Noise on unbounded lattices, and tables of finite ones


def _uneven(method: Any, count: int) -> Any:
    """Return the law in which the true answer is a quarter more likely."""
    rows = np.ones((count, count)) + np.eye(count) / 4
    return rows / rows.sum(axis=1, keepdims=True)


def _not_halved(method: Any, count: int) -> Any:
    """Return weights e^(-ε·d) throughout, each row normalised separately."""
    apart = np.abs(np.subtract.outer(np.arange(count), np.arange(count)))
    rows = np.exp(-float(method.budget / method.lattice.reach) * apart)
    return rows / rows.sum(axis=1, keepdims=True)


def _with_noise(noise: Callable[..., Any]) -> tuple[ScalarVersion, ...]:
    return (
        wrong("redrawn until in range", noisy(noise, truncated), has_edge),
        wrong("mass outside the range dropped", noisy(noise, lost), has_edge),
        wrong("one-sided noise", noisy(lambda m: one_sided(noise(m)))),
    )


LAPLACE: Final = (
    *_with_noise(laplace),
    wrong("noise ×0.8", noisy(lambda m: laplace(m, Fraction(5, 4)))),
)
STAIRCASE: Final = (
    *_with_noise(own_stairs)[1:],
    wrong("ε doubled", noisy(lambda m: own_stairs(m, 2))),
)
FAIR: Final = (
    wrong(
        "constant of even sizes at odd ones",
        table(lambda method, count: fair(method, count, even=True)),
        lambda case: (case.method.lattice.size or 1) % 2 == 0,
    ),
    wrong("distances not halved", table(_not_halved)),
)
UNIFORM: Final = (wrong("the truth a quarter likelier", table(_uneven)),)


# Wrong integer matrices: mutants that apply to every finite scalar mechanism

SMALL: Final = 64  # points of the largest matrix in which one weight is raised


def raised_weight(method: ScalarMechanism, excess: float) -> Any:
    """Return the integers with one weight raised, so that its log-ratio exceeds the limit by `excess`."""
    rows, case = whole_weights(method), ScalarCase(method)
    limit = method.budget / (case.reach if method.promise == ANY_DATABASE else 1)
    logs = np.log(rows.astype(np.float64).clip(1e-300))
    y = int((logs[0] - logs[1]).argmin())
    raised = int(rows[0][y] * Fraction(math.exp(limit)) * (1 + Fraction(math.expm1(excess)))) + 1
    need = raised - rows[1][y]
    # What is added is taken where both answers are most alike, so that nothing else comes near the limit.
    others = [z for z in range(len(rows)) if z != y and rows[1][z] > need]
    if others:  # else the budget is one that no single weight can exceed here
        rows[1][min(others, key=lambda z: abs(logs[0][z] - logs[1][z]))] -= need
        rows[1][y] = raised
    return rows


@lru_cache(maxsize=32)
def sharper(method: ScalarMechanism, count: int) -> Any:
    logs = np.log(whole_weights(method).astype(np.float64).clip(1e-300))
    raised = np.exp(1.25 * (logs - logs.max(axis=1, keepdims=True)))
    return np.array(quantise([[int(weight * PARTS**2) for weight in row] for row in raised]).weights, object)


def _small(case: ScalarCase) -> bool:
    return case.method.integers is not None and 2 <= len(case.method.lattice.points) <= SMALL


def _has_uneven_rows(case: ScalarCase) -> bool:
    return _small(case) and len({*case.method.integers.weights}) > 1  # type: ignore[union-attr]


def _beyond(method: ScalarMechanism, count: int) -> Any:
    return raised_weight(method, 1e-9)


WEIGHTS: Final = (wrong("a weight 1e-9 beyond", table(_beyond), _small, gates=EXACT),)
"""Mutants of every finite mechanism."""
ROWS: Final = (wrong("chances to the power 1.25", table(sharper), _has_uneven_rows),)
"""Mutants of finite mechanisms whose rows differ."""


# Mutants of the rounding of answers and of its sensitivity, for every scalar mechanism

HALF: Final = Fraction(1, 2)


def shortest_decimal(lattice: Lattice, answer: Any) -> int:
    """Return the point nearest to the shortest decimal of a float, halves up (errata E21)."""
    return ((exact(answer) - lattice.origin) / lattice.step + HALF).__floor__()


def _halves_matter(case: ScalarCase) -> bool:
    """Return whether the noise covers only the steps of ΔF, and one step more costs more than is promised."""
    lattice, whole = case.method.lattice, case.method.integers
    if lattice.reach * lattice.step != lattice.sensitivity:
        return False
    return whole is None or log_ratio(whole, lattice.points, case.reach + 1) > case.method.budget


READINGS: Final = (
    wrong(
        "floats read as their shortest decimals",
        own_law,
        _halves_matter,
        reading=shortest_decimal,
        gates=EXACT,
    ),
)


# Settings: those for gates that draw, and those for gates that compute

Settings = tuple[dict[str, Any], ...]
GAP: Final = Range(None, None, gaps=[(0, 2)])
GAPS: Final = Range(0, None, gaps=[(1, "2.5"), (4, 6)])
BETWEEN: Final = Range(0, 6, gaps=[(1, 2), (3, "4.5")])
OPEN: Final[tuple[Settings, Settings]] = (
    (
        {"range": (0, 4), "step": "1/4"},
        {"range": "0:", "step": "1/8"},
        {"range": GAP, "step": "1/4", "epsilon": 2},
    ),
    (
        {"range": GAPS, "step": "1/2", "epsilon": "1.5"},
        {"range": BETWEEN, "step": "1/4", "epsilon": "0.7"},
        {"range": (0, 5), "sensitivity": "0.7", "epsilon": "0.5", "step": "0.1"},
        {"range": (0, 1)},
        {"range": ":-1", "epsilon": 8},
        {"range": "0:", "epsilon": "0.01", "step": 1},
        {"range": ":", "sensitivity": 3},
        # Steps that do not divide ΔF:
        {"range": (0, 6), "sensitivity": "2.5", "step": 1},
        {"range": "0:", "sensitivity": "2.5", "step": 1, "epsilon": 2},
    ),
)
"""For mechanisms on ranges without ends."""
FINITE: Final[tuple[Settings, Settings]] = (
    ({"range": (0, 5)}, {"range": (0, 6), "sensitivity": 2, "epsilon": "0.5"}),
    (
        {"range": (0, 1), "epsilon": 3},
        {"range": (3, 13), "sensitivity": "2.5", "step": 1, "epsilon": "0.1"},
        {"range": (0, 20), "epsilon": 2},
    ),
)
NOISY: Final[dict[str, tuple[ScalarVersion, ...]]] = {
    "laplace": LAPLACE,
    "truncated-laplace": TRUNCATED,
    "staircase": STAIRCASE,
    "geometric": LAPLACE,
}
OWN: Final[dict[str, tuple[ScalarVersion, ...]]] = {"explicit-fair": FAIR + ROWS, "uniform": UNIFORM}


def scalars() -> dict[str, Audit]:
    return {name: scalar_audit(method) for name, method in SCALAR.items()}


def scalar_audit(method: type[ScalarMechanism]) -> Audit:
    """Return the audit of a mechanism: with noise if it is in `NOISY`, else with a matrix, without an entry.

    A matrix is looked at under every relation that it can promise. A law that is the same under every
    relation is drawn under each, and computed under the strongest.
    """
    noise = NOISY.get(method.name)
    if noise is None and not method.finite_only:
        raise ValueError(f"{method.name} goes without ends, so it needs an entry in NOISY")
    drawn, computed = FINITE if noise is None else OPEN
    one_law = noise is not None and method is not TruncatedLaplace
    mutants = OWN.get(method.name, ROWS) + READINGS + WEIGHTS if noise is None else noise + READINGS

    def cases(settings: Settings, relations: tuple[str, ...]) -> tuple[ScalarCase, ...]:
        usual: dict[str, Any] = {"sensitivity": 1, "epsilon": 1}
        return tuple(
            ScalarCase(method(**(usual | setting | {"relation": name})))
            for setting in settings
            for name in relations
        )

    own = method.relations[: 1 if one_law else None]
    some = tuple(Drawn(case, 50_000 if noise is None else 20_000) for case in cases(drawn, method.relations))
    return Audit(
        method=method,
        intact=INTACT,
        mutants=mutants,
        level=Level(cases(computed, own), some),
        gates=(
            Gate("same", same_gate, lambda level: level.cases, ties=True),
            Gate("exact", exact_gate, lambda level: level.cases),
            drawing("fit", lambda version, setting, *, bits: fit(version, setting, right, bits=bits)),
        ),
        refusals=(NoiseError,),
    )
