"""Certificates in other forms: nothing is exported that does not verify."""

import json
import os

import numpy as np
import pytest
from PIL import Image

from dpveil.release.saving import certificate_path


@pytest.fixture
def folder(tmp_path, shell):
    Image.fromarray(np.full((16, 16, 3), 90, np.uint8)).save(tmp_path / "a.png")
    for method, out in (("dp-pix", "noise.png"), ("blur", "blur.png")):
        budget = ("--epsilon", "1", "--block", "8") if method == "dp-pix" else ("--sigma", "2")
        assert shell("obfuscate", "a.png", "--out", out, "--method", method, *budget)[0] == 0
    return tmp_path


def test_a_record_is_the_answer_and_what_it_lacks_a_note(folder, shell):
    for name in ("noise.png", "noise.png.certificate.json"):
        code, answer, err = shell("certificate", "export", name, "--registry")
        record = json.loads(answer)
        assert (code, record["deployment"]["privacy_loss"]["privacy_parameters"]) == (0, {"epsilon": 1})
        assert err.startswith("to fill in: url_slug, ")
        assert str(folder) not in answer


@pytest.mark.parametrize("name", ["a.png", "missing.png", "blur.png", "edited.png", "pipe"])
def test_only_sound_releases_with_a_guarantee_are_exported(folder, shell, name):
    os.mkfifo(folder / "pipe")
    (folder / "edited.png").write_bytes((folder / "noise.png").read_bytes() + b"x")
    text = certificate_path(folder / "noise.png").read_text(encoding="utf-8")
    certificate_path(folder / "edited.png").write_text(text, encoding="utf-8")
    code, answer, err = shell("certificate", "export", name, "--registry")
    assert (code, answer, err.count("\n")) == (1, "", 1)


def test_a_form_has_to_be_named(folder, shell):
    said = "dpveil: there is no form to write it in: add --registry\n"
    assert shell("certificate", "export", "noise.png") == (2, "", said)


def test_what_is_not_publishable_is_said(folder, shell):
    line = (
        "obfuscate",
        "a.png",
        "--out",
        "seeded.png",
        "--method",
        "dp-pix",
        "--epsilon",
        "1",
        "--block",
        "8",
    )
    assert shell(*line, "--seed", "1")[0] == 0
    code, _, err = shell("certificate", "export", "seeded.png", "--registry")
    assert (code, "warning: not publishable: seeded bits" in err) == (0, True)


def test_who_signed_it_is_asked_and_said(folder, shell):
    for name in ("own.key", "other.key"):
        assert shell("key", "new", name)[0] == 0
    line = ("a.png", "--method", "dp-pix", "--epsilon", "1", "--block", "8")
    assert shell("obfuscate", *line, "--out", "signed.png", "--sign", "own.key")[0] == 0
    export = ("certificate", "export", "--registry")
    code, _, err = shell(*export, "signed.png")
    assert (code, err.splitlines()[-1]) == (0, "without --trust this finds inconsistency, not forgery")
    code, answer, err = shell(*export, "signed.png", "--trust", "own.key.pub")
    assert (code, err.splitlines()[-1].startswith("trusted: own.key")) == (0, True)
    assert json.loads(answer)["deployment"]
    for name, why in (("signed.png", "which is not a trusted key"), ("noise.png", "it is not signed")):
        code, answer, err = shell(*export, name, "--trust", "other.key.pub")
        assert (code, answer, err.count("\n"), why in err) == (1, "", 1, True)
