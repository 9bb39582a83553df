"""Figures of the page on synthetic data sets: those of the code, and those that the benchmark recorded."""

import json
from pathlib import Path

from dpveil.synthesis import Plan

ROOT = Path(__file__).parent.parent.parent
PAGE = (ROOT / "docs" / "synthesis.md").read_text(encoding="utf-8")
RECORD = json.loads((ROOT / "benchmarks" / "results" / "synthesis.json").read_text(encoding="utf-8"))
CODEC = f"gan 128 sha256:{64 * '0'}"


def table(first):
    """Return the cells of the table whose head begins with this cell."""
    part = PAGE[PAGE.index(f"\n| {first} |") + 1 :].partition("\n\n")[0]
    lines = [[cell.strip() for cell in line.strip("|").split("|")] for line in part.splitlines()]
    return [lines[0], *lines[2:]]


def test_the_least_numbers_of_people_are_those_of_the_code():
    head, people = table("ε")
    for epsilon, told in zip(head[1:], people[1:], strict=True):
        plan = Plan(epsilon=epsilon, delta="1e-6", people=100_000, codec=CODEC)
        assert plan.needed == int(told)


def test_the_example_s_numbers_are_those_of_the_code():
    plan = Plan(epsilon=1, delta="1e-6", people=4260, codec=CODEC)
    assert (
        f"4,260 people vote for {plan.chosen} candidates in one round: {4260 / plan.chosen:.1f} votes" in PAGE
    )
    assert f"deviation of {plan.noise:.1f}\n" in PAGE


def test_measured_figures_are_those_recorded():
    known = {
        (row["data"], row["set"], str(row.get("epsilon", "")), str(row.get("rounds", "")), name): row[name][0]
        for row in RECORD["rows"]
        for name in ("wasserstein", "ndb", "accuracy of gender", "accuracy of age")
        if name in row
    }
    told = 0
    for data, first in (("lfw", "LFW"), ("utkface", "UTKFace"), ("choose", "UTKFace, 45+")):
        head, *rows = table(first)
        for row in rows:
            cells = dict(zip(head, row, strict=True))
            part = f"{data} per photo" if cells[first].startswith("per photo") else data
            key = part, cells[first], cells["ε"], cells.get("rounds", "")
            for name in ("wasserstein", "ndb", "accuracy of gender", "accuracy of age"):
                if cells.get(name):
                    assert float(cells[name]) == known[(*key, name)], (key, name)
                    told += 1
    assert told == len(known)
