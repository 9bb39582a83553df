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
    assert now.publishable <= then["publishable"] or now.certificate.method == "fill"


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
    assert any("words and warnings not checked" in note for note in now.notes)


def test_a_weak_promise_is_not_publishable_whatever_its_certificate_leaves_out():
    assert not verify(KEPT / "forged-warnings.png").publishable
    assert not verify(KEPT / "weak-promise.png").publishable
