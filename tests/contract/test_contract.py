"""What people rely on stays: commands, exit codes, answers, certificates, public names, the service, and what
they see: pictures, numbers and words. Where a change is meant, run recording.py.
"""

from __future__ import annotations

import json

import pytest

from contract import pictures, transcript
from contract.recording import FILE, PARTS


@pytest.mark.parametrize("part", PARTS)
def test_what_people_rely_on_stays(part: str) -> None:
    assert json.loads(json.dumps(PARTS[part]())) == json.loads(FILE.read_text())[part]


@pytest.mark.parametrize("part", pictures.PARTS)
def test_pictures_stay(part: str) -> None:
    pairs = zip(pictures.tiles(part), pictures.recorded(part), strict=False)
    off = {name: pictures.differs(drawn, record) for (name, drawn), record in pairs}
    assert {name: share for name, share in off.items() if share > pictures.SHARE} == {}


def test_numbers_stay() -> None:
    record, found = json.loads(transcript.NUMBERS.read_text()), transcript.numbers()
    assert {call: answer for call, answer in found.items() if not transcript.same(answer, record[call])} == {}


def test_words_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    assert transcript.words().split("\n$ ") == transcript.WORDS.read_text().split("\n$ ")
