"""What people rely on stays: commands, exit codes, answers, certificates, public names, the service, and what
they see: pictures, numbers and words. Where a change is meant, the recorder named in each file draws it anew.
"""

from __future__ import annotations

import json

import pytest

from contract import pictures, record_numbers, record_words
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
    record, answers = json.loads(record_numbers.FILE.read_text()), record_numbers.answers()
    assert [*answers] == [*record]
    assert {
        call: found for call, found in answers.items() if not record_numbers.same(found, record[call])
    } == {}


def test_words_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    assert record_words.text(record_words.words()).split("\n$ ") == record_words.FILE.read_text().split(
        "\n$ "
    )
