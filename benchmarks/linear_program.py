"""Run times of the linear-programming mechanisms by size and ε: processor time, certificate included.

`seconds` are those of the mechanism as a user gets it; `solver alone` is HiGHS on the same program if the
mechanism needs no solver and HiGHS ends within a minute. A counting query of size n has n + 1 answers. Every
row runs once.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

import numpy as np

import timing
from dpveil.errors import NoiseError
from dpveil.mechanisms.scalar import LinearProgram1, LinearProgram2
from dpveil.mechanisms.scalar.programs import Program, solve

BUDGETS = ("0.5", "0.01", "0.001")

ALONE = {"0.5": 300, "0.01": 200, "0.001": 100}
"""Sizes up to which the solver is timed too, by ε."""


def spent(call: Callable[[], object]) -> tuple[float, object]:
    start = time.process_time()
    try:
        found: object = call()
    except NoiseError as problem:
        found = problem
    return round(time.process_time() - start, 2), found


def error(matrix: np.ndarray) -> float:
    places = np.arange(len(matrix))
    return float((matrix * np.abs(places[:, None] - places[None, :])).mean(axis=1).sum())


def row(
    variant: type[LinearProgram1] | type[LinearProgram2], size: int, epsilon: str, alone: bool
) -> dict[str, object]:
    start = time.process_time()
    found = variant(range=(0, size), sensitivity=1, epsilon=epsilon)
    certificate = found.certificate
    seconds = round(time.process_time() - start, 2)
    assert certificate is not None
    assert certificate.epsilon <= found.epsilon
    mean = error(found.matrix())
    program = Program(np.arange(size + 1), 1, float(epsilon), metric=True, fair=variant.fair)
    taken, solved = spent(lambda: solve(program)) if alone and found.closed else ("not run", None)
    return {
        "mechanism": variant.name,
        "size": size,
        "epsilon": epsilon,
        "no solver": found.closed,
        "seconds": seconds,
        "solver alone": taken,
        "error": f"{mean:.7g}",
        "error of solver": f"{error(solved):.7g}" if isinstance(solved, np.ndarray) else "none",
    }


def main() -> None:
    sizes = [int(word) for word in sys.argv[1:]] or [20, 50, 100, 200, 300]
    rows = []
    for size in sizes:
        for variant in (LinearProgram1, LinearProgram2):
            for epsilon in BUDGETS:
                rows.append(row(variant, size, epsilon, alone=size <= ALONE[epsilon]))
                print(rows[-1], file=sys.stderr, flush=True)
    timing.report("linear_program", rows, notes=("processor seconds of one run",))


if __name__ == "__main__":
    main()
