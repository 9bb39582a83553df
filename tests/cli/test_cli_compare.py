"""`dpveil compare`: every method at every budget on one sheet, measured from the original and said to be."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from dpveil.catalogue import DEFAULT
from dpveil.cli import obfuscate
from dpveil.cli.compare import NOT_PRIVATE
from dpveil.cli.sheet import ALARM
from dpveil.core.registry import METHODS
from dpveil.ledger import Ledger

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
    code, out, err = cli("a.png", "--regions", "whole", "--json")
    assert (code, err) == (0, f"compare.png: {NOT_PRIVATE}\n")
    made = [(each["method"], each["guarantee"]) for each in json.loads(out)["compared"]]
    assert made[0][0] == DEFAULT
    for name in METHODS:
        assert sum(each == name for each, _ in made[1:]) == shown(name, budgets=3)
    sheet = np.asarray(Image.open("compare.png"))
    assert (sheet[:50] == RED).all(axis=2).mean() > 0.5  # the warning stands at the top


def test_a_photo_without_a_face_is_for_the_other_methods(cli):
    code, out, err = cli("a.png", "--epsilon", "1", "--neighbourhood", "4", "--json")
    assert code == 0
    assert "dp-pix" in (methods := [each["method"] for each in json.loads(out)["compared"]])
    assert DEFAULT not in methods
    left = [line for line in err.splitlines() if DEFAULT in line and " left out: " in line]
    assert len(left) == 1  # with all others that need a face
    assert left[0].startswith(f"note: {DEFAULT}, latent")
    assert "if_none" not in err
    assert "face" in left[0]
    assert "--threshold" in left[0] or "install" in left[0]
    code, out, err = cli("a.png", "--regions", "faces", "--method", "dp-pix", "--epsilon", "1", "--force")
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


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["none.png"], 4, "none.png"),
        (["a.png", "--epsilon", "0"], 2, "epsilon"),
        (["a.png", "--neighbourhood", "many"], 2, "a whole number, or all"),
        (["a.png", "--method", "dp-pix", "--regions", "50,50,40,40"], 1, ""),
        (["a.png", "--out", "sheet.jpg"], 2, "end it in .png"),
        (["a.png", "--out", "a.png", "--force"], 4, "the input itself"),
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
    assert "with --force" in err
    assert Path("compare.png").read_text() == "mine"
    assert cli("a.png", "--method", "dp-pix", "--epsilon", "1", "--force")[0] == 0
    with Image.open("compare.png") as sheet:
        assert sheet.format == "PNG"


# `dpveil explain`: the answer in words and as one document, the plot, and one line for every mistake.


SIZE = ["--size", "128x128"]
LINE = np.array([0x0B, 0x7A, 0x75])


# What `obfuscate` says of a price before it is paid, and its dry runs, which pay and write nothing.


URL = "sqlite:///budget.db"
PAID = ("--ledger", URL, "--subject", "album")
CLEAR = ("--method", "dp-pix", "--epsilon", "1", "--block", "16", "--neighbourhood", "1")
NOISY = ("--method", "dp-pix", "--epsilon", "1", "--block", "2", "--neighbourhood", "16")
WARNING = (
    "practically pure noise, of scale 3,060 grey levels where 255 is white; a smaller neighbourhood, or a"
    " larger block or epsilon, means less"
)
FEW = (
    "PROMISED ABOUT ANY 16 PIXELS ALONE: about all of a region, such as a face, the promise is practically"
    " none (see dpveil explain)"
)
CORNER = ("--regions", "0,0,8,8")
Shell = Callable[..., tuple[int, str, str]]


@pytest.fixture
def paying_cli(shell: Shell) -> Shell:
    """Three photos, and a ledger with a budget of 4."""
    Path("in").mkdir()
    for number, name in enumerate(("anna", "bob", "cleo")):
        Image.fromarray(np.full((16, 16 + number, 3), 100, np.uint8)).save(f"in/{name}.png")
    assert shell("ledger", "limit", "album", "--epsilon", 4, "--ledger", URL)[0] == 0
    return shell


def spent() -> float:
    with Ledger(URL) as ledger:
        found: Any = ledger.show("album").spent.to_json()["epsilon"]
    return float(found)


def told(err: str, word: str) -> list[str]:
    return [line for line in err.splitlines() if line.startswith(word)]


def test_the_price_is_said_before_anything_is_paid(
    paying_cli: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also by which budget noise would be none; and a quiet release has no such warning."""
    before: list[float] = []
    real = obfuscate.tell_price
    monkeypatch.setattr(obfuscate, "tell_price", lambda *given: (real(*given), before.append(spent())))
    code, _, err = paying_cli("obfuscate", "in", "--out", "out", *NOISY, *PAID)
    assert (code, before, spent()) == (0, [0], 3)
    assert told(err, "price") == [
        "price: 3 photos, epsilon 3 (m-pixels:16) together; album: limit epsilon 4, left 4"
    ]
    assert told(err, "warning, before anything is paid") == [
        f"warning, before anything is paid: {FEW}",
        f"warning, before anything is paid: whole photo: {WARNING}",
    ]
    code, _, err = paying_cli("obfuscate", "in/bob.png", "--out", "clear", *CLEAR, *PAID)
    assert (code, spent(), "noise" in err) == (0, 4, False)
    assert told(err, "price") == ["price: one photo, epsilon 1 (m-pixels:1); album: limit epsilon 4, left 1"]


@pytest.mark.parametrize(("jobs", "paid"), [("1", ()), ("1", PAID), ("2", PAID)])
def test_a_dry_run_pays_and_writes_nothing(paying_cli: Shell, jobs: str, paid: tuple[str, ...]) -> None:
    before = {path: path.stat().st_mtime_ns for path in Path().rglob("*") if path.suffix == ".png"}
    line = ("obfuscate", "in", "--out", "out", *NOISY, *paid, "--dry-run", "--jobs", jobs)
    code, answer, err = paying_cli(*line)
    assert (code, spent()) == (0, 0)
    assert answer.splitlines() == [
        f"in/{name}.png  1 whole photo: ε = 1 about any 16 pixels (strong)"
        for name in ("anna", "bob", "cleo")
    ]
    assert "would release 3 of 3 photos; a dry run draws, pays and writes nothing" in err
    assert told(err, "warning") == [
        f"warning: {FEW}",
        f"warning: whole photo: {WARNING}",
    ]
    assert {path: path.stat().st_mtime_ns for path in Path().rglob("*") if path.suffix == ".png"} == before
    assert not Path("out").exists()


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_photos_that_a_ledger_will_refuse_are_named_before_any_is_paid(paying_cli: Shell, jobs: str) -> None:
    """They were released with other regions, by whichever subject; who accepts that is told of none."""
    paying_cli("ledger", "limit", "other", "--epsilon", 4, "--ledger", URL)
    paying_cli("obfuscate", "in/bob.png", "--out", "b.png", *CLEAR, *CORNER, *PAID[:3], "other")
    line = ("obfuscate", "in", "--out", "out", *CLEAR, *PAID, "--jobs", jobs)
    price = "price: 2 photos, epsilon 2 (m-pixels:1) together; album: limit epsilon 4, left 4"
    code, answer, err = paying_cli(*line, "--dry-run")
    assert (code, spent(), told(err, "price")) == (3, 0, [price])
    assert [row.split()[0] for row in answer.splitlines()] == ["in/anna.png", "in/cleo.png"]
    assert "in/bob.png: this photo was released with other regions before" in err
    assert "add --other-regions" in err
    assert "would release 2 of 3 photos; 1 failed" in err
    code, _, err = paying_cli(*line, "--dry-run", "--other-regions")
    assert (code, "would release 3 of 3 photos; a dry run" in err) == (0, True)
    code, _, err = paying_cli(*line)
    assert (code, spent(), told(err, "price")) == (3, 2, [price])


def test_a_dry_run_tells_what_the_run_would_fail_of(paying_cli: Shell) -> None:
    Path("in/bob.png").write_bytes(b"no photo")
    code, _, err = paying_cli("obfuscate", "in", "--out", "out", *CLEAR, "--dry-run")
    assert (code, "would release 2 of 3 photos; 1 failed" in err) == (1, True)
    dear = ("--method", "dp-pix", "--epsilon", "2.5", "--block", "16", "--neighbourhood", "1")
    code, _, err = paying_cli("obfuscate", "in", "--out", "out", *dear, *PAID, "--dry-run")
    assert code == 3
    assert err.startswith(
        "dpveil: nothing would be released: album has epsilon 4 left, and 2 photos cost 5 together: "
    )
    assert "\nwould release 0 of 3 photos; 1 failed" in err
    real, _, _ = paying_cli("obfuscate", "in", "--out", "out", *dear, *PAID)
    assert (real, spent()) == (code, 0)
    code, _, err = paying_cli("obfuscate", "in/anna.png", "--out", "out", *dear, *PAID, "--dry-run")
    assert code == 0
    paying_cli("ledger", "limit", "album", "--epsilon", 2, "--ledger", URL)
    code, _, err = paying_cli("obfuscate", "in/anna.png", "--out", "out", *dear, *PAID, "--dry-run")
    assert (code, "album has epsilon 2 left and this release costs 2.5" in err) == (3, True)
    for option in ("--manifest", "--review"):
        code, _, err = paying_cli("obfuscate", "in", "--out", "out", *CLEAR, "--dry-run", option, "a.csv")
        assert (code, "--dry-run writes nothing" in err) == (2, True)


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
