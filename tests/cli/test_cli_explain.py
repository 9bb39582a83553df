"""`dpveil explain`: the answer in words and as one document, the plot, and one line for every mistake."""

import json
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

USUAL = ["--method", "dp-pix", "--epsilon", "1", "--block", "16", "--neighbourhood", "256"]
SIZE = ["--size", "128x128"]
LINE = np.array([0x0B, 0x7A, 0x75])


@pytest.fixture
def cli(shell):
    return partial(shell, "explain")


def test_the_answer_in_words(cli):
    code, out, err = cli(*USUAL, *SIZE)
    assert (code, err) == (0, "")
    assert out.splitlines()[0] == "dp-pix on 128×128 pixels: 1-DP, m-pixels (m = 256)"
    for words in (
        "differ in at most 256 pixels",
        "Strong: ",
        "noise scale   765 grey levels",
        "factor of at most 2.719",
        "73.11 %",
        "23.2 %",
        "(guessing: 10 %)",
        "strong        needs epsilon 1.09",
        "in the clear  everything outside the region",
    ):
        assert words in out
    assert "practically none (epsilon 64)" in out  # what group privacy leaves of 64 times as many pixels


def test_json_is_one_document_and_grey_costs_a_third(cli):
    code, out, err = cli(*USUAL, *SIZE, "--json")
    assert (code, err) == (0, "")
    document = json.loads(out)
    assert document["noise_scale"] == 765
    assert document["success_bound"]["2"] == pytest.approx(0.731, abs=1e-3)
    assert document["success_bound"]["10"] == pytest.approx(0.232, abs=1e-3)
    grey = json.loads(cli(*USUAL, *SIZE, "--channels", "1", "--json")[1])
    assert grey["noise_scale"] == 255


def test_the_plot_shows_the_bound(cli):
    code, out, _ = cli(*USUAL, *SIZE, "--plot", "curve.png", "--json")
    assert code == 0
    json.loads(out)
    with Image.open("curve.png") as plot:
        assert min(plot.size) >= 600
        assert not plot.info.get("Software")
        pixels = np.asarray(plot.convert("RGB")).astype(int)
    on_line = (np.abs(pixels - LINE).sum(axis=2) < 12).sum()
    assert on_line > 1000
    Path("curve.png").write_bytes(b"old")
    assert cli(*USUAL, *SIZE, "--plot", "curve.png")[0] == 4
    assert Path("curve.png").read_bytes() == b"old"
    assert cli(*USUAL, *SIZE, "--plot", "curve.png", "--force")[0] == 0
    assert Path("curve.png").read_bytes()[:4] == b"\x89PNG"


def test_a_photo_is_explained_for_the_faces_that_are_chosen(cli):
    Image.fromarray(np.full((40, 60, 3), 99, np.uint8)).save("a.png")
    assert cli("a.png", *USUAL, "--only", "1")[2] == (
        "dpveil: --only is only for faces: add --regions faces, or leave it out\n"
    )
    assert "--except 0 is out of range" in cli("a.png", *USUAL, "--regions", "faces", "--except", "0")[2]
    assert "--threshold is for a photo" in cli(*USUAL, *SIZE, "--threshold", "0.5")[2]
    code, out, err = cli("a.png", *USUAL[:-1], "16", "--regions", "2,2,30,30")
    assert (code, err.count("PROMISED ABOUT ANY 16 PIXELS ALONE")) == (0, 1)
    assert "about all of them together the promise is practically none" in out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (USUAL, "--size is missing: width x height in pixels"),
        ([*USUAL, "--size", "0x128"], "is not a size"),
        ([*USUAL, "--size", "-1x5"], "is not a size"),
        ([*USUAL, "--size", "9999999999x5"], "is not a size"),
        ([*USUAL, *SIZE, "--channels", "2"], "--channels 2 is neither 1 nor 3"),
        (["--method", "dp-pixel", "--epsilon", "1", *SIZE], "did you mean 'dp-pix'?"),
        (["--method", "dp-pix", *SIZE], "there is no default"),
        (
            ["--method", "dp-pix-gaussian", "--epsilon", "1", *SIZE],
            "give --rho alone, or --epsilon and --delta",
        ),
        ([*USUAL, *SIZE, "--plot", "curve"], "unknown plot format"),
    ],
)
def test_mistakes_are_one_line_and_one_document(cli, arguments, words):
    code, out, err = cli(*arguments)
    assert (code, out) == (2, "")
    assert words in err
    assert len(err.splitlines()) == 1
    code, out, _ = cli(*arguments, "--json")
    assert code == 2
    assert json.loads(out)["error"]
