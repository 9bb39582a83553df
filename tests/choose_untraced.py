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

from coverage import CoverageData

ENOUGH = 8
"""Steps from one line to another for each second: a test that adds fewer is not worth its tracing."""
LONG = 0.06
"""Seconds from which on it matters whether a test is traced."""
ALWAYS = 0.004
"""Seconds that any test takes."""


def reached(file: str) -> dict[str, set[tuple[str, tuple[int, int]]]]:
    """Return the steps between lines that each test takes; those of no test have the name ""."""
    data, steps = CoverageData(file), defaultdict(set)
    data.read()
    contexts = {context: test_of(context.partition("|")[0]) for context in data.measured_contexts()}
    for context, test in contexts.items():
        data.set_query_context(context)
        for source in data.measured_files():
            steps[test] |= {(source, step) for step in data.arcs(source) or ()}
    return steps


def seconds(file: Path) -> dict[str, float]:
    """Return how long a case of each test takes, which is traced in its first one alone."""
    taken = defaultdict(list)
    for case in ElementTree.parse(file).iter("testcase"):  # noqa: S314  pytest wrote it
        taken[test_of(f"{case.get('file')}::{case.get('name')}")].append(float(case.get("time", "0")))
    return {test: sum(cases) / len(cases) for test, cases in taken.items()}


def test_of(case: str) -> str:
    return case.partition("[")[0]


def worth_tracing(steps: dict[str, set], taken: dict[str, float]) -> set[str]:
    """Return the tests that add enough steps in their time, each to those before it."""
    known, chosen = set(steps[""]), set()
    best = [(-math.inf, test) for test in steps if test]
    while best:
        promised, test = heappop(best)
        rate = len(steps[test] - known) / (taken.get(test, 0.0) + ALWAYS)
        if rate >= ENOUGH and -rate > promised:  # others may add more by now
            heappush(best, (-rate, test))
        elif rate >= ENOUGH:
            known |= steps[test]
            chosen.add(test)
    return chosen


def main(coverage: str, report: Path, listed: Path) -> None:
    """Write the list."""
    steps, taken = reached(coverage), seconds(report)
    traced = worth_tracing(steps, taken)
    untraced = sorted(
        test for test in steps if "::test_" in test and test not in traced and taken.get(test, 0.0) >= LONG
    )
    listed.write_text("".join(f"{test}\n" for test in untraced), encoding="utf-8")
    free, all_ = sum(taken.get(test, 0.0) for test in untraced), sum(taken.values())
    print(f"{len(untraced)} tests are not traced: {free:.0f} of {all_:.0f} s")


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3]))
