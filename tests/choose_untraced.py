"""Write `tests/untraced.txt` anew: the long tests that reach hardly any line which no other test reaches.

`make untraced` first runs all tests under the tracer, which leaves `.coverage`, with the test of each line,
and how long the tests took. Those that add most in their time are traced, each after those before it, until
they add too little.
"""

from __future__ import annotations

import math
import sys
from collections import defaultdict
from heapq import heappop, heappush
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
from coverage import CoverageData

ENOUGH = 8
"""Lines for each second: a test that adds fewer is not worth its tracing."""
LONG = 0.06
"""Seconds from which on it matters whether a test is traced."""
ALWAYS = 0.004
"""Seconds that any test takes."""


def reached(file: str) -> dict[str, np.ndarray]:
    """Return which lines each test reaches, of all that any does; those of no test have the name ""."""
    data = CoverageData(file)
    data.read()
    test = {context: test_of(context.partition("|")[0]) for context in data.measured_contexts()}
    lines = [
        {test[context] for context in contexts}
        for source in sorted(data.measured_files())
        for contexts in data.contexts_by_lineno(source).values()
    ]
    found = {name: np.zeros(len(lines), dtype=bool) for name in test.values()}
    for number, names in enumerate(lines):
        for name in names:
            found[name][number] = True
    return found


def seconds(file: Path) -> dict[str, float]:
    """Return how long a case of each test takes, which is traced in its first one alone."""
    taken = defaultdict(list)
    for case in ElementTree.parse(file).iter("testcase"):  # noqa: S314  pytest wrote it
        taken[test_of(f"{case.get('file')}::{case.get('name')}")].append(float(case.get("time", "0")))
    return {test: sum(cases) / len(cases) for test, cases in taken.items()}


def test_of(case: str) -> str:
    return case.partition("[")[0]


def worth_tracing(lines: dict[str, np.ndarray], taken: dict[str, float]) -> set[str]:
    """Return the tests that add enough lines in their time, each to those before it."""
    known, chosen = lines[""].copy(), set()
    best = [(-math.inf, test) for test in lines if test]
    while best:
        promised, test = heappop(best)
        rate = np.count_nonzero(lines[test] & ~known) / (taken.get(test, 0.0) + ALWAYS)
        if rate >= ENOUGH and -rate > promised:  # others may add more by now
            heappush(best, (-rate, test))
        elif rate >= ENOUGH:
            known |= lines[test]
            chosen.add(test)
    return chosen


def main(coverage: str, report: Path, listed: Path) -> None:
    """Write the list."""
    lines, taken = reached(coverage), seconds(report)
    traced = worth_tracing(lines, taken)
    untraced = sorted(
        test for test in lines if "::test_" in test and test not in traced and taken.get(test, 0.0) >= LONG
    )
    listed.write_text("".join(f"{test}\n" for test in untraced), encoding="utf-8")
    free, all_ = sum(taken.get(test, 0.0) for test in untraced), sum(taken.values())
    print(f"{len(untraced)} tests are not traced: {free:.0f} of {all_:.0f} s")


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3]))
