"""`dpveil evaluate`: a folder with tables and a report, resumed, checked, and refused in one line."""

from __future__ import annotations

import csv
import json
import re
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from dpveil.bench.data import load
from dpveil.bench.report import alarm, page
from dpveil.bench.run import CELLS
from dpveil.bench.table import COLUMNS
from people_made import folder

BUDGETS = ("--method", "dp-pix", "--epsilon", "1", "--epsilon", "100")
FEW = (*BUDGETS, "--attack", "pixels", "--attack", "restored")
FEW_PEOPLE = (
    "note: made: 6 people are too few, as intervals over people are wide; take no order of methods from this"
    " run"
)
Shell = Callable[..., tuple[int, str, str]]


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return folder(tmp_path_factory.mktemp("data") / "made")


@pytest.fixture(scope="module")
def made(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    from dpveil.cli import run

    out = tmp_path_factory.mktemp("out") / "results"
    line = ["evaluate", f"{data}/", f"--out={out}/", *FEW, "--jobs", "1"]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["dpveil", *line])
        assert run(line) == 0
    return out


def read(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_the_tables_have_what_is_promised(made: Path) -> None:
    table = read(made / "results.csv")
    assert list(table[0]) == list(COLUMNS)
    assert {row["method"] for row in table} == {"nothing", "blur", "mosaic", "fill", "dp-pix"}
    assert {row["attack"] for row in table} == {"pixels", "restored(pixels)", "strongest"}
    named = {(row["method"], row["epsilon"], row["attack"]): row for row in table}
    assert float(named["nothing", "", "pixels"]["success"]) == 1
    assert float(named["fill", "0", "pixels"]["success"]) == pytest.approx(1 / 6, abs=1e-4)
    pix = named["dp-pix", "100", "pixels"]
    assert (pix["kind"], pix["relation"], pix["dataset"], pix["failures"]) == (
        "pure",
        "m-pixels 16",
        "made",
        "0",
    )
    assert float(pix["low"]) <= float(pix["success"]) <= float(pix["high"])
    assert json.loads(pix["parameters"])["block"] == 8
    measures = read(made / "utility.csv")
    assert {"psnr", "ssim", "ms-ssim"} <= {row["measure"] for row in measures}
    assert [row["releases"] for row in measures if row["measure"] == "psnr"] == ["6"] * 6


def test_the_report_needs_nothing_else_and_holds_no_person(made: Path, data: Path) -> None:
    text = (made / "report.html").read_text(encoding="utf-8")
    assert "Content-Security-Policy" in text
    assert f"<p class=caution>{FEW_PEOPLE.removeprefix('note: ')}.</p>" in text
    assert text.count("<div class=scroll tabindex=0") == text.count("<table"), "each is reached if it is wide"
    cells = re.findall(r"<tr><td>dp-pix<br>.*?</tr>", text)[0]
    assert re.findall(r"data-name='([^']*)'", cells) == ["risk", "95 %", "by", "SSIM", "bound"]
    assert not re.search(r"(?:src|href)=(?!['\"]?data:)", text)
    assert "<script" not in text
    assert "person 0" not in text
    for told in (text, (made / "run.json").read_text(encoding="utf-8")):
        assert "evaluate made --out=results" in told
        assert str(made.parent) not in told, "no path of this machine"
        assert str(data.parent) not in told
    for cell in (made / CELLS).iterdir():
        assert "person 0" not in cell.read_text(encoding="utf-8")
    assert text.count("dp-pix") == 3  # in two tables, and in the command
    assert "$" not in re.sub(r"base64,[^']*'", "", text)


def test_a_second_run_computes_nothing(
    made: Path, data: Path, shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dpveil.bench.report.frontier", lambda _: None)  # drawn in `made`
    before = {path.name: path.stat().st_mtime_ns for path in (made / CELLS).iterdir()}
    tables = {name: (made / name).read_bytes() for name in ("results.csv", "utility.csv")}
    code, out, _ = shell("evaluate", data, "--out", made, *FEW, "--jobs", 1, "--json")
    assert code == 0
    assert json.loads(out)["broken"] == []
    assert before == {path.name: path.stat().st_mtime_ns for path in (made / CELLS).iterdir()}
    assert tables == {name: (made / name).read_bytes() for name in tables}


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("run.json", "{}", "is not that of a run"),
        ("run.json", json.dumps({"format": "dpveil.run/1", "cells": ["../../x"]}), "is not that of a run"),
        ("run.json", json.dumps({"format": "dpveil.run/1", "cells": []}), "was interrupted"),
        (None, None, "cannot be read"),
    ],
)
def test_what_is_no_run_is_refused_in_one_line(
    name: str | None, text: str | None, said: str, shell: Shell, tmp_path: Path
) -> None:
    place = tmp_path / "bad"
    place.mkdir()
    if name is not None and text is not None:
        (place / name).write_text(text, encoding="utf-8")
    code, _, err = shell("evaluate", "--check", place)
    assert code in (1, 4)
    assert said in err
    assert len(err.strip().splitlines()) == 1


def test_wrong_calls_are_refused_before_anything_is_written(data: Path, shell: Shell, tmp_path: Path) -> None:
    out = tmp_path / "new"
    for arguments, said in (
        ((), "DATA is missing"),
        ((data,), "--out is missing"),
        ((data, "--out", out, "--attack", "magic"), "unknown attack 'magic'"),
        ((data, "--out", out, "--method", "magic"), "unknown method 'magic'"),
        ((data, data, "--out", out), "two data sets have the same name"),
        ((tmp_path, "--out", out), "holds no photos: give a folder with a folder for each person"),
        ((tmp_path / "nowhere", "--out", out), "is not a folder"),
        ((data, "--out", out, "--method", "snow", "--epsilon", "1"), "snow takes no ε: leave out --epsilon"),
        ((data, "--out", out, "--method", "fill", "--delta", "0.1"), "fill takes no δ: leave out --delta"),
        (
            (data, "--out", out, "--regions", "mask.png"),
            "is none of evaluate's: whole, faces or a box x,y,w,h",
        ),
        ((data, "--out", out, "--regions", "eyes"), "--regions eyes is none of evaluate's"),
    ):
        code, _, err = shell("evaluate", *arguments)
        assert (code, said in err) == (2, True), err
    assert not out.exists()
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "thesis.txt").write_text("precious")
    code, _, err = shell("evaluate", data, "--out", tmp_path / "own", *FEW)
    assert (code, "holds something else than a run" in err) == (4, True)


def test_a_broken_guarantee_ends_the_run_with_1_and_names_the_method(
    made: Path, data: Path, shell: Shell, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("dpveil.bench.measuring.bound", lambda *_, **__: 0.01)
    monkeypatch.setattr("dpveil.bench.report.frontier", lambda _: None)  # drawn in `made`
    few = ("--method", "dp-pix", "--epsilon", 100, "--attack", "pixels", "--jobs", 1)
    code, _, err = shell("evaluate", data, "--out", tmp_path / "broken", *few)
    assert code == 1
    assert "--photos says how many" not in err  # only a full run takes few of each person
    assert "dp-pix (block 8, epsilon 100, neighbourhood 16) breaks its guarantee" in err
    assert "breaks its guarantee" in (tmp_path / "broken" / "report.html").read_text(encoding="utf-8")
    assert callable(alarm)
    assert callable(page)
    assert load(data).name == "made"


def test_a_run_is_checked_and_a_changed_number_is_noticed(made: Path, shell: Shell) -> None:
    code, out, _ = shell("evaluate", "--check", made, "--json")
    assert (code, json.loads(out)["problems"]) == (0, [])
    results = made / "results.csv"
    kept = results.read_bytes()
    results.write_bytes(kept.replace(b",1.0000,", b",0.0000,", 1))
    code, _, err = shell("evaluate", "--check", made)
    assert (code, "results.csv is not what the cells say" in err) == (1, True)
    results.write_bytes(kept)
