"""The page of costs: its model predicts the run that it was not fitted to, and is told as it is."""

from __future__ import annotations

import doctest
import importlib
import json
import re
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parent.parent
PAGE = re.sub(r"\s+", " ", (ROOT / "docs" / "costs.md").read_text(encoding="utf-8").replace("\u202f", ""))
KEPT = json.loads((ROOT / "benchmarks" / "results" / "costs.json").read_text(encoding="utf-8"))["rows"]


@pytest.fixture
def costs(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(ROOT / "docs"))
    return importlib.import_module("make_costs")


def test_figures_are_written_as_its_examples_say(costs: ModuleType) -> None:
    failed, tried = doctest.testmod(costs)
    assert (failed, tried) == (0, 7)


def test_a_line_is_found_and_costs_are_never_negative(costs: ModuleType) -> None:
    line = costs.Line.fitted([10, 100, 1000], [7, 25, 205])
    assert (line.start, line.each) == (pytest.approx(5), pytest.approx(0.2))
    through = costs.Line.fitted([10, 100, 1000], [1, 19, 199])
    assert through.start == 0
    assert 0.1 < through.each < 0.2
    small_counts = costs.Line.fitted([1, 10, 1000], [1.1, 2.0, 102])  # a long run does not hide the start
    assert 0.9 < small_counts.start < 1.1


def test_the_run_that_nothing_was_fitted_to_is_predicted(costs: ModuleType) -> None:
    [found] = [row for row in KEPT if (row["work"], row["photos"]) == (costs.SMALL, costs.CHECKED)]
    fitted = [row["photos"] for row in KEPT if row["work"] == costs.SMALL and row["photos"] != costs.CHECKED]
    assert 2 * max(fitted) <= costs.CHECKED
    for name, (column, unit) in costs.MEASURED.items():
        most = 0.02 if column.endswith("bytes") else 0.25  # memory and time depend on what else runs
        expected = costs.fitted(costs.SMALL)[name].at(costs.CHECKED)
        assert found[column] * unit == pytest.approx(expected, rel=most), name


def test_the_checked_run_is_not_fitted(costs: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    fitted, told = dict(costs.fitted(costs.SMALL)), dict(costs.model(costs.SMALL))
    other = {"workers, processor s": 1e9, "command, MB": 1e6}
    changed = [row | other if row["photos"] == costs.CHECKED else row for row in KEPT]
    monkeypatch.setattr(costs, "rows", lambda: changed)
    forget(costs)
    assert costs.fitted(costs.SMALL) == fitted
    now = costs.model(costs.SMALL)
    assert {name for name in now if now[name] != told[name]} == {"memory"}  # which takes the largest run too
    assert "1000000000" not in costs.predicted()
    forget(costs)


def forget(costs: ModuleType) -> None:
    costs.fitted.cache_clear()
    costs.model.cache_clear()


def test_memory_is_never_below_a_run_or_a_slope(costs: ModuleType) -> None:
    line = costs.Line.above([10, 20, 40], [5, 6, 10])
    assert (line.start, line.each) == (pytest.approx(3), pytest.approx(0.2))  # not 0.1, as from 10 to 20
    assert costs.Line.above([10, 20], [5, 4]) == costs.Line(5, 0)
    for kind in costs.kinds():
        own = [row for row in KEPT if row["work"] == kind and row["photos"] != 1]
        memory = costs.model(kind)["memory"]
        assert all(memory.at(row["photos"]) >= 1e6 * row["command, MB"] - 1 for row in own)
    largest, before = [row for row in KEPT if row["work"] == costs.SMALL][:-3:-1]
    slope = 1e6 * (largest["command, MB"] - before["command, MB"]) / (largest["photos"] - before["photos"])
    for kind in costs.kinds():
        assert costs.most_in_memory(kind) <= costs.MEMORY / slope


def test_lines_through_two_runs_are_called_exact(costs: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "Two sizes always fit a line, which says nothing about its error." in costs.sizes()
    assert "No run checks those of large photos." in costs.sizes()
    more = [row | {"photos": 7} for row in KEPT if row["photos"] == 20]
    monkeypatch.setattr(costs, "rows", lambda: [*KEPT, *more])
    assert "Two sizes" not in costs.sizes()


def test_every_photo_was_paid_for_once() -> None:
    assert all(row["debits"] == row["photos"] for row in KEPT)


def test_predictions_are_sums_of_their_parts(costs: ModuleType) -> None:
    for kind in costs.kinds():
        [one] = [row for row in KEPT if (row["work"], row["photos"]) == (kind, 1)]
        seconds = one["workers, processor s"] + one["command, processor s"]
        assert costs.processor(kind, 1) == pytest.approx(seconds)
        each = costs.processor(kind, 10**6 + 1) - costs.processor(kind, 10**6)
        parts = [costs.model(kind)[name].each for name in ("workers", "command")]
        assert each == pytest.approx(sum(parts), rel=1e-6)
        assert costs.dollars(kind, 1000) == pytest.approx(costs.PRICE * costs.processor(kind, 1000) / 3600)
        assert costs.model(kind)["memory"].at(costs.most_in_memory(kind)) == pytest.approx(costs.MEMORY)
        bytes_each = sum(costs.model(kind)[n].each for n in ("releases", "certificates", "ledger", "state"))
        assert costs.kept(kind, 10**9) / 10**9 == pytest.approx(bytes_each, rel=1e-3)


def test_figures_of_the_page_are_those_of_the_model(costs: ModuleType) -> None:
    sizes = sorted(row["photos"] for row in KEPT if row["work"] == costs.SMALL)
    assert sizes[-1] == costs.CHECKED
    told = costs.sizes().replace("\u202f", "")
    assert f"and {sizes[-2]} to fit the model," in told
    assert f"The run of {sizes[-1]} small photos was not used" in told
    assert f"at {costs.PRICE:g} dollars for a core and an hour" in PAGE
    assert all(f"{{{{ {name} }}}}" in PAGE for name in costs.PARTS)


def test_tables_and_plot_are_made_of_what_was_kept(costs: ModuleType) -> None:
    kinds = len(costs.kinds())
    lines = costs.predicted().splitlines()
    assert len(lines) == 2 + kinds * len(costs.PHOTOS)
    assert [line.split(" | ")[-1].strip(" |") for line in lines[2:6]] == ["1", "1000", "10⁶", "10⁹"]
    assert len(costs.check().splitlines()) == 2 + len(costs.MEASURED)
    assert costs.limits().count("\n") == 5
    assert costs.plot().startswith(b"\x89PNG")
