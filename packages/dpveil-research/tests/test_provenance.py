"""Every kept result says which command and which code made it."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from dpveil_research.__main__ import main
from dpveil_research.experiments import COMPUTED, NAMES
from dpveil_research.provenance import FILE, code_digest, provenance

KEPT = Path(__file__).parents[3] / "reproduction"


def test_a_run_writes_where_its_results_come_from(tmp_path: Path) -> None:
    assert main(["half-infinite", "--out", str(tmp_path)]) == 0
    told = json.loads((tmp_path / "half-infinite" / FILE).read_text(encoding="utf-8"))
    assert told["command"] == "python -m dpveil_research half-infinite --out reproduction"
    assert told["code_sha256"] == code_digest()
    assert told["processor_seconds"] > 0
    assert str(tmp_path) not in json.dumps(told), "no path of the machine"


def test_the_command_says_how_many_photos_were_taken() -> None:
    told = json.loads(provenance("faceidp", 12, on_data=True, seconds=1))
    assert told["command"] == "python -m dpveil_research faceidp --data DATA --out reproduction --count 12"


@pytest.mark.parametrize("name", sorted(NAMES))
def test_kept_results_say_where_they_come_from(name: str) -> None:
    told = json.loads((KEPT / name / FILE).read_text(encoding="utf-8"))
    assert told["experiment"] == name
    assert told["command"].startswith(f"python -m dpveil_research {name} ")
    assert ("--data DATA" in told["command"]) == (name not in COMPUTED)
    assert re.fullmatch(r"[0-9a-f]{40}", told["commit"])
    assert re.fullmatch(r"[0-9a-f]{64}", told["code_sha256"])
    assert set(told["libraries"]) >= {"numpy", "scipy", "opencv-python-headless"}


@pytest.mark.parametrize("name", sorted(set(COMPUTED) - {"croft-thesis-5", "faceidp-faces"}))
def test_tables_that_need_no_data_come_out_as_they_are_kept(name: str, tmp_path: Path) -> None:
    """Those that need data, or minutes, are compared by a slice where the data are (see the claims)."""
    assert main([name, "--out", str(tmp_path)]) == 0
    tables = sorted((KEPT / name).glob("*.csv"))
    assert tables
    for table in tables:
        assert (tmp_path / name / table.name).read_bytes() == table.read_bytes()
