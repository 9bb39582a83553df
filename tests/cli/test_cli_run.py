"""The shell itself: one line per mistake, one JSON document, an example in every help."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import typer.main
from PIL import Image

from command_lines import last
from dpveil.cli import EMPTY, app, exits, obfuscate
from dpveil.cli.options import PRESETS, with_preset
from dpveil.io.reading import MAX_PIXELS

GOOD = ["--method", "dp-pix", "--epsilon", "2", "--block", "8", "--neighbourhood", "16"]
FEW = (
    "PROMISED ABOUT ANY 16 PIXELS ALONE: about all of a region, such as a face, the promise is"
    " practically none (see dpveil explain)"
)
HEAVY = {
    "numpy",
    "cv2",
    "numba",
    "scipy",
    "dp_accounting",
    "PIL",
    "cryptography",
    "skimage",
    "fastapi",
    "uvicorn",
}


@pytest.fixture
def cli(shell):
    Path("in").mkdir()
    Image.fromarray((np.arange(20 * 24 * 3) % 251).astype(np.uint8).reshape(20, 24, 3)).save("in/a.png")

    return shell


@pytest.mark.parametrize("name", ["audit", "train"])
def test_a_command_of_a_package_that_is_not_installed_names_it(cli, name, monkeypatch):
    monkeypatch.setattr("dpveil.cli.command.entry_points", lambda **_: ())
    monkeypatch.setattr("dpveil.cli._program", lambda: typer.main.get_command(app))
    code, out, err = cli(name, "--json")
    assert (code, err.count("\n")) == (2, 1)
    assert f"pip install dpveil-{name}" in err
    assert json.loads(out)["hint"] == f"pip install dpveil-{name}"
    assert cli("--help")[0] == 0


def test_help_and_version_import_nothing_heavy():
    lines = [["--help"], ["--version"], ["key", "--help"]]
    code = (
        f"import sys; from dpveil.cli import run; codes = [run(line) for line in {lines}]\n"
        "print(max(codes), *{m.split('.')[0] for m in sys.modules}, file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    exit_code, *loaded = done.stderr.split()
    assert exit_code == "0"
    assert not HEAVY & set(loaded)


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (("--delta", "0.1"), "and no method is named: see"),
        (("--method", "dppix"), "unknown method 'dppix': did you mean 'dp-pix'?"),
        ((*GOOD, "--epsilon", "0"), "--epsilon 0 is not above 0"),
        ((*GOOD, "--block", "0"), "--block 0 is out of range"),
        ((*GOOD, "--neighbourhood", "9" * 12), "is out of range"),
        (
            (*GOOD, "--rho", "1"),
            "budget = 'epsilon and rho' is not a budget that dp-pix takes: give --epsilon alone",
        ),
        ((*GOOD, "--regions", "fcaes"), "unknown regions 'fcaes': did you mean faces? choose whole, faces"),
        ((*GOOD, "--names", "nummber"), "unknown way to name outputs 'nummber': did you mean 'number'?"),
        ((*GOOD, "--max-pixels", "0"), "'--max-pixels'"),
        ((*GOOD, "--out", "in/a.png"), "in/a.png is one of the inputs"),
    ],
)
def test_wrong_usage_is_one_line_exit_code_2_and_reads_nothing(cli, monkeypatch, more, words):
    monkeypatch.setattr("dpveil.batch.tasks.read", pytest.fail)
    line = ("obfuscate", "in/a.png", *last("--out", "out", *more))
    code, out, err = cli(*line)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert words in err
    assert not Path("out").exists()
    document = json.loads(cli(*line, "--json")[1])
    assert {key: document[key] for key in EMPTY["obfuscate"]} == EMPTY["obfuscate"]
    assert document["error"] in err


def test_a_mask_that_cannot_be_read_is_refused_before_any_photo(cli, monkeypatch):
    monkeypatch.setattr("dpveil.batch.tasks.read", pytest.fail)
    code, _, err = cli("obfuscate", "in", "--out", "out", *GOOD, "--regions", "mask.png")
    assert (code, err.count("\n")) == (4, 1)
    assert "mask.png does not exist" in err


def test_numbers_stay_exact_from_the_command_line_to_the_certificate(cli):
    thrice = ("--regions", "whole") * 3
    line = ("obfuscate", "in", "--out", "out", *last(*GOOD, "--epsilon", "0.1"), *thrice)
    cli(*line, "--post-processing", "gaussian:1/3")
    data = json.loads(Path("out/a.png.certificate.json").read_text(encoding="utf-8"))
    assert data["composition"]["epsilon"] == 0.3
    assert data["post_processing"] == ["gaussian:1/3"]


def test_warnings_go_to_stderr_and_those_that_differ_in_numbers_are_one_line(cli):
    for number in range(9):
        Image.fromarray(np.zeros((20 + number, 24, 3), np.uint8)).save(f"in/{number}.png")
    code, out, err = cli(
        "obfuscate", "in", "--out", "out", "--method", "dp-pix", "--epsilon", "1", "--seed", "1"
    )
    warnings = [line for line in err.splitlines() if line.startswith("warning: ")]
    assert (code, len(warnings)) == (0, 2)
    assert warnings[0].startswith("warning: NOT FOR PUBLICATION")
    assert warnings[1].startswith("warning: in/0.png and 9 more: ")
    assert "warning" not in out


def test_verify_tells_every_state(cli):
    cli("obfuscate", "in", "--out", "out", *GOOD)
    cli("obfuscate", "in/a.png", "--out", "out/seeded.png", *GOOD, "--seed", "1")
    code, out, err = cli("verify", "out", "out/a.png", "-v")
    assert (code, out.count("\n")) == (0, 2)
    worth = "ε = 2 about any 16 pixels (moderate)"
    assert f"unmodified    out/a.png  {worth}: publishable; {FEW}; sha256 " in out
    seeded = f"out/seeded.png  {worth}: not publishable (seeded bits); "
    assert f"{seeded}NOT FOR PUBLICATION" in out
    assert err == "2 unmodified, 1 of them not publishable; signer not checked (use --trust)\n"
    assert cli("verify", "out", "-q") == (0, "", "")

    Path("out/bare.png").write_bytes(Path("out/a.png").read_bytes())
    Path("out/gone.png.certificate.json").write_bytes(Path("out/a.png.certificate.json").read_bytes())
    Path("out/notes.txt").write_text("x", encoding="utf-8")
    code, out, _ = cli("verify", "out", "--json")
    document = json.loads(out)
    assert code == 1
    assert [(e["output"], e["publishable"]) for e in document["verified"]] == [
        ("out/a.png", True),
        ("out/seeded.png", False),
    ]
    assert {e["output"] for e in document["failed"]} == {"out/bare.png", "out/gone.png"}
    status = {e["output"]: e["status"] for e in document["failed"] if e["error"] and e["hint"]}
    assert status == {"out/bare.png": "missing", "out/gone.png": "inconsistent"}
    assert "--trust" in document["note"]
    assert "UNCERTIFIED   out/bare.png  the file has no certificate" in cli("verify", "out")[1]


def test_the_limit_of_pixels_is_the_readers_own_and_can_be_changed(cli):
    import inspect

    assert inspect.signature(obfuscate.obfuscate_command).parameters["max_pixels"].default == MAX_PIXELS
    code, _, err = cli("obfuscate", "in", "--out", "out", *GOOD, "--max-pixels", "479")
    assert code == 4
    assert "more than the limit of 479" in err
    assert cli("obfuscate", "in", "--out", "out", *GOOD, "--max-pixels", "480")[0] == 0


def test_odd_file_names_stay_one_line_of_ascii_json(cli):
    name = "in/ε\n\udcff.png"
    Image.fromarray(np.zeros((20, 24, 3), np.uint8)).save(name)
    code, out, _ = cli("obfuscate", "in", "--out", "out", *GOOD, "--json")
    assert code == 0
    assert out.isascii()
    assert name in [entry["input"] for entry in json.loads(out)["released"]]
    assert cli("verify", "out")[1].count("\n") == 2
    assert cli("obfuscate", "in", "--out", "again", *GOOD, "-v")[1].count("\n") == 3
    assert cli("obfuscate", "in", "--out", "again", *last(*GOOD, "--epsilon", "7"))[2].count("\n") == 3


def test_exit_codes_are_one_table(cli):
    from dpveil import errors

    kinds = [kind for kind in vars(errors).values() if isinstance(kind, type) and hasattr(kind, "exit_code")]
    assert {kind.exit_code for kind in kinds} <= exits.MEANING.keys()
    out = cli("--help")[1]
    assert all(f"{code:<3}  {text}\n" in out for code, text in exits.MEANING.items())


def test_names_that_no_disk_allows_are_a_failure_and_no_crash(cli):
    long = "x" * 300 + ".png"
    assert cli("verify", long)[0] == 1
    assert cli("obfuscate", long, "--out", "out", *GOOD)[0] == 4
    code, _, err = cli("obfuscate", "in/a.png", "--out", long, *GOOD)
    assert (code, "too long" in err) == (4, True)


# The words of every command: usage lines, and options that were given twice.


TWICE = {
    "obfuscate a.png --out b --method dp-pix --block 8 --epsilon 1 --epsilon=2": "--epsilon",
    "obfuscate a.png --out b --method blur --method dp-pix": "--method",
    "explain --method dp-pix --epsilon 1 --block 8 --size 8x8 --size 9x9": "--size",
    "compare a.png --block 8 --block 16": "--block",
    "verify a.png --at-least weak --at-least strong": "--at-least",
    "mechanism query a.csv --epsilon 1 --epsilon 2": "--epsilon",
}
LOCAL = {
    "verify {}": "OUTPUT",
    "ledger check {} --ledger sqlite:///a.db": "RELEASE",
    "card {} --out made.json": "FOLDER",
    "synthesize {} --out made --epsilon 1 --delta 1e-6": "FOLDER",
    "synthesize faces --out {} --epsilon 1 --delta 1e-6": "--out",
    "obfuscate a.png --out made --manifest {}": "--manifest",
    "obfuscate a.png --out made --review {}": "--review",
    "obfuscate a.png --out made --review={}": "--review",
}
SECRETS = (
    "s3://key:marker@bucket/x",
    " s3://bucket/x?marker",
    "s3:/key:marker@bucket/x",
    "S3://key:a/marker@b",
)


@pytest.mark.parametrize("line", TWICE)
def test_an_option_with_one_value_is_refused_when_given_twice(shell, line):
    code, answer, err = shell(*line.split())
    assert (code, answer, err) == (2, "", f"dpveil: {TWICE[line]} is given twice: give it once\n")


@pytest.mark.parametrize("line", LOCAL)
def test_a_url_in_the_place_of_a_path_is_refused_in_a_line_without_it(shell, line):
    hint = "name a path on this disk, and download first what is elsewhere"
    for url in SECRETS:
        told = shell(*(word.replace("{}", url) for word in line.split()))
        assert told == (2, "", f"dpveil: {LOCAL[line]} takes a path on this disk, and no URL: {hint}\n")


@pytest.mark.parametrize("line", ["obfuscate {} --out made", "obfuscate a.png --out {}"])
def test_credentials_in_nearly_a_url_are_not_told_again(shell, line):
    for url in ("s3://key:marker@b/x", " s3://key:marker@b/x", "s3:/key:marker@b/x", "s3://key:a/marker@b/x"):
        code, answer, err = shell(*(word.replace("{}", url) for word in line.split()))
        assert (code, answer) == (2, "")
        assert "a URL has credentials in it: leave them out" in err
        assert "marker" not in err


def test_verify_fails_for_unprotected_copies(cli, monkeypatch):
    from dpveil import obfuscate as release
    from dpveil import read
    from dpveil.errors import NoRegion
    from dpveil.regions import Finder

    class Nobody(Finder):
        description = "nobody"

        def __call__(self, photo):
            raise NoRegion("nobody")

    release(read("in/a.png"), "dp-pix", epsilon=1, regions=Nobody(), if_none="copy").save("copy.png")
    code, out, _ = cli("verify", "copy.png")
    assert code == 1
    assert out.startswith("UNPROTECTED   copy.png")
    document = json.loads(cli("verify", "copy.png", "--json")[1])
    assert document["failed"][0]["error"] == "unprotected copy"
    assert "--if-none copy" in document["failed"][0]["hint"]
    assert document["verified"] == []


def test_a_preset_gives_options_and_what_is_given_wins(cli):
    box = ("--regions", "0,0,20,20", "--method", "fill", "--json")
    code, out, _ = cli("obfuscate", "in/a.png", "--out", "out", "--preset", "strict", *box)
    assert code == 0
    assert json.loads(out)["released"][0]["regions"] == 1, "the box wins over faces, text and plates"
    assert cli("obfuscate", "in/a.png", "--out", "out", "--preset", "nothing")[0] == 2
    for name, options in PRESETS.items():
        own = [f"{flag}=x" for flag in options[::2]]
        assert with_preset(["a.png", f"--preset={name}", *own])[0] == "a.png", "nothing is added"
        assert with_preset(["a.png", "--preset", name])[: len(options)] == [*options]
