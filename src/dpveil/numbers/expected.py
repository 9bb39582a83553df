"""Expected error of a scalar mechanism, computed from its distribution: no draws and no data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

import numpy as np

from dpveil.mechanisms.scalar import Range, ScalarMechanism
from dpveil.mechanisms.scalar.lattice import Lattice, coarsest
from dpveil.mechanisms.scalar.utility import loss_of_answers
from dpveil.mechanisms.scalar.utility import remap as best_guesses

MOST: Final = 128
"""Whole answers up to which all are compared; of more, `FEW` spread over the range."""
MANY: Final = 37
"""Answers compared that are not whole, on a range of at most `FINE` ΔF."""
FEW: Final = 13
"""Answers compared on larger ranges."""
FINE: Final = 512
"""Width of a range in ΔF up to which `MANY` answers are compared."""
REACH: Final = 60
"""Distance in noise scales up to which responses are distinguished."""
TICKS: Final = 300
"""Intervals on each side of the answer in which responses of a large lattice are summed."""


@dataclass(frozen=True)
class Utility:
    """Expected absolute errors, in the units of the answer.

    `mean` is the average over the answers, `worst` the largest for any of them, and `remapped` the average
    after every response is replaced by a Bayesian user's best guess (Croft thesis 5.75 to 5.79, absolute
    loss, equally likely answers). Remapping is post-processing. `remapped` is None unless all possible
    answers were given.
    """

    mean: float
    worst: float
    remapped: float | None


def utility(mechanism: ScalarMechanism, answers: Sequence[Fraction], *, remap: bool = True) -> Utility:
    """Return the expected absolute errors of a mechanism over these answers of its range.

    `remap` also computes the error after remapping; it is meaningful if these are all possible answers.
    Finite distributions are summed over every response. Others are summed over some 600 intervals around the
    answer, each represented by its midpoint, with an error below one per cent.

    >>> from dpveil.mechanisms.scalar import Geometric
    >>> one = utility(Geometric(range=(0, 1), sensitivity=1, epsilon=1), [Fraction(0), Fraction(1)])
    >>> round(one.mean, 4), round(one.worst, 4)
    (0.2689, 0.2689)
    """
    ordered = sorted(answers)
    if mechanism.integers is None:
        errors = np.array([_sampled(mechanism, answer) for answer in ordered])
        return Utility(float(errors.mean()), float(errors.max()), None)
    points = [mechanism.lattice.origin + int(p) * mechanism.lattice.step for p in mechanism.lattice.points]
    matrix = mechanism.matrix(responses=points, answers=ordered)
    places = np.array([float(answer) for answer in ordered])
    shown = np.array([float(point) for point in points])
    errors = loss_of_answers(matrix, shown, places)
    remapped = best_guesses(matrix, shown, places).loss if remap else None
    return Utility(float(errors.mean()), float(errors.max()), remapped)


def _sampled(mechanism: ScalarMechanism, answer: Fraction) -> float:
    """Return the expected error of one answer on a lattice too large to sum over."""
    lattice = mechanism.lattice
    start = int(lattice.index(answer)[0])
    scale = float(2 * mechanism.sensitivity / mechanism.epsilon / lattice.step)
    away = np.rint(scale * np.expm1(np.linspace(0, np.log1p(REACH), TICKS))).astype(np.int64)
    near = np.unique(np.concatenate([start - away, start + away]))
    points = near[lattice.allowed(near)]
    responses = [lattice.origin + int(point) * lattice.step for point in points]
    matrix = mechanism.matrix(responses=responses, answers=[answer])[:, 0]
    errors = np.array([float(abs(response - answer)) for response in responses])
    return float(matrix @ errors)


def answers_of(allowed: Range, sensitivity: Fraction, *, whole: bool) -> list[Fraction]:
    """Return the public answers over which errors are compared; none depends on data.

    `whole` answers lie on the coarsest lattice, such as counts: all of them, or some spread over a large
    range. Others are spread evenly over the range and modulo ΔF, so that no mechanism's lattice has an
    advantage. On a range with one end they lie within about ten ΔF of it; without ends, near 0 and the ends
    of gaps.

    >>> [str(answer) for answer in answers_of(Range(0, 3), Fraction(1), whole=True)]
    ['0', '1', '2', '3']
    """
    if allowed.low is None or allowed.high is None:
        return _from_the_end(allowed, sensitivity, whole=whole)
    low, width = allowed.low, allowed.high - allowed.low
    count = MANY if width <= FINE * sensitivity else FEW
    if not whole:
        part = width / count
        spread = [low + part * k + min(part, sensitivity) * _golden(k) for k in range(count)]
        return [answer for answer in spread if answer in allowed]
    grid = Lattice(allowed, coarsest(allowed, sensitivity), sensitivity)
    if (grid.size or 0) <= MOST:
        return [grid.origin + int(point) * grid.step for point in grid.points]
    last = int(width / grid.step)
    near = [low + (k * last // (FEW - 1)) * grid.step for k in range(FEW)]
    return [answer for answer in near if answer in allowed]


def _from_the_end(allowed: Range, sensitivity: Fraction, *, whole: bool) -> list[Fraction]:
    """Return answers for a range without a lower or upper end; see `answers_of`."""
    if allowed.low is None and allowed.high is None:
        near = [Fraction(0), *(edge for gap in allowed.gaps for edge in gap)]
        moved = [answer + sensitivity * _golden(k) for k, answer in enumerate(near)]
        found = [answer for answer in moved if answer in allowed]
        return near if whole or not found else sorted(found)
    end = allowed.low if allowed.low is not None else allowed.high
    towards = 1 if allowed.low is not None else -1
    steps = [k + (0 if whole else _golden(i)) for i, k in enumerate((0, 0, 1, 2, 5, 10))]
    found = [(end or Fraction(0)) + towards * sensitivity * step for step in steps]
    return sorted({answer for answer in found if answer in allowed})


def _golden(k: int) -> Fraction:
    """Return the fractional part of (k + 1) golden ratios: for k = 0, 1, ... evenly spread over [0, 1)."""
    return Fraction((k + 1) * 61803398875 % 10**11, 10**11)
