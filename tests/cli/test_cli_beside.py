"""Tables of other benches: what is read of them, what is refused, and where they are shown."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dpveil.bench import beside
from dpveil.errors import UsageError
from people_made import folder

HEAD = "method,P,Q,U1,U2,U3,balanced"
GOOD = (
    f"# Generated: 2026-01-01T00:00:00\n# Package: hifd==0.1.0\n# Seed: 42\n{HEAD}\n"
    "CIAGAN v2 (k=5),0.25,3.0,0.71,,0.875,1.5e-2\nSimSwap,1,3.5,0.62,0.8,0.75,0.07\n"
)
"""A table as hifd writes composite.csv."""
FEW = ("--method", "fill", "--attack", "pixels", "--jobs", "1")
Shell = Callable[..., tuple[int, str, str]]


def written(path: Path, text: str | bytes = GOOD) -> Path:
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def body(*lines: str, head: str = HEAD) -> str:
    return "\n".join((head, *lines)) + "\n"


def test_a_table_is_read_with_its_source_and_nothing_is_made_of_gaps(tmp_path: Path) -> None:
    (found,) = beside.read_all([written(tmp_path / "composite.csv")])
    assert found == {
        "file": "composite.csv",
        "sha256": hashlib.sha256(GOOD.encode()).hexdigest(),
        "package": "hifd==0.1.0",
        "computed": "not computed here",
        "columns": ["P", "Q", "U1", "U2", "U3", "balanced"],
        "rows": [
            {
                "method": "CIAGAN v2 (k=5)",
                "P": 0.25,
                "Q": 3.0,
                "U1": 0.71,
                "U2": None,
                "U3": 0.875,
                "balanced": 0.015,
            },
            {"method": "SimSwap", "P": 1.0, "Q": 3.5, "U1": 0.62, "U2": 0.8, "U3": 0.75, "balanced": 0.07},
        ],
    }
    assert beside.tables_of(json.loads(json.dumps([found]))) == [found]


ROW = "a,1,1,1,1,1,1"
REFUSED = {
    "empty": "",
    "comments alone": "# Package: hifd==0.1.0\n",
    "no rows": body(),
    "other tables": "method,sub_score,value\na,age,1\n",
    "another first column": body(ROW, head="name,P,Q,U1,U2,U3,balanced"),
    "a comment in the middle": body("#" + ROW, ROW),
    "a column twice": body(ROW, head="method,P,P,U1,U2,U3,balanced"),
    "a method column twice": body(ROW, head="method,P,method,U1,U2,U3,balanced"),
    "HTML for a column": body(ROW, head="method,P,Q,U1,U2,U3,<b>x</b>"),
    "a formula for a column": body(ROW, head="method,P,Q,U1,U2,U3,=1+1"),
    "a row that is short": body("a,1,1"),
    "a row that is long": body(ROW + ",1"),
    "a method twice": body(ROW, ROW),
    "no method": body(",1,1,1,1,1,1"),
    "a method with a break": body('"a\nb",1,1,1,1,1,1'),
    "a long method": body("a" * 65 + ",1,1,1,1,1,1"),
    "HTML": body("a<script>alert(1)</script>,1,1,1,1,1,1"),
    "a quote": body("\"a' onload='x\",1,1,1,1,1,1"),
    **{
        f"a formula by {one}": body(f"{one}a,1,1,1,1,1,1")
        for one in ("=", "+", "-", "@", "\t", "'=", "|", "%")
    },
    **{
        f"the number {one}": body(f"a,{one},1,1,1,1,1")
        for one in ("nan", "inf", "-inf", "1e999", "1_0", "0x1", "=1", "٣", " 1", "1" * 40, "x")
    },
    "not UTF-8": b"\xff\xfe" + body(ROW).encode(),
    "a zero byte": body("a\0,1,1,1,1,1,1"),
    "an open quote": body('"a,1,1,1,1,1,1'),
    "many methods": body(*(f"a{one},1,1,1,1,1,1" for one in range(101))),
    "many columns": body("a" + ",1" * 33, head="method,P" + "".join(f",x{one}" for one in range(32))),
    "a large file": GOOD + "#" * (1 << 20),
}


@pytest.mark.parametrize("text", REFUSED.values(), ids=REFUSED)
def test_anything_else_is_refused_in_one_line_that_names_the_file(text: str | bytes, tmp_path: Path) -> None:
    path = written(tmp_path / "scores.csv", text)
    with pytest.raises(UsageError, match=r"scores\.csv") as caught:
        beside.read_all([path])
    assert caught.value.exit_code == 2
    assert len(str(caught.value).splitlines()) == 1
    assert len(str(caught.value)) < len(str(path)) + 300


def test_at_the_limits_a_table_is_read(tmp_path: Path) -> None:
    head = "method,P" + "".join(f",x{one}" for one in range(31))
    text = body(*("a" * 60 + f"{one}" + ",1" * 32 for one in range(100)), head=head)
    (found,) = beside.read_all([written(tmp_path / "x.csv", text)])
    assert len(found["rows"]) == 100  # type: ignore[index, arg-type, call-overload]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")
def test_no_link_pipe_or_folder_is_opened(tmp_path: Path) -> None:
    written(tmp_path / "real.csv")
    (tmp_path / "link.csv").symlink_to("real.csv")
    os.mkfifo(tmp_path / "pipe.csv")
    for name in ("link.csv", "pipe.csv", ".", "nowhere.csv"):
        with pytest.raises(UsageError, match="give composite"):
            beside.read_all([tmp_path / name])
    with pytest.raises(UsageError, match="more than 10"):
        beside.read_all([tmp_path / "real.csv"] * 11)


@pytest.mark.parametrize("name", ["a\nb.csv", "a\udcff.csv", "a\u202e.csv"])
def test_names_that_cannot_be_shown_are_refused_in_one_line(name: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be shown") as caught:
        beside.read_all([tmp_path / name])
    assert str(caught.value).isprintable()


def test_a_command_line_that_is_no_text_can_be_written(monkeypatch: pytest.MonkeyPatch) -> None:
    from dpveil.cli.bare import command

    monkeypatch.setattr("sys.argv", ["dpveil", "evaluate", "--out", "/there/a\udcff"])
    assert command().encode("utf-8") == b"dpveil evaluate --out 'a?'"


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return folder(tmp_path_factory.mktemp("data") / "made", people=3, photos=3)


@pytest.fixture(scope="module")
def made(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run beside two tables, one of which has a file name that is HTML."""
    from dpveil.cli import run

    place = tmp_path_factory.mktemp("out")
    named = written(place / "<b>composite&.csv", body("Guaranteed,1,1,1,1,1,1"))
    tables = ("--beside", str(written(place / "composite.csv")), "--beside", str(named))
    assert run(["evaluate", str(data), "--out", str(place / "results"), *FEW, *tables]) == 0
    return place / "results"


def test_rows_are_shown_as_not_computed_here_and_nowhere_else(made: Path) -> None:
    document = json.loads((made / "results.json").read_text(encoding="utf-8"))
    assert [one["file"] for one in document["beside"]] == ["composite.csv", "<b>composite&.csv"]
    assert {one["computed"] for one in document["beside"]} == {"not computed here"}
    rest = json.dumps({name: value for name, value in document.items() if name != "beside"})
    report = (made / "report.html").read_text(encoding="utf-8")
    before, after = report.split("<h2>Scores of other benches</h2>")
    own, rest_of_page = after.split("<h2>How it was measured</h2>")
    for name in ("CIAGAN", "SimSwap", "Guaranteed"):
        assert own.count(name) == 1
        assert name not in before + rest_of_page + rest
        assert name not in (made / "results.csv").read_text(encoding="utf-8")
        assert name not in (made / "utility.csv").read_text(encoding="utf-8")
    assert own.count("<span class=small>not computed here</span>") == 3
    assert "hifd==0.1.0, SHA-256 " + hashlib.sha256(GOOD.encode()).hexdigest()[:12] in own
    assert "&lt;b&gt;composite&amp;.csv" in own
    assert "<b>" not in report


def test_what_is_shown_is_escaped_even_if_nobody_checked_it() -> None:
    table: Any = {
        "file": "<i>",
        "sha256": "<i>",
        "package": "<i>",
        "columns": ["<i>"],
        "rows": [{"method": "<i>", "<i>": 1.0}],
    }
    shown = beside.section({"beside": [table]})
    assert ("<i>" in shown, shown.count("&lt;i&gt;")) == (False, 5)


def test_a_check_makes_the_report_again_and_notices_scores_that_were_changed(
    made: Path, shell: Shell, tmp_path: Path
) -> None:
    code, _, err = shell("evaluate", "--check", made)
    assert (code, err) == (0, "")
    for name in ("results.json", "report.html"):
        other = tmp_path / name / "run"
        shutil.copytree(made, other)
        text = (other / name).read_text(encoding="utf-8")
        assert "0.875" in text
        (other / name).write_text(text.replace("0.875", "0.999"), encoding="utf-8")
        code, _, err = shell("evaluate", "--check", other)
        assert (code, name in err) == (1, True)


def _table(found: Any) -> Any:
    return found["beside"][0]


FORGED: dict[str, Callable[[Any], Any]] = {
    "no list": lambda found: found.update(beside="x"),
    "many tables": lambda found: found.update(beside=found["beside"] * 6),
    "no table": lambda found: found.update(beside=[1]),
    "more": lambda found: _table(found).update(more=1),
    "HTML": lambda found: _table(found)["rows"][0].update(method="<script>"),
    "no text": lambda found: _table(found)["rows"][0].update(method=["a"]),
    "computed": lambda found: _table(found).update(computed="computed here"),
    "sha256": lambda found: _table(found).update(sha256="<b>"),
    "package": lambda found: _table(found).update(package="<b>"),
    "file": lambda found: _table(found).update(file="a\nb"),
    "not finite": lambda found: _table(found)["rows"][0].update(P=float("nan")),
    "a text": lambda found: _table(found)["rows"][0].update(P="<b>"),
    "a large integer": lambda found: _table(found)["rows"][0].update(P=10**400),
    "a truth": lambda found: _table(found)["rows"][0].update(P=True),
    "columns": lambda found: _table(found)["columns"].append(["P"]),
    "rows": lambda found: _table(found).update(rows={"a": 1}),
}


@pytest.mark.parametrize("forge", FORGED.values(), ids=FORGED)
def test_forged_tables_of_a_run_are_refused_in_one_line(
    forge: Callable[[Any], Any], made: Path, shell: Shell, tmp_path: Path
) -> None:
    other = tmp_path / "run"
    shutil.copytree(made, other)
    found = json.loads((other / "run.json").read_text(encoding="utf-8"))
    forge(found)
    (other / "run.json").write_text(json.dumps(found), encoding="utf-8")
    code, _, err = shell("evaluate", "--check", other)
    assert (code, "is not that of a run" in err, len(err.strip().splitlines())) == (4, True, 1), err


def test_a_bad_file_ends_the_command_with_2_before_anything_is_written(
    data: Path, shell: Shell, tmp_path: Path
) -> None:
    bad = written(tmp_path / "bad.csv", body("=1,1,1,1,1,1,1"))
    code, _, err = shell("evaluate", data, "--out", tmp_path / "new", *FEW, "--beside", bad)
    assert (code, "bad.csv is no table of scores" in err, len(err.strip().splitlines())) == (2, True, 1), err
    assert not (tmp_path / "new").exists()


def test_a_run_without_tables_says_nothing_of_them(data: Path, shell: Shell, tmp_path: Path) -> None:
    assert shell("evaluate", data, "--out", tmp_path / "plain", *FEW)[0] == 0
    for name in ("run.json", "results.json", "report.html"):
        text = (tmp_path / "plain" / name).read_text(encoding="utf-8")
        assert 'beside"' not in text
        assert "Scores of other benches" not in text
