"""Wrong integer matrices: mutants that apply to every finite scalar mechanism."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache, partial
from typing import Any, Final

import numpy as np

from dpveil.mechanisms.scalar import ScalarMechanism
from dpveil.noise.matrix import IntegerMatrix, quantise
from dpveil_audit.scalar.case import ScalarCase, ScalarVersion, drawn_from
from dpveil_audit.scalar.distributions import PointDistribution, integer_distribution
from dpveil_audit.scalar.gates import log_weights
from dpveil_audit.scalar.noise import MP, real

SMALL: Final = 64
"""Points of the largest matrix in which one weight is raised."""
PARTS: Final = 1 << 30
EXACT: Final = ("exact", "arrive")


def own(method: ScalarMechanism) -> IntegerMatrix:
    """Return the integers of a finite mechanism."""
    if method.integers is None:
        raise ValueError(method.name)
    return method.integers


def raised_weight(method: ScalarMechanism, excess: float) -> IntegerMatrix:
    """Return the mechanism's integers with one weight raised, so that its log-ratio exceeds the limit by
    `excess`.
    """
    rows = [list(row) for row in own(method).weights]
    points, case = method.lattice.points.tolist(), ScalarCase(method)
    limit = case.allowance(points[0], points[1]) or Fraction(0)
    logs = log_weights(rows)
    y = int((logs[0] - logs[1]).argmin())
    raised = int(rows[0][y] * MP.exp(real(limit) + excess)) + 1
    need = raised - rows[1][y]
    # What is added is taken where both answers are most alike, so that nothing else comes near the limit.
    others = [z for z in range(len(points)) if z != y and rows[1][z] > need]
    if not others:
        return own(method)  # a budget that no single weight can exceed here
    rows[1][min(others, key=lambda z: abs(logs[0][z] - logs[1][z]))] -= need
    rows[1][y] = raised
    return IntegerMatrix(tuple(tuple(row) for row in rows))


def sharper(method: ScalarMechanism, power: float = 1.25) -> IntegerMatrix:
    """Return the mechanism's integers with every probability raised to a power, which multiplies ε."""
    logs = log_weights(own(method).weights)
    raised = np.exp(power * (logs - logs.max(axis=1, keepdims=True)))
    return quantise([[int(weight * PARTS**2) for weight in row] for row in raised])


def shifted(method: ScalarMechanism) -> IntegerMatrix:
    """Return the mechanism's integers with each row replaced by that of the next answer, the last one
    repeated.
    """
    rows = own(method).weights
    return IntegerMatrix((*rows[1:], rows[-1]))


def emptied(method: ScalarMechanism) -> IntegerMatrix:
    """Return the mechanism's integers without one response, for the first answer only."""
    rows = [list(row) for row in own(method).weights]
    lightest = min((y for y in range(len(rows[0])) if rows[0][y]), key=lambda y: (rows[0][y], y))
    heaviest = max((y for y in range(len(rows[0])) if y != lightest), key=lambda y: rows[0][y])
    rows[0][heaviest] += rows[0][lightest]
    rows[0][lightest] = 0
    return IntegerMatrix(tuple(tuple(row) for row in rows))


def _small(case: ScalarCase) -> bool:
    return case.method.integers is not None and 2 <= len(case.method.lattice.points) <= SMALL


def _uneven(case: ScalarCase) -> bool:
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
        draw=drawn_from(distribution),
        integers=made,
        fits=fits,
    )


WEIGHTS: Final = (
    integers("a weight 1e-3 beyond", partial(raised_weight, excess=1e-3), gates=EXACT),
    integers("a weight 1e-9 beyond", partial(raised_weight, excess=1e-9), gates=EXACT),
    integers("a response never given", emptied),
)
"""Mutants of every finite mechanism."""
ROWS: Final = (
    integers("chances to the power 1.25", sharper, _uneven),
    integers("row of the next answer", shifted, _uneven, ("fit",)),
)
"""Mutants of finite mechanisms whose rows differ."""
