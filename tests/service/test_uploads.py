"""Settings as they arrive, without a server."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pytest

from dpveil.errors import UsageError
from dpveil.service.uploads import MOST_NAMES, of_query, read_settings


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
