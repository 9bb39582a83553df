"""Certificates of data sets come from anybody: each text is either what dpveil writes, or refused as such."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpveil.core.envelope import canonical, checksum
from dpveil.errors import CertificateError
from dpveil.synthesis import Plan
from dpveil.synthesis.plan import SHEET, picture_name
from dpveil.synthesis.saving import SetCertificate, parse_set

FILES = dict.fromkeys((SHEET, picture_name(1), picture_name(2)), 64 * "a")
PLAN = Plan(epsilon="1/3", delta="1e-6", people=9000, pictures=2, codec=f"gan 128 sha256:{64 * '0'}")
ODD = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(-(2**70), 2**70),
        st.floats(),
        st.text(max_size=8),
        st.sampled_from(["../x", "1e-400", "1e999", "NaN", "secure", "face", 64 * "b", "gan 128 sha256:x"]),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=4,
)


def written(**changed: Any) -> str:
    return SetCertificate(**{"plan": PLAN, "bits": "secure", "files": FILES, **changed}).to_text()


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Return the paths of all values in a JSON document."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path] * bool(path) + [one for key, part in inner for one in places(part, (*path, key))]


PLACES = places(json.loads(written()))


@pytest.mark.parametrize("bits", ["secure", "seeded"])
def test_what_is_written_is_read(bits):
    found = parse_set(written(bits=bits))
    assert (found.plan, found.bits, found.files, found.to_text()) == (PLAN, bits, FILES, written(bits=bits))
    assert found.publishable is (bits == "secure")
    assert any("NOT FOR PUBLICATION" in text for text in found.warnings) is (bits == "seeded")


@given(st.sampled_from(PLACES), ODD)
def test_no_value_in_any_place_does_more_than_be_refused(path, value):
    """Checksums are made anew, as whoever edits a file knows how."""
    data = json.loads(written())
    held = data
    for key in path[:-1]:
        held = held[key]
    if held[path[-1]] == value and type(held[path[-1]]) is type(value):
        return
    held[path[-1]] = value
    try:
        text = canonical(data | ({"checksum": checksum(data)} if path != ("checksum",) else {}))
    except ValueError:  # NaN and infinities, which no JSON has
        text = json.dumps(data)
    try:
        found = parse_set(text)
    except CertificateError:
        return
    assert found.to_text() == text
    assert path[0] in ("parameters", "files", "tool", "bits")


@pytest.mark.parametrize("path", PLACES, ids=str)
def test_nothing_may_be_missing(path):
    data = json.loads(written())
    held = data
    for key in path[:-1]:
        held = held[key]
    del held[path[-1]]
    data = data if path == ("checksum",) else data | {"checksum": checksum(data)}
    with pytest.raises(CertificateError):
        parse_set(canonical(data))
