"""The file of API keys: changed by several at once, by hand, and by others than its owner."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any

import pytest

from dpveil.cli import run
from dpveil.errors import InvalidParameter, OutputError, UsageError
from dpveil.service.keys import KeyFile, Keys, alone
from dpveil.service.problems import Busy


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A file with one key, named shop."""
    keys, _ = Keys().new("shop", ["studio/shop"], 60)
    keys.write(tmp_path / "keys.json")
    return tmp_path / "keys.json"


def names(file: Path) -> set[str]:
    return {caller.name for caller in Keys.read(file).callers}


@pytest.mark.parametrize(
    ("command", "after"),
    [(["new", "other", "--subject", "album"], {"shop", "first", "other"}), (["remove", "shop"], {"first"})],
)
def test_no_change_is_lost_to_another(file: Path, command: list[str], after: set[str]) -> None:
    """A command waits for a change that was begun, and builds on it."""
    waits = threading.Thread(target=run, args=(["api-key", *command, "--keys", str(file)],))
    with alone(file):
        known = Keys.read(file)
        waits.start()
        waits.join(1)  # without a lock it is done by then
        known.new("first", ["album"], 60)[0].write(file)
    waits.join()
    assert names(file) == after


def test_a_folder_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(OutputError, match="cannot be written"), alone(tmp_path / "none" / "keys.json"):
        pass


def changed(file: Path, **entry: Any) -> None:
    """Append the first key once more, with other entries."""
    data = json.loads(file.read_text(encoding="utf-8"))
    data["keys"].append({**data["keys"][0], **entry})
    file.write_text(json.dumps(data), encoding="utf-8")


@pytest.mark.parametrize(
    "subject", ["", "a//b", "/a", "a/", " a", "x" * 201, "a/" * 16 + "a", "a\u0301", 7, None]
)
def test_subjects_are_those_of_the_ledger(file: Path, subject: Any) -> None:
    if subject != "a\u0301":
        with pytest.raises(InvalidParameter, match="subject"):
            Keys().new("other", [subject], 60)
    changed(file, number="0123456789ab", subjects=[subject])
    with pytest.raises(UsageError, match="is no file of keys"):
        Keys.read(file)


def test_a_file_that_others_may_change_is_noticed_while_it_is_used(file: Path) -> None:
    keys, key = Keys().new("other", ["album"], 60)
    keys.write(file)
    used = KeyFile(file)
    assert used.caller(f"Bearer {key}").name == "other"
    file.chmod(0o666)
    with pytest.raises(Busy, match="the keys cannot be read"):
        used.caller(f"Bearer {key}")
    file.chmod(0o600)
    assert used.caller(f"Bearer {key}").name == "other"
