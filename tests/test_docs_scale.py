"""The page of clusters: nothing was lost when everything was killed, and its figures are the kept ones."""

from __future__ import annotations

import importlib
import json
import re
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

ROOT = Path(__file__).parent.parent
PAGE = re.sub(r"\s+", " ", (ROOT / "docs" / "scale.md").read_text(encoding="utf-8").replace("\u202f", ""))


def kept(name: str) -> list[dict[str, Any]]:
    rows = json.loads((ROOT / "benchmarks" / "results" / f"{name}.json").read_text(encoding="utf-8"))["rows"]
    return list(rows)


@pytest.fixture
def scale(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(ROOT / "docs"))
    return importlib.import_module("make_scale")


def test_kills_lost_no_input_and_no_debit() -> None:
    [row] = kept("scale_kills")
    assert row["inputs"] == 50_000
    assert row["releases"] + row["no region"] + row["failed"] == row["inputs"]
    assert row["debits"] - row["debits without a release"] == row["releases"]
    assert row["debits without a release"] <= row["workers killed"] + 2 * (
        row["nodes killed"] + row["everything killed"]
    )
    assert min(row["workers killed"], row["nodes killed"], row["everything killed"]) > 0


def test_workers_of_ray_add_less_than_a_twentieth_where_photos_take_a_tenth_of_a_second() -> None:
    large = {row["way"]: row for row in kept("scale") if row["photos"].startswith("2560")}
    for jobs, ray in (("--jobs 1", "Ray, 1 worker"), ("--jobs 2", "Ray, 2 workers")):
        assert large[jobs]["processor ms an image"] >= 100
        assert large[ray]["overhead, %"] < 5


def test_the_page_has_the_kept_figures(scale: ModuleType) -> None:
    [row] = kept("scale_kills")
    for name in ("MB of a worker", "MB of a node", "MB of the driver"):
        assert f"| {name} | {scale.plain(row[name])} |" in scale.kills()
        assert re.search(rf"\b{row[name]}\b", PAGE), name
    assert all(row["way"] in scale.ways() for row in kept("scale"))
    assert scale.plot().startswith(b"\x89PNG")
