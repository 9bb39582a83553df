"""A1 to A5 of docs/reproduction-thesis-6.md, each read off the tables that are kept here."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from dpveil_research.croft_2022_faces import HOLDS, NOT, OPEN, PRIVATE, SAME, verdict
from dpveil_research.croft_thesis_6_aam import DECODED, LOOKS, PHOTOS, PLAN

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "reproduction-thesis-6.md").read_text(encoding="utf-8")
HOME = ROOT / "reproduction" / "croft-thesis-6-aam"


def rows(table: str) -> list[dict[str, str]]:
    return list(csv.DictReader((HOME / f"{table}.csv").read_text(encoding="utf-8").splitlines()))


def setting(words: str) -> str:
    """The setting as the page names it."""
    return words.replace(f"{PRIVATE} ", "ε = ").replace(f"{SAME} ", "k = ").replace(" - ", " less ")


def points(row: dict[str, str]) -> str:
    mean, low, high = (f"{100 * float(row[f'difference{end}']):.0f}" for end in ("", "_low", "_high"))
    text = f"{setting(row['setting'])}: {mean} ({low} to {high})"
    return text.replace(" -0 ", " 0 ").replace("(-0 ", "(0 ").replace("to -0)", "to 0)").replace("-", "−")


def judged(found: list[dict[str, str]]) -> str:
    """The cell of the page that gives the verdict at each setting."""
    parts = []
    for word in (HOLDS, NOT, OPEN):
        where = [setting(row["setting"]) for row in found if row["verdict"] == word]
        if len(where) == len(found):
            return word
        parts += [f"{word}: {'; '.join(where)}"] if where else []
    return ". ".join(parts)


@pytest.mark.parametrize("claim", ["A1", "A2", "A3", "A4", "A5"])
def test_the_page_says_what_the_table_says(claim: str) -> None:
    found = [row for row in rows("verdicts") if row["claim"] == claim]
    (line,) = (one for one in PAGE.splitlines() if one.startswith(f"| {claim} |"))
    _, _, _, here, said, _ = (cell.strip() for cell in line.split("|"))
    assert here == "; ".join(map(points, found))
    assert said == judged(found)
    for row in found:
        ends = [float(row[f"difference{end}"]) for end in ("", "_low", "_high")]
        assert row["verdict"] == verdict(ends, float(row["from"]), float(row["to"]))


def test_the_table_is_that_of_the_plan() -> None:
    for name in {one.name for one in PLAN.sets}:
        own = [(row["look"], row["method"], row["x"]) for row in rows("results") if row["dataset"] == name]
        settings = [(PRIVATE, str(x)) for x in PLAN.epsilons] + [(SAME, str(k)) for k in PLAN.groups]
        wanted = {(look, *one) for look in LOOKS for one in [*settings, (DECODED, "")]}
        assert set(own) == wanted | {(PHOTOS, "", "")}
        assert len(own) == len(set(own))
    assert {row["people"] for row in rows("results")} == {"40", "60"}


def test_all_files_are_shown() -> None:
    names = [path.name for path in HOME.iterdir() if path.suffix in (".png", ".csv")]
    assert len(names) == 4
    assert all(f"(reproduction/croft-thesis-6-aam/{name})" in PAGE for name in names)
