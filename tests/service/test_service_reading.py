"""Settings as they arrive, without a server."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest

from dpveil.errors import UsageError
from dpveil.service import reading
from dpveil.service.reading import MOST_NAMES, of_query, read_settings


class Counted(str):
    """A name that counts how often it is compared."""

    compared = 0
    __hash__ = str.__hash__

    def __eq__(self, other: object) -> bool:
        Counted.compared += 1
        return str.__eq__(self, other)


def settings(names: Sequence[str]) -> bytes:
    return b"{" + ",".join(f"{json.dumps(name)}: 0" for name in names).encode() + b"}"


def test_more_names_than_any_request_has_are_refused() -> None:
    most = [f"{number:x}" for number in range(MOST_NAMES)]
    assert len(read_settings(settings(most))) == len(of_query([(name, "") for name in most])) == MOST_NAMES
    for pairs in (settings([*most, "more"]), b'{"a": ' + settings([*most, "more"]) + b"}"):
        with pytest.raises(UsageError, match="an object has 201 settings"):
            read_settings(pairs)
    with pytest.raises(UsageError, match="an object has 201 settings"):
        of_query([(name, "") for name in [*most, "more"]])


def test_names_are_not_compared_with_all_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "MOST_NAMES", 10**6)
    pairs: list[Any] = [(Counted(number), "") for number in range(3000)]
    Counted.compared = 0
    assert len(of_query(pairs)) == 3000
    assert Counted.compared < 10 * 3000
