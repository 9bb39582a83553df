"""Kept results: every claim has a check, everything is shown, and tables without data come out again."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from kept_tables import DOCS, FOLDER, claimed, kept_rows, page

from dpveil_research.__main__ import COMPUTED, ON_DATA, main
from dpveil_research.croft_2022_faces import HOLDS, NOT, OPEN, PRIVATE, SAME, verdict

PAGES = ("reproduction", "reproduction-faces")
VERDICTS = [f"C{number}" for number in range(10, 19)]
"""Claims of `croft-2022-faces`, with a row for each setting."""
UNSHOWN = {"errata-e1", "half-infinite", "gallery"}  # experiments whose tables are rows of pages


def test_every_claim_has_a_check() -> None:
    claims = {one for name in PAGES for one in re.findall(r"^\| ([A-Z]\d+) \|", page(name), re.MULTILINE)}
    tests = "".join(path.read_text(encoding="utf-8") for path in Path(__file__).parent.glob("test_*.py"))
    checked = {one.upper() for one in re.findall(r"^def test_([a-z]\d+)_", tests, re.MULTILINE)}
    assert claims == checked | set(VERDICTS)


def test_every_plot_and_table_is_shown() -> None:
    text = "".join(path.read_text(encoding="utf-8") for docs in DOCS for path in docs.rglob("*.md"))
    for path in FOLDER.glob("*/*"):
        table = path.suffix == ".csv" and path.parent.name in UNSHOWN
        assert table or f"reproduction/{path.parent.name}/{path.name})" in text, path


def setting(words: str) -> str:
    """The setting as pages name it."""
    return words.replace(f"{PRIVATE} ", "ε = ").replace(f"{SAME} ", "k = ").replace(" - ", " less ")


def points(row: dict[str, str]) -> str:
    mean, low, high = (f"{100 * float(row[f'difference{end}']):.0f}" for end in ("", "_low", "_high"))
    text = f"{setting(row['setting'])}: {mean} ({low} to {high})"
    return re.sub(r"(?<!\d)-0(?!\d)", "0", text).replace("-", "−")


@pytest.mark.parametrize("claim", VERDICTS)
def test_a_page_says_of_each_setting_what_the_table_says(claim: str) -> None:
    found = [row for row in kept_rows("croft-2022-faces", "verdicts") if row["claim"] == claim]
    parts = {
        word: [setting(row["setting"]) for row in found if row["verdict"] == word]
        for word in (HOLDS, NOT, OPEN)
    }
    judged = [
        f"{word}: {', '.join(those)}" if len(those) < len(found) else word
        for word, those in parts.items()
        if those
    ]
    _, _, _, here, said, _ = (cell.strip() for cell in claimed(page("reproduction"), claim).split("|"))
    assert here == "; ".join(map(points, found))
    assert said == "; ".join(judged)
    for row in found:
        ends = [float(row[f"difference{end}"]) for end in ("", "_low", "_high")]
        assert row["verdict"] == verdict(ends, float(row["from"]), float(row["to"]))


@pytest.mark.parametrize("name", sorted(set(COMPUTED) - {"croft-thesis-5", "faceidp-faces"}))
def test_tables_that_need_no_data_come_out_as_they_are_kept(name: str, tmp_path: Path) -> None:
    """Those that need data, or minutes, are compared by a slice where the data are (see the claims)."""
    assert main([name, "--out", str(tmp_path)]) == 0
    tables = {path.name: path.read_bytes() for path in (tmp_path / name).glob("*.csv")}
    assert tables == {path.name: path.read_bytes() for path in (FOLDER / name).glob("*.csv")}


def test_wrong_calls_write_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for words, said in (
        (["croft-2022"], "--data"),
        *(([name, "--data", str(tmp_path)], "--data") for name in ON_DATA),
        (["errata-e2"], "errata-e1"),
        (["errata-e1", "--count", "0"], "0"),
    ):
        assert main([*words, "--out", str(tmp_path / "out")]) == 2
        assert said in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []
