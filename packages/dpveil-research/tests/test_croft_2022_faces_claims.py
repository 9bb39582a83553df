"""C10 to C19 of docs/reproduction.md, each read off the tables that are kept here."""

from __future__ import annotations

import csv
from pathlib import Path

from dpveil.codecs.gan import CONDITIONS
from dpveil.faces.attribute_model import VALUES
from dpveil_research.croft_2022_faces import BASIC, HOLDS, NOT, OPEN, PLAN, PRIVATE, SAME, verdict

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "reproduction.md").read_text(encoding="utf-8")
HOME = ROOT / "reproduction" / "croft-2022-faces"


def rows(table: str) -> list[dict[str, str]]:
    return list(csv.DictReader((HOME / f"{table}.csv").read_text(encoding="utf-8").splitlines()))


def of(claim: str) -> list[dict[str, str]]:
    found = [row for row in rows("verdicts") if row["claim"] == claim]
    assert found
    return found


def setting(words: str) -> str:
    """The setting as the page names it."""
    return words.replace(f"{PRIVATE} ", "ε = ").replace(f"{SAME} ", "k = ").replace(" - ", " less ")


def points(row: dict[str, str]) -> str:
    mean, low, high = (f"{100 * float(row[f'difference{end}']):.0f}" for end in ("", "_low", "_high"))
    text = f"{setting(row['setting'])}: {mean} ({low} to {high})"
    return text.replace("-0 ", "0 ").replace("(-0", "(0").replace("to -0", "to 0").replace("-", "−")


def measured(claim: str) -> str:
    """The cell of the page that says what was measured, in points."""
    return "; ".join(points(row) for row in of(claim))


def judged(claim: str) -> str:
    """The cell of the page that gives the verdict at each setting."""
    parts = []
    for word in (HOLDS, NOT, OPEN):
        where = [setting(row["setting"]) for row in of(claim) if row["verdict"] == word]
        if len(where) == len(of(claim)):
            return word
        parts += [f"{word}: {', '.join(where)}"] if where else []
    return "; ".join(parts)


def check(claim: str) -> None:
    (line,) = (one for one in PAGE.splitlines() if one.startswith(f"| {claim} |"))
    _, _, _, here, said, _ = (cell.strip() for cell in line.split("|"))
    assert here == measured(claim)
    assert said == judged(claim)
    for row in of(claim):
        found = [float(row[f"difference{end}"]) for end in ("", "_low", "_high")]
        assert row["verdict"] == verdict(found, float(row["from"]), float(row["to"]))


def test_the_table_is_that_of_the_plan() -> None:
    assert {row["people"] for row in rows("results")} == {str(PLAN.people)}
    for method, wanted in ((PRIVATE, PLAN.epsilons), (SAME, PLAN.groups)):
        own = [row["x"] for row in rows("results") if (row["method"], row["model"]) == (method, BASIC)]
        assert own == [str(one) for one in wanted]
    for plot in HOME.glob("*.png"):
        assert f"(reproduction/croft-2022-faces/{plot.name})" in PAGE
        assert plot.stat().st_size < 150_000


def test_c10_the_risk_falls_with_privacy() -> None:
    check("C10")


def test_c11_telling_the_gender_hardly_changes_who_is_named() -> None:
    check("C11")


def test_c12_basic_models_lose_the_gender_with_privacy() -> None:
    check("C12")


def test_c13_telling_the_gender_improves_its_recognition_much() -> None:
    check("C13")


def test_c14_gender_exceeds_that_of_photos() -> None:
    check("C14")


def test_c15_parrots_gain_at_large_budgets() -> None:
    check("C15")


def test_c16_parrots_lose_at_small_budgets() -> None:
    check("C16")


def test_c17_two_releases_of_k_same_greatly_exceed_one_in_k() -> None:
    check("C17")


def test_c18_a_second_private_release_adds_little() -> None:
    check("C18")


def test_c19_nothing_tells_or_reads_expressions() -> None:
    assert "expression" not in {*CONDITIONS, *VALUES}
    (line,) = (one for one in PAGE.splitlines() if one.startswith("| C19 |"))
    assert OPEN in line
