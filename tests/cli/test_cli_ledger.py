"""`dpveil ledger`, and `obfuscate` with a ledger, as people meet them."""

from __future__ import annotations

import hashlib
import json
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from dpveil.batch.report import Report
from dpveil.errors import LedgerError
from dpveil.ledger import Ledger

LEDGER = ("--ledger", "sqlite:///budget.db")
PAID = (*LEDGER, "--subject", "album-7")
METHOD = ("--method", "dp-pix", "--epsilon", "1", "--block", "8", "--neighbourhood", "16")
Shell = Callable[..., tuple[int, str, str]]


@pytest.fixture
def cli(shell: Shell) -> Shell:
    """A folder with three photos and a ledger with a budget of 3."""
    Path("in").mkdir()
    for number, name in enumerate(("anna", "bob", "cleo")):
        levels = (np.arange(16 * 16 * 3) % (251 - number)).astype(np.uint8).reshape(16, 16, 3)
        Image.fromarray(levels).save(f"in/{name}.png")
    code, _, said = shell("ledger", "limit", "album-7", "--epsilon", 3, *LEDGER)
    assert code == 0
    assert said.startswith("there was no ledger: made ")
    return shell


def shown(cli: Shell, subject: str = "album-7") -> dict[str, Any]:
    code, answer, _ = cli("ledger", "show", subject, *LEDGER, "--json")
    assert code == 0
    told: dict[str, Any] = json.loads(answer)
    return told


def test_a_budget_is_spent_until_nothing_is_left(cli: Shell) -> None:
    code, _, said = cli("obfuscate", "in", "--out", "out", *METHOD, *PAID)
    assert code == 0
    assert said.splitlines()[-1] == (
        "album-7: spent epsilon 3 (m-pixels:16) for what all its releases cover; limit epsilon 3, left 0"
    )
    told = shown(cli)
    assert (told["subject"], told["spent"]["epsilon"], told["reserved"]["epsilon"]) == ("album-7", 3, 0)
    assert (told["limit"]["epsilon"], told["limit"]["left"]) == (3, 0)
    code, answer, said = cli("obfuscate", "in/bob.png", "--out", "more.png", *METHOD, *PAID, "--json")
    assert code == 3
    assert json.loads(answer)["failed"][0]["error"] == "album-7 has epsilon 0 left and this release costs 1"
    assert not Path("more.png").exists()


def test_what_was_paid_is_skipped_for_who_paid_and_for_nobody_else(cli: Shell) -> None:
    cli("obfuscate", "in/bob.png", "--out", "out", *METHOD, *PAID)
    code, answer, _ = cli("obfuscate", "in/bob.png", "--out", "out", *METHOD, *PAID, "--json")
    assert (code, len(json.loads(answer)["skipped"])) == (0, 1)
    cli("ledger", "limit", "other", "--epsilon", 3, *LEDGER)
    code, answer, _ = cli(
        "obfuscate", "in/bob.png", "--out", "out", *METHOD, *LEDGER, "--subject", "other", "--json"
    )
    assert code == 1
    assert "other did not pay for it" in json.loads(answer)["failed"][0]["error"]
    assert shown(cli)["spent"]["epsilon"] == 1


def test_check_believes_the_file_and_not_its_certificate(cli: Shell) -> None:
    cli("obfuscate", "in/bob.png", "--out", "out", *METHOD, *PAID)
    assert cli("ledger", "check", "out/bob.png", *LEDGER)[0] == 0
    cli("obfuscate", "in/anna.png", "--out", "free", *METHOD)
    shutil.copy("out/bob.png.certificate.json", "free/anna.png.certificate.json")
    code, answer, _ = cli("ledger", "check", "free/anna.png", *LEDGER, "--json")
    assert (code, "SHA-256 is not the one" in json.loads(answer)["failed"][0]["error"]) == (1, True)
    Path("out/bob.png.certificate.json").unlink()
    assert cli("ledger", "check", "out/bob.png", *LEDGER)[0] == 1
    assert cli("ledger", "check", "nothing.png", *LEDGER)[0] == 1
    forged = shutil.copy("in/anna.png", "x.png: paid by album-7\ny.png")
    code, answer, _ = cli("ledger", "check", forged, *LEDGER)
    assert (code, answer.count("\n")) == (1, 2)


def test_a_mistyped_name_makes_no_new_budget(shell: Shell) -> None:
    Image.fromarray(np.zeros((16, 16), np.uint8)).save("a.png")
    for command in (
        "show album",
        "show",
        "history",
        "check",
        "limit a --epsilon 1 --remove",
    ):
        code, _, said = shell("ledger", *command.split(), *LEDGER)
        assert (code, said.count("\n")) == (4, 1)
        assert "there is no ledger" in said
    code, _, said = shell("obfuscate", "a.png", "--out", "b.png", *METHOD, *PAID)
    assert code == 4
    assert [path.name for path in Path().iterdir()] == ["a.png"]


def test_limits_of_every_kind(cli: Shell) -> None:
    for options in (
        ("--epsilon", "2", "--delta", "1e-6"),
        ("--rho", "0.5", "--relation", "m-pixels:16"),
        ("--epsilon", "3", "--delta", "1e-6", "--concentrated"),
        ("--epsilon", "3", "--relation", "any-image"),
        ("--epsilon", "3", "--relation", "m-pixels:16"),
    ):
        code, _, said = cli("ledger", "limit", "album-7", *options, *LEDGER)
        assert code == 0, said
    limits = shown(cli)["limits"]
    assert [each["kind"] for each in limits] == ["pure", "approximate", "zcdp", "zcdp", "pure", "pure"]
    assert cli("ledger", "limit", "album-7", "--epsilon", "1", "--delta", "1", "--remove", *LEDGER)[0] == 0
    assert len(shown(cli)["limits"]) == 5


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (("--ledger", "sqlite:///budget.db"), "--ledger needs --subject"),
        (("--subject", "album-7"), "--subject needs --ledger"),
        ((*PAID, "--seed", "1"), "--seed"),
        ((*LEDGER, "--subject", "a\nb"), "subject"),
        (("--ledger", "sqlite:///budget.db?mode=ro", "--subject", "a"), "no URL of a ledger"),
    ],
)
def test_options_that_do_not_belong_together_are_refused(
    cli: Shell, more: tuple[str, ...], words: str
) -> None:
    code, _, said = cli("obfuscate", "in", "--out", "out", *METHOD, *more)
    assert (code, said.count("\n")) == (2, 1)
    assert words in said
    assert not Path("out").exists()


@pytest.mark.parametrize("end", ["", "-wal", "-journal"])
def test_the_ledgers_own_files_are_no_part_of_a_run(cli: Shell, end: str) -> None:
    name = f"budget.db{end}"
    for arguments in (
        ("in", "--out", "out", "--manifest", f"{name}.csv"),
        (name, "--out", "out.png"),
        ("in/bob.png", "in/anna.png", "--out", "out", "--review", f"{name}.html"),
    ):
        for place in ("manifest", "review"):
            if f"--{place}" in arguments:
                Path(arguments[-1]).symlink_to(name)
        code, _, said = cli("obfuscate", *arguments, *METHOD, *PAID)
        assert code == 2, said
        assert "belongs to the ledger" in said
    assert shown(cli)["spent"]["epsilon"] == 0
    assert cli("ledger", "check", name, *LEDGER)[0] == 2


def test_other_regions_of_a_photo_are_refused_and_recorded_where_they_are_asked_for(cli: Shell) -> None:
    fill = ("obfuscate", "in/bob.png", "--method", "fill", *PAID)
    assert cli(*fill, "--regions", "0,0,8,16", "--out", "left.png")[0] == 0
    code, answer, said = cli(*fill, "--regions", "8,0,8,16", "--out", "right.png")
    assert (code, answer, Path("right.png").exists()) == (3, "", False)
    assert "this photo was released with other regions before" in said
    assert "add --other-regions" in said
    more = ("--regions", "8,0,8,16", "--out", "right.png", "--other-regions")
    assert cli(*fill, *more)[0] == 0
    debits = [line for line in cli("ledger", "history", *LEDGER)[1].splitlines() if "debit" in line]
    assert ["  other regions" in line for line in debits] == [False, True]
    code, answer, said = cli("ledger", "check", *LEDGER, "--json")
    assert (code, json.loads(answer)["other_regions"]) == (0, 1)
    assert "1 debit of a photo with other regions than before" in said
    code, _, said = cli(*fill[:4], "--out", "x.png", "--other-regions")
    assert (code, "--other-regions needs --ledger" in said) == (2, True)


def test_entries_chain_by_hashes_that_anybody_computes(cli: Shell) -> None:
    cli("obfuscate", "in", "--out", "out", *METHOD, *PAID)
    lines = json.loads(cli("ledger", "history", "--json", *LEDGER)[1])["entries"]
    before = "0" * 64
    for line in lines:
        before = hashlib.sha256(f"{before}\n{line['text']}".encode()).hexdigest()
        assert line["hash"] == before
    code, answer, _ = cli("ledger", "check", *LEDGER, "--json")
    told = json.loads(answer)
    assert (code, told["head"]) == (0, f"{len(lines)}:{before}")
    assert (told["debits"], told["files"], told["unstored"]) == (3, 3, 0)
    assert cli("ledger", "check", "--head", told["head"], *LEDGER)[0] == 0
    assert cli("ledger", "check", "--head", f"{len(lines) + 1}:{before}", *LEDGER)[0] == 4


@pytest.mark.parametrize(
    "given",
    [
        "clerk:s3cret",
        "postgres//clerk:s3cret@host/db",
        "clerk@host/s3cret",
        "sqlite:///s3cret@x?y",
        "http://s3cret",
    ],
)
def test_what_may_hold_a_password_is_not_shown(shell: Shell, given: str) -> None:
    code, answer, said = shell("ledger", "check", "--ledger", given)
    assert (code, answer) == (2, "")
    assert "this is no URL of a ledger: write sqlite" in said
    assert "s3cret" not in said


def test_a_file_that_was_drawn_twice_is_paid_by_the_one_its_certificate_states(cli: Shell) -> None:
    """Two releases of one black block have the same bytes, and cost different amounts."""
    cli("ledger", "limit", "album-7", "--epsilon", 10**6, *LEDGER)
    Image.fromarray(np.zeros((8, 8), np.uint8)).save("black.png")
    for epsilon in (40_000, 50_000):
        method = ("--method", "dp-pix", "--epsilon", epsilon, "--block", "8")
        cli("obfuscate", "black.png", "--out", f"{epsilon}.png", *method, *PAID)
    assert Path("40000.png").read_bytes() == Path("50000.png").read_bytes()
    code, answer, _ = cli("ledger", "check", "40000.png", "50000.png", *LEDGER)
    assert (code, answer.count("paid by album-7")) == (0, 2)
    cli("obfuscate", "black.png", "--out", "x.png", "--method", "dp-pix", "--epsilon", "60000", "--block", 8)
    code, answer, _ = cli("ledger", "check", "x.png", *LEDGER)
    assert (code, answer.count("another amount than was paid")) == (1, 1)


def test_check_looks_up_folders_of_releases(cli: Shell) -> None:
    cli("obfuscate", "in", "--out", "out/below", *METHOD, *PAID)
    shutil.copy("in/anna.png", "out/original.png")
    code, answer, said = cli("ledger", "check", "out", "out/below/anna.png.certificate.json", *LEDGER)
    assert (code, answer.count("paid by album-7")) == (0, 3)
    assert "original" not in answer
    assert "not looked up, for want of a certificate: one picture\n" in said
    assert cli("ledger", "check", "out/original.png", *LEDGER)[0] == 1
    cli("obfuscate", "in/bob.png", "--out", "out/deeper", *METHOD)
    Path("out/link.png").symlink_to("below/anna.png")
    code, answer, _ = cli("ledger", "check", "out", *LEDGER, "--json")
    failed = {each["output"]: each["error"] for each in json.loads(answer)["failed"]}
    assert code == 1
    assert failed == {
        "out/deeper/bob.png": "nobody paid for it from this ledger",
        "out/link.png": "it is a symbolic link, and links are not followed",
    }
    Path("empty").mkdir()
    code, answer, said = cli("ledger", "check", "empty", *LEDGER)
    assert (code, answer) == (4, "")
    assert "no release is there to look up" in said


def test_releases_from_before_the_ledger_are_not_skipped(cli: Shell) -> None:
    cli("obfuscate", "in", "--out", "out", *METHOD)
    code, answer, _ = cli("obfuscate", "in", "--out", "out", *METHOD, *PAID, "--json")
    assert (code, len(json.loads(answer)["failed"])) == (1, 3)
    assert cli("ledger", "check", "out/bob.png", *LEDGER)[0] == 1
    assert shown(cli)["spent"]["epsilon"] == 0
    assert cli("obfuscate", "in", "--out", "out", *METHOD, *PAID, "--force")[0] == 0
    assert cli("ledger", "check", "out/bob.png", *LEDGER)[0] == 0


def test_a_run_that_costs_more_than_is_left_draws_nothing(cli: Shell) -> None:
    cli("ledger", "limit", "album-7", "--epsilon", 2, *LEDGER)
    before = cli("ledger", "history", *LEDGER)[1]
    command = ("obfuscate", "in", "--out", "out", *METHOD, *PAID)
    code, answer, _ = cli(*command, "--json")
    told = json.loads(answer)
    assert (code, len(told["released"]), len(told["failed"]), len(told["untried"])) == (3, 0, 0, 3)
    assert told["untried"][2] == {
        "input": "in/cleo.png",
        "error": "album-7 has epsilon 2 left, and 3 photos cost 3 together",
        "hint": "release fewer, use what costs nothing, such as fill, or raise its limit by 1",
    }
    code, answer, said = cli(*command)
    assert (code, answer) == (3, "")
    assert said.splitlines()[0].startswith("nothing was drawn: album-7 has epsilon 2 left, and 3 photos")
    assert not Path("out").exists()
    assert cli("ledger", "history", *LEDGER)[1] == before
    assert cli("obfuscate", "in/bob.png", "in/anna.png", "--out", "out", *METHOD, *PAID)[0] == 0
    code, answer, _ = cli("obfuscate", "in", "--out", "out", *METHOD, *PAID, "--json")
    told = json.loads(answer)
    assert (code, len(told["skipped"]), told["failed"][0]["error"]) == (
        3,
        2,
        "album-7 has epsilon 0 left and this release costs 1",
    ), "what is there already is not part of the price"
    assert shown(cli)["spent"]["epsilon"] == 2


def test_a_ledger_that_fails_stops_the_run_and_nothing_more_is_paid_or_drawn(
    cli: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It fails once, and the failure takes a while to be recorded, so that the next photo could be drawn."""
    debit, fail, asked = Ledger.debit, Report.fail, []

    def failing(self: Ledger, *arguments: Any, **more: Any) -> Any:
        asked.append(1)
        if len(asked) == 2:
            raise LedgerError("the ledger cannot be used: disk I/O error")
        return debit(self, *arguments, **more)

    def slow(self: Report, *arguments: Any, **more: Any) -> None:
        time.sleep(0.4)
        fail(self, *arguments, **more)

    monkeypatch.setattr(Ledger, "debit", failing)
    monkeypatch.setattr(Report, "fail", slow)
    code, answer, _ = cli("obfuscate", "in", "--out", "out", *METHOD, *PAID, "--json")
    told = json.loads(answer)
    assert code == 4
    assert [len(told[name]) for name in ("released", "failed", "untried")] == [1, 1, 1]
    assert told["failed"][0]["error"] == "the ledger cannot be used: disk I/O error"
    assert len(asked) == 2
    assert shown(cli)["spent"]["epsilon"] == 1
