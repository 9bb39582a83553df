"""Commands without a method: every face becomes one of nobody, and two lines say what that is worth."""

import re
from importlib.util import find_spec

import numpy as np
import pytest
from PIL import Image
from skimage import data

import dpveil
from dpveil.assets import store
from dpveil.regions.detectors.centerface import CenterFace

pytestmark = pytest.mark.skipif(
    not CenterFace.installed() or not find_spec(store.PACKAGE) or not find_spec("dlib"),
    reason="needs dpveil install faces, and dpveil-faces",
)
NUMBER = re.compile(r"(\d+)-DP")


@pytest.fixture
def photo(tmp_path):
    """Return a photo of two people, and one of nobody beside it."""
    one = data.astronaut()[:264, 92:356]
    Image.fromarray(np.concatenate([one, one[:, ::-1]], axis=1)).save(tmp_path / "two.png")
    Image.fromarray(data.coffee()).save(tmp_path / "nobody.png")
    return tmp_path / "two.png"


def test_every_face_becomes_one_of_nobody_and_two_lines_say_what_that_is_worth(shell, photo):
    code, out, err = shell("obfuscate", photo, "--out", "private.png")
    assert (code, out) == (
        0,
        f"{photo} -> private.png  2 faces at 0-DP each, together 0-DP (strong), any-image\n",
    )
    stays, unseen, *_, promised, keep = err.splitlines()
    assert "hair, ears, jaw and neck stay as they are, and may tell who it is" in stays
    assert unseen == "faces below 24 pixels of height were not looked for"  # for information, no warning
    assert promised.startswith(
        "promised: each new face was chosen without looking at the old one, 0-DP (strong)"
    )
    assert "in the clear: all that was not replaced, including faces that were not found" in promised
    assert [int(number) for number in NUMBER.findall(keep)] == [2, 4]
    certificate = dpveil.verify("private.png", at_least="strong").certificate
    assert all(terms in err for terms in certificate.terms.values())
    assert certificate.parameters["gallery"] in certificate.terms
    assert (certificate.method, certificate.parameters["attributes"], len(certificate.regions)) == (
        "attributes",
        "none",
        2,
    )


@pytest.mark.parametrize("more", [("--if-none", "whole"), ("--if-none", "copy"), ("--seed", "1")])
def test_the_default_is_promised_only_where_it_holds(shell, photo, more):
    chosen = photo if more[0] == "--seed" else photo.with_name("nobody.png")
    code, _, err = shell("obfuscate", chosen, "--out", "private.png", *more)
    assert (code, "each new face" in err) == (0, False)
    assert ("promised: 0-DP (strong), any-image" in err) == (more[1] == "whole")


def test_a_budget_goes_with_what_is_kept(shell, photo):
    code, out, _ = shell("obfuscate", photo, "--out", "a.png", "--attributes", "gender,age", "--epsilon", "2")
    assert (code, "at 2-DP each" in out) == (0, True)
    code, _, err = shell("obfuscate", photo, "--out", "b.png", "--epsilon", "2")
    assert (code, err.startswith("dpveil: --epsilon 2 is a budget, and nothing is kept: ")) == (2, True)
    err = shell("obfuscate", photo, "--out", "b.png", "--attributes", "gender,age")[2]
    assert "--epsilon is missing: give a total for what is kept, or each its own: gender=1,age=1" in err
    meant = {"30": "30-44", "59": "45-59", "90": "75+", "16": "18-29", "4": "", "30-44": ""}
    for age, band in meant.items():
        code, _, err = shell("explain", "--attributes", f"age={age}")
        told = err.partition("to show that age, write age=")[2]
        assert (code, told.partition(";")[0]) == (2 if band else 0, band)
    err = shell("explain", "--attributes", "age=25-30")[2]
    assert "age = '25-30' is neither a budget nor a value of this attribute: values are 18-29" in err
    assert shell("explain", "--attributes", "age", "--epsilon", "30")[0] == 0  # no age can be meant


def test_without_dpveil_faces_heads_are_shown_and_what_is_kept_needs_it(shell, photo, monkeypatch):
    monkeypatch.setattr(store, "PACKAGE", "no_such_package_at_all")
    code, out, err = shell("obfuscate", photo, "--out", "private.png")
    assert (code, "0-DP" in out) == (0, True)
    assert "promised: each new face was chosen" in err
    code, _, err = shell("explain", photo, "--attributes", "gender=1")
    assert (code, "pip install packages/dpveil-faces" in err) == (2, True)
