"""The `arrive` gate: the cost of two neighbours' answers after a mechanism has read them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Set
from fractions import Fraction
from functools import lru_cache, partial
from typing import Final

import numpy as np

from dpveil.errors import NoiseError
from dpveil.mechanisms.scalar import ScalarMechanism
from dpveil.noise.bits import BitSource
from dpveil.noise.matrix import IntegerMatrix, log_above
from dpveil_audit.findings import Finding
from dpveil_audit.gates import refused
from dpveil_audit.scalar.arrivals import Pair, Points, random_tables, read
from dpveil_audit.scalar.case import ScalarCase, ScalarVersion
from dpveil_audit.scalar.distributions import PointDistribution
from dpveil_audit.scalar.gates import CLOSE, ROUNDED, UNBOUNDED, log_weights, place, ratio_of
from dpveil_audit.scalar.noise import MP

PAIRS: Final = 100
"""Neighbours of one random table."""
DISTRIBUTIONS: Final = 24
"""Pairs of points at which a law without integers is evaluated, the furthest apart first."""


def arrive_gate(version: ScalarVersion, case: ScalarCase) -> Iterator[Finding]:
    """Yield the largest log-ratio of answers next to thresholds, as this version reads them; the limit is
    ε.
    """
    pairs = case.met if version.read is read else _points(version, case.method, case.arrivals)
    if pairs and version.fits(case):
        yield _finding(version, case, pairs, f"{len(case.arrivals):,} pairs beside turns")


def tables_gate(
    kind: type[ScalarMechanism], version: ScalarVersion, tables: int, *, bits: BitSource
) -> Iterator[Finding]:
    """Yield the largest log-ratio of the means of random tables and their neighbours, as floats and
    exactly.
    """
    found = []
    for table in random_tables(kind, tables, bits):
        case, what = ScalarCase(table.method), f"{tables * PAIRS:,} pairs of random tables"
        points = _points(version, table.method, table.pairs(PAIRS, bits))
        try:
            found.append(_finding(version, case, points, what))
        except NoiseError as error:
            found.append(refused("arrive", case, error))
    if found:
        yield max(found, key=lambda finding: finding.value - finding.limit)


def _points(version: ScalarVersion, method: ScalarMechanism, pairs: Iterable[Pair]) -> set[Points]:
    """Return the points that neighbours are read as, the lower one first."""
    point = lru_cache(maxsize=1 << 14)(partial(version.read, method.lattice))
    places = ((point(one), point(other)) for one, other in pairs)
    return {(min(pair), max(pair)) for pair in places}


def _finding(version: ScalarVersion, case: ScalarCase, pairs: Set[Points], what: str) -> Finding:
    matrix = version.integers(case.method)
    if matrix is None:
        losses = _of_distribution(version.distribution(case.method), case, pairs)
    else:
        losses = _of_integers(matrix, case, pairs)
    loss, (x, other) = max(losses)
    where = f"{case}, answers read as {place(case, x)} and {place(case, other)}"
    kept = loss <= case.limit + (0 if matrix else ROUNDED)
    return Finding("arrive", f"log-ratio of {what}", where, float(loss), float(case.limit), kept, "ε")


def _of_integers(
    matrix: IntegerMatrix, case: ScalarCase, pairs: Set[Points]
) -> Iterator[tuple[Fraction, Points]]:
    """Yield the largest log-ratios of rows, in integers and rounded up by 10^-40."""
    own = case.method.lattice.points
    logs = log_weights(matrix.weights)
    rows = {pair: tuple(int(np.searchsorted(own, point)) for point in pair) for pair in pairs}
    floats = {pair: float(np.abs(logs[i] - logs[j]).max()) for pair, (i, j) in rows.items()}
    most = max(floats.values())
    for pair, (i, j) in rows.items():
        if floats[pair] >= most - CLOSE:
            y = int(np.abs(logs[i] - logs[j]).argmax())
            ratio = ratio_of(matrix.weights[i][y], matrix.weights[j][y])
            yield log_above(ratio) if ratio else UNBOUNDED, pair


def _of_distribution(
    distribution: PointDistribution, case: ScalarCase, pairs: Set[Points]
) -> Iterator[tuple[Fraction, Points]]:
    """Yield the log-ratio of some pairs, over responses around them and far out."""
    edges = case.edges

    def rank(pair: Points) -> tuple[int, int]:
        return pair[0] - pair[1], min(abs(point - edge) for point in pair for edge in edges)

    for x, other in sorted(pairs, key=rank)[:DISTRIBUTIONS]:
        near = case.allowed([x, other, *case.outputs[:: max(1, len(case.outputs) // DISTRIBUTIONS)]])
        logs = [(distribution.log(x, int(y)), distribution.log(other, int(y))) for y in near]
        # Noise that no 50 digits see is the same nothing for both.
        seen = [abs(one - two) for one, two in logs if max(one, two) > -MP.inf]
        loss = max(seen, default=MP.mpf(0))
        yield (UNBOUNDED if loss == MP.inf else Fraction(str(loss))), (x, other)
