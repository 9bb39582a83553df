"""Releases of version 0.1.0, whose certificates have the schema dpveil.certificate/1, are verified as then.

The code of that version made them, by `make.py` beside them in commit 54562ed; `expected.json` is what its
`verify` said of each.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from dpveil import verify
from dpveil.cli import run
from dpveil.core.certificate import canonical, checksum
from dpveil.release.words import NOT_CHECKED

KEPT = Path(__file__).parent.parent / "fixtures" / "certificates-1"
EXPECTED: dict[str, dict[str, Any]] = json.loads((KEPT / "expected.json").read_text(encoding="utf-8"))
FORGED = {name for name in EXPECTED if name.startswith("forged-")}
WORDS_ALONE = {"forged-scope.png", "forged-warnings.png", "older-version.png"}
"""What differs from an honest certificate in words only, which each version writes anew."""


def test_every_release_is_there_as_it_was():
    releases = {path.name.removesuffix(".certificate.json") for path in KEPT.glob("*.certificate.json")}
    assert releases == set(EXPECTED)
    for name, then in EXPECTED.items():
        text = (KEPT / f"{name}.certificate.json").read_bytes()
        assert hashlib.sha256(text).hexdigest() == then["certificate"], name
        assert json.loads(text)["schema"] == "dpveil.certificate/1", name


def test_they_hold_every_method_and_kind():
    stated = [
        json.loads((KEPT / f"{name}.certificate.json").read_text(encoding="utf-8")) for name in EXPECTED
    ]
    kinds = {one["composition"]["kind"] for one in stated if one["composition"]}
    methods = {one["method"] for one in stated}
    assert kinds == {"pure", "approximate", "zcdp", "metric", "heuristic"}
    assert len(methods - {None, "no-such-method"}) == 15


@pytest.mark.parametrize("name", sorted(EXPECTED.keys() - FORGED))
def test_a_release_of_version_0_1_0_still_verifies(name):
    then, now = EXPECTED[name], verify(KEPT / name)
    assert (now.status, now.problems) == (then["status"], ())
    assert not now.publishable
    assert ("NOT CHECKED" in " ".join(now.notes)) == (now.status == "consistent")


@pytest.mark.parametrize("name", sorted(FORGED - WORDS_ALONE))
def test_a_forged_one_is_still_found_out(name):
    now = verify(KEPT / name)
    assert now.status == "inconsistent"
    assert now.problems
    assert not now.publishable


@pytest.mark.parametrize("name", sorted(WORDS_ALONE))
def test_other_words_of_an_older_version_are_not_checked_and_it_says_so(name):
    now = verify(KEPT / name)
    assert now.status == "consistent"
    [note] = [note for note in now.notes if note.startswith("NOT CHECKED, as 'dpveil 0.")]
    assert "in words" in note
    assert "what found each region" in note
    assert NOT_CHECKED in now.objections


UNPROVEN = {
    "two choices, one region": {"request": ["0,0,12,12", "signs"]},
    "a mask, none masked": {"request": [f"mask sha256:{'a' * 64}"]},
    "found, nothing looked for": {"found": True},
    "numbers that are no box": {"request": ["0,0,12,12,3"]},
    "a face": {"request": ["faces"]},
}
"""What a /1 might say to pass for more than was protected: its regions do not name what found them."""


@pytest.mark.parametrize("change", UNPROVEN)
def test_a_certificate_1_claims_no_more_regions_than_it_has(tmp_path, change):
    name = "older-version.png"
    (tmp_path / name).write_bytes((KEPT / name).read_bytes())
    data = json.loads((KEPT / f"{name}.certificate.json").read_text(encoding="utf-8"))
    changes = dict(UNPROVEN[change])
    data["regions"][0]["found"] = changes.pop("found", data["regions"][0]["found"])
    data |= changes
    data["checksum"] = checksum(data)
    (tmp_path / f"{name}.certificate.json").write_text(canonical(data), encoding="utf-8")
    now = verify(tmp_path / name)
    assert now.status == "inconsistent"
    assert "edited" not in now.problems[0]


def test_no_certificate_1_states_a_distance(tmp_path):
    name = next(n for n in sorted(EXPECTED) if n.startswith("dp-svd"))
    (tmp_path / name).write_bytes((KEPT / name).read_bytes())
    data = json.loads((KEPT / f"{name}.certificate.json").read_text(encoding="utf-8"))
    assert data["composition"]["kind"] == "metric"
    data["composition"]["distance"] = {"name": "singular-values", "settings": {"rank": 3, "steps": 1024}}
    data["checksum"] = checksum(data)
    (tmp_path / f"{name}.certificate.json").write_text(canonical(data), encoding="utf-8")
    assert "schema /1 has no distances" in verify(tmp_path / name).problems[0]


def test_at_least_asks_for_what_a_certificate_1_cannot_show(tmp_path, capsys):
    name = "older-version.png"
    for each in (name, f"{name}.certificate.json"):
        (tmp_path / each).write_bytes((KEPT / each).read_bytes())
    assert run(["verify", str(tmp_path)]) == 0
    assert f"not publishable ({NOT_CHECKED})" in capsys.readouterr().out
    assert run(["verify", str(tmp_path), "--at-least", "weak"]) == 1
    [line] = capsys.readouterr().out.splitlines()
    assert line.startswith("NOT CHECKED   ")
    assert line.endswith(f"it is not publishable ({NOT_CHECKED})")
    assert run(["verify", str(tmp_path), "--at-least", "weak", "--json"]) == 1
    [entry] = json.loads(capsys.readouterr().out)["failed"]
    assert "with the version of dpveil that wrote it" in entry["hint"]


def test_a_weak_promise_is_not_publishable_whatever_its_certificate_leaves_out():
    assert not verify(KEPT / "forged-warnings.png").publishable
    assert not verify(KEPT / "weak-promise.png").publishable
