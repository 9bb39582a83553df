"""The page "The papers": its commands are those of the program, and what it says was run has results."""

from __future__ import annotations

import re
import shlex

import pytest
from kept_tables import FOLDER, ROOT, page

from dpveil.cli import run
from dpveil_research.__main__ import NAMES, OWN

ROWS = [
    [cell.strip() for cell in line.strip("|").split(" | ")]
    for line in page("papers").splitlines()
    if line.startswith("| ") and not line.startswith("| what ")
]
COMMANDS = list(dict.fromkeys(command for row in ROWS for command in re.findall(r"`([^`]+)`", row[1])))
STATUS = re.compile(r"(run|partly|not)\b")


def test_every_row_has_a_command_a_status_and_a_verdict() -> None:
    for what, command, status, verdict in ROWS:
        assert what
        assert verdict
        assert STATUS.match(status), status
        assert bool(re.findall(r"`[^`]+`", command)) == (not status.startswith("not")), what


@pytest.mark.parametrize("command", [one for one in COMMANDS if one.split()[0] in NAMES])
def test_an_experiment_exists_and_its_run_is_kept(command: str) -> None:
    name, *rest = command.split()
    assert list((FOLDER / name).glob("*.csv")), name
    assert not rest or (rest[0] == "--own" and name in OWN and len(rest) == 2)


@pytest.mark.parametrize("command", [one for one in COMMANDS if one.split()[0] not in NAMES])
def test_other_commands_are_those_of_the_program(command: str) -> None:
    words = shlex.split(command)
    if words[0] == "make":
        makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
        assert re.search(rf"^{words[1]}:", makefile, re.MULTILINE)
    elif words[0] in ("pytest", "python"):
        assert (ROOT / words[1]).is_file()
    else:
        assert words[0] == "dpveil"
        if words[1] == "mechanism":
            assert run(words[1:]) == 0
        else:
            assert run([*words[1:], "--help"]) == 0
            assert run([*words[1:], "--no-such-option", "--help"]) == 2
