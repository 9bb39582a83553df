"""`dpveil compare`: every method at every budget on one sheet, measured from the original and said to be."""

import json
import math
import re
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from dpveil.catalogue import DEFAULT
from dpveil.cli.compare import NOT_PRIVATE, USUAL, Choice, lines_of
from dpveil.cli.sheet import ALARM
from dpveil.core.registry import METHODS
from dpveil.mechanisms.pixel import DPPix, DPPixGaussian

RED = np.array(ALARM)


def photo(name, shape, step=7):
    ramp = (np.arange(math.prod(shape)) * step % 251).astype(np.uint8).reshape(shape)
    Image.fromarray(ramp[:, :, 0] if shape[2] == 1 else ramp).save(name)


def shown(name, budgets):
    """How often a method is on the sheet: not again where it lacks what is varied."""
    fields = METHODS[name].__dataclass_fields__
    return (2 if "neighbourhood" in fields else 1) * (budgets if "epsilon" in fields else 1)


@pytest.fixture
def cli(shell):
    photo("a.png", (40, 60, 3))

    return partial(shell, "compare")


def test_every_method_and_budget_is_on_the_sheet(cli):
    code, out, err = cli("a.png", "--regions", "whole")
    assert code == 0
    columns, *told = out.splitlines()
    assert columns.split("  ", 1)[0] == "METHOD"
    assert re.match(f"{DEFAULT} +{USUAL} +0-DP, any-image: strong", told[0])
    for name, words in (("SETTINGS", "epsilon 1"), ("PROMISE", "1-DP"), ("NOISE", "noise scale")):
        assert told[1].index(words) == columns.index(name)
    assert told[1].index("SSIM") == columns.index("NEARNESS TO THE ORIGINAL")
    assert len(told) == 2 + sum(shown(name, budgets=3) for name in METHODS)
    assert told[-1] == "wrote compare.png"
    for name in METHODS:
        assert sum(line.startswith(name + " ") for line in told[1:-1]) == shown(name, budgets=3)
    for words in ("1-DP, any-image", "20-DP, m-pixels (m = 256)", "(5, 1e-06)-DP, any-image"):
        assert sum(words in line for line in told) >= 1
    for line in told:
        assert ("neighbourhood all" in line) <= ("any-image" in line or "no formal guarantee" in line)
    assert sum("neighbourhood all" in line for line in told if line.startswith("dp-pix ")) == 3
    assert all("SSIM" in line and "PSNR" in line for line in told[:-1])
    assert all("noise" in line or "a face drawn anew" in line for line in told[:-1])
    assert err == f"compare.png: {NOT_PRIVATE}\n"
    sheet = np.asarray(Image.open("compare.png"))
    assert (sheet[:50] == RED).all(axis=2).mean() > 0.5  # the warning stands at the top


def test_a_photo_without_a_face_is_for_the_other_methods(cli):
    code, out, err = cli("a.png", "--epsilon", "1", "--gallery", "heads", "--neighbourhood", "4")
    assert code == 0
    assert "dp-pix " in out
    assert DEFAULT not in out
    left = [line for line in err.splitlines() if DEFAULT in line and " left out: " in line]
    assert len(left) == 1  # with all others that need a face
    assert left[0].startswith(f"note: {DEFAULT}, latent")
    assert "if_none" not in err
    assert "face" in left[0]
    assert "--threshold" in left[0] or "install" in left[0]
    assert "note: gallery is left out: --gallery heads is neither" in err  # as it was typed
    code, out, err = cli("a.png", "--regions", "faces", "--epsilon", "1", "--force")
    assert (code, out) == (1, "") if "install" not in left[0] else (code, out)
    assert "no face was found" in err or "install" in left[0]


def test_json_holds_each_release_with_its_measures_and_the_warning(cli):
    arguments = ("--method", "dp-pix", "--epsilon", "2", "--neighbourhood", "16", "--block", "8")
    code, out, _ = cli("a.png", "--regions", "4,4,30,20", *arguments, "--json")
    document = json.loads(out)
    assert code == 0
    assert "NOT FOR PUBLICATION" in document["warning"]
    assert document["sheet"] == "compare.png"
    assert document["regions"] == [{"label": "box", "box": [4, 4, 30, 20]}]
    (made,) = document["compared"]
    assert made["method"] == "dp-pix"
    assert made["parameters"]["neighbourhood"] == 16
    assert made["guarantee"]["kind"] == "pure"
    assert made["guarantee"]["epsilon"] == 2
    assert made["noise_scale"] == 255 * 16 * 3 / 2 / 64
    assert -1 <= made["ssim"] < 1
    assert 0 < made["psnr"] < 60


def test_measures_are_taken_within_the_regions_only(cli):
    """A silent release changes nothing in flat blocks; noise in one box leaves the measures of another."""
    Image.fromarray(np.full((40, 60, 3), 100, np.uint8)).save("flat.png")
    budget = ("--method", "dp-pix", "--neighbourhood", "1", "--epsilon")
    silent = json.loads(cli("flat.png", "--regions", "0,0,20,20", *budget, 10**6, "--json")[1])["compared"][0]
    assert (silent["ssim"], silent["psnr"]) == (1.0, None)
    loud = [
        json.loads(cli("flat.png", "--regions", box, *budget, "0.001", "--json", "--force")[1])["compared"][0]
        for box in ("0,0,20,20", "whole")
    ]
    assert loud[0]["psnr"] < 12  # over the whole photo it would be nine times smaller an error: 9.5 dB more
    assert loud[1]["psnr"] < 12
    _, out, _ = cli("flat.png", "--regions", "0,0,20,20", *budget, 10**6, "--force")
    assert "SSIM 1.000  PSNR infinite" in out


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["none.png"], 4, "none.png"),
        (["a.png", "--epsilon", "0"], 2, "epsilon"),
        (["a.png", "--neighbourhood", "many"], 2, "a whole number, or all"),
        (["a.png", "--method", "dp-pix", "--regions", "50,50,40,40"], 1, ""),
        (["a.png", "--out", "sheet.jpg"], 2, "end it in .png"),
        (["a.png", "--out", "a.png", "--force"], 4, "the photo itself"),
    ],
)
def test_mistakes_are_one_line_and_one_document(cli, arguments, code, words):
    got, out, err = cli(*arguments)
    assert (got, out) == (code, "")
    assert words in err
    assert len(err.splitlines()) == 1
    got, out, _ = cli(*arguments, "--json")
    assert got == code
    assert json.loads(out)["compared"] == []
    assert not Path("compare.png").exists()


def test_a_sheet_that_exists_is_replaced_only_with_force(cli):
    Path("compare.png").write_text("mine")
    code, _, err = cli("a.png", "--method", "dp-pix", "--epsilon", "1")
    assert code == 4
    assert "use --force" in err
    assert Path("compare.png").read_text() == "mine"
    assert cli("a.png", "--method", "dp-pix", "--epsilon", "1", "--force")[0] == 0
    with Image.open("compare.png") as sheet:
        assert sheet.format == "PNG"


def choice(**changes):
    usual = {"names": tuple(METHODS), "budgets": ("1", "5"), "neighbourhoods": (256, None), "delta": None}
    return Choice(**{**usual, "block": 16, **changes})


def test_delta_goes_to_those_that_need_it_or_to_all_where_chosen():
    names = ("dp-pix", "dp-pix-gaussian")
    made, notes = lines_of(choice(names=names), every=True)
    assert notes == []
    assert [(line.name, line.neighbourhood) for line in made] == [
        (DEFAULT, None),
        *((name, m) for name in names for m in (256, None)),
    ]
    assert made[1].methods[0] == DPPix(epsilon=1, block=16, neighbourhood=256)
    assert made[4].methods[1] == DPPixGaussian(epsilon=5, delta="1e-6", block=16)
    chosen, _ = lines_of(choice(names=names, delta="1e-9"), every=True)
    assert chosen[1].methods[0] == DPPix(epsilon=1, delta="1e-9", block=16, neighbourhood=256)
    assert chosen[4].methods[1] == DPPixGaussian(epsilon=5, delta="1e-9", block=16)
