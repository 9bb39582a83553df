"""The kept run on AT&T: its tables have today's columns, and the pages say what they hold."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from dpveil.bench import times
from dpveil.bench.table import COLUMNS, STRONGEST, UTILITY

ROOT = Path(__file__).parents[2]
KEPT = ROOT / "benchmarks" / "results" / "evaluate-att"
Rows = list[dict[str, str]]


def table(name: str) -> Rows:
    if not KEPT.is_dir():
        pytest.skip("the benchmarks are not in this copy")
    with (KEPT / f"{name}.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def page(name: str) -> str:
    return (ROOT / "docs" / f"{name}.md").read_text(encoding="utf-8")


@pytest.fixture
def results() -> Rows:
    return table("results")


def rate(results: Rows, method: str, attack: str = STRONGEST, **parameters: object) -> float:
    (row,) = (
        one
        for one in results
        if (one["method"], one["attack"]) == (method, attack)
        and parameters.items() <= json.loads(one["parameters"]).items()
    )
    return float(row["success"])


def test_tables_have_todays_columns(results: Rows) -> None:
    assert tuple(results[0]) == COLUMNS
    assert tuple(table("utility")[0]) == UTILITY
    assert tuple(table("times")[0]) == times.COLUMNS


def test_the_run_is_that_of_the_page(results: Rows) -> None:
    about = json.loads((KEPT / "run.json").read_text(encoding="utf-8"))
    assert about["command"] == "dpveil evaluate att_faces --out results"
    assert about["command"] in page("evaluate")
    settings = {(one["method"], one["parameters"]) for one in results}
    attacks = {one["attack"] for one in results} - {STRONGEST}
    assert (len(settings), len(attacks)) == (20, 5)
    assert "20 settings and five attacks" in page("evaluate")
    assert {"network", "pixels", "appearance"} <= attacks, "a network is trained on every setting"
    assert len(results) == len(settings) * (len(attacks) + 1)


def test_what_the_page_says_of_the_strongest_attack(results: Rows) -> None:
    assert rate(results, "nothing") == 1
    assert min(rate(results, "blur"), rate(results, "mosaic")) >= 0.97
    svd = [
        float(one["success"]) for one in results if (one["method"], one["attack"]) == ("dp-svd", STRONGEST)
    ]
    assert len(svd) == 5
    assert min(svd) >= 0.97
    pix = rate(results, "dp-pix", epsilon=5, neighbourhood=16)
    assert f"DP-Pix at ε = 5 with m = 16 gives {100 * pix:.0f} % away" in page("evaluate")
    assert rate(results, "fill") <= 2 / 40


def test_what_knows_clean_photos_alone_names_hardly_anybody(results: Rows) -> None:
    assert rate(results, "nothing", "embedding") == 1
    assert max(rate(results, name, "embedding") for name in ("blur", "mosaic")) < 0.2


def test_what_the_page_on_attacks_says(results: Rows) -> None:
    assert "names everybody in clean photos, and under mosaics and blur" in page("attacks")
    assert {rate(results, name) for name in ("nothing", "blur", "mosaic")} == {1}
