"""The canonical text is that of Python's own encoder, byte for byte, and so is the checksum's place in it."""

from __future__ import annotations

import enum
import hashlib
import json
from collections import OrderedDict
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpveil.core.envelope import canonical, checksum, sealed


class Word(str, enum.Enum):  # noqa: UP042  what Python's encoder writes as a text
    A = 'a"é'


class Count(enum.IntEnum):
    ONE = 1


TEXTS = st.text(st.characters(exclude_categories=()), max_size=8)
SINGLE = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXTS
    | st.sampled_from([Word.A, Count.ONE, -0.0, 1e22, 5e-324, 10**30])
)
VALUES = st.recursive(
    SINGLE,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.lists(inner, max_size=3).map(tuple)
        | st.dictionaries(TEXTS, inner, max_size=4)
        | st.dictionaries(TEXTS, inner, max_size=3).map(OrderedDict)
    ),
    max_leaves=20,
)
OBJECTS = st.dictionaries(TEXTS, VALUES, max_size=5)


def theirs(data: Any) -> str:
    return json.dumps(data, sort_keys=True, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


@given(OBJECTS)
def test_it_is_what_json_writes(data: dict[str, Any]) -> None:
    assert canonical(data) == theirs(data)


@given(st.dictionaries(st.sampled_from(["a", "checksun", "d", "signature", "z"]), VALUES, min_size=1))
def test_a_checksum_is_of_the_rest_and_in_its_place(data: dict[str, Any]) -> None:
    data = json.loads(json.dumps(data).encode("utf-8", "replace"))
    rest = {name: value for name, value in data.items() if name != "signature"}
    if not rest:
        return
    try:
        due = hashlib.sha256(theirs(rest).encode()).hexdigest()
    except UnicodeEncodeError:  # half a surrogate pair, which no file holds
        with pytest.raises(UnicodeEncodeError):
            sealed(data)
        return
    assert checksum(data) == due
    assert sealed(data) == sealed(data | {"checksum": "?"}) == theirs(data | {"checksum": due})


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf")])
def test_what_is_no_number_is_refused(value: float) -> None:
    with pytest.raises(ValueError, match="Out of range"):
        canonical({"a": [value]})


@pytest.mark.parametrize("data", [{"a": b"b"}, {"a": {1, 2}}, {1: "a"}, {"a": {None: 1}}, {"a": object()}])
def test_what_is_no_json_is_refused(data: Any) -> None:
    """Python's encoder makes texts of names that are numbers, which are other names when they are read."""
    with pytest.raises(TypeError):
        canonical(data)
