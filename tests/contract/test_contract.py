"""What people rely on stays: commands, exit codes, answers, certificates, public names, the service."""

from __future__ import annotations

import json

import pytest

from contract.recording import FILE, PARTS


@pytest.mark.parametrize("part", PARTS)
def test_what_people_rely_on_stays(part: str) -> None:
    # Where a change is meant: `python tests/contract/recording.py`, and read the difference.
    assert json.loads(json.dumps(PARTS[part]())) == json.loads(FILE.read_text())[part]
