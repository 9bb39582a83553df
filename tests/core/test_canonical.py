"""The canonical text of certificates is that of Python's own encoder."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpveil.core.canonical import canonical

SCALARS = (
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
)
TREES = st.recursive(
    SCALARS, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=30
)


@given(st.dictionaries(st.text(), TREES))
def test_it_is_what_pythons_encoder_writes(data):
    usual = json.dumps(data, sort_keys=True, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
    assert canonical(data) == usual
    assert json.loads(usual) == data


@pytest.mark.parametrize("wrong", [float("nan"), float("inf"), -float("inf")])
def test_what_json_cannot_hold_is_refused(wrong):
    with pytest.raises(ValueError, match="not JSON compliant"):
        canonical({"a": [{"b": wrong}]})


@pytest.mark.parametrize("wrong", [{1: 2}, {"a": {None: 1}}, {"a": b"1"}, {"a": {1, 2}}])
def test_what_is_no_json_is_refused(wrong):
    with pytest.raises(TypeError):
        canonical(wrong)
