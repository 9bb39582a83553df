"""What people rely on stays: commands, exit codes, answers, certificates, public names, the service."""

from __future__ import annotations

import json

import pytest

from contract import pictures, record_numbers
from contract.recording import FILE, PARTS


@pytest.mark.parametrize("part", PARTS)
def test_what_people_rely_on_stays(part: str) -> None:
    # Where a change is meant: `python tests/contract/recording.py`, and read the difference.
    assert json.loads(json.dumps(PARTS[part]())) == json.loads(FILE.read_text())[part]


@pytest.mark.parametrize("part", pictures.PARTS)
def test_pictures_stay(part: str) -> None:
    # Where a change is meant: `python tests/contract/pictures.py`, and look at the new ones.
    pairs = zip(pictures.tiles(part), pictures.recorded(part), strict=False)
    off = {name: share for (name, drawn), record in pairs if (share := pictures.differs(drawn, record))}
    assert {name: share for name, share in off.items() if share > pictures.SHARE} == {}


def test_numbers_stay() -> None:
    # Where a change is meant: `python tests/contract/record_numbers.py`, and read the difference.
    record, answers = json.loads(record_numbers.FILE.read_text()), record_numbers.answers()
    assert [*answers] == [*record]
    assert {
        call: answer for call, answer in answers.items() if not record_numbers.same(answer, record[call])
    } == {}
