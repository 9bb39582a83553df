"""Numbers in JSON that came back: short ones alone, and no others are even converted."""

from __future__ import annotations

import json

import pytest

from dpveil.core.certificate import parse_certificate
from dpveil.core.envelope import MOST_DIGITS, NotANumber, loads
from dpveil.errors import CertificateError, InvalidParameter
from dpveil.release.documents import parse_document
from dpveil.synthesis.saving import parse_set
from dpveil.video.certificate import parse_certificate as parse_clip
from dpveil.video.plan_file import parse_plan

LONG = ("9" * (MOST_DIGITS + 1), "0." + "9" * MOST_DIGITS, "1" * 100_000)
NONE = ("NaN", "Infinity", "-Infinity")


@pytest.mark.parametrize("number", LONG, ids=["integer", "decimal", "too long to convert"])
def test_numbers_of_too_many_digits_are_refused(number: str) -> None:
    with pytest.raises(NotANumber, match="has too many digits") as raised:
        loads(f'{{"m": {number}}}')
    assert len(raised.value.text) <= 20


@pytest.mark.parametrize("number", NONE)
def test_what_is_no_number_is_refused(number: str) -> None:
    with pytest.raises(NotANumber, match=f"{number} is not a number"):
        loads(f"[{number}]")


def test_numbers_as_dpveil_writes_them_are_read() -> None:
    longest = "9" * MOST_DIGITS
    assert loads(f"[{longest}, 0.1, 1e-300, {2**53}]") == json.loads(f"[{longest}, 0.1, 1e-300, {2**53}]")


@pytest.mark.parametrize("number", [*LONG, *NONE])
@pytest.mark.parametrize("parse", [parse_certificate, parse_document, parse_set, parse_clip])
def test_no_certificate_has_such_numbers(parse, number: str) -> None:
    with pytest.raises(CertificateError) as raised:
        parse(f'{{"schema": {number}}}')
    assert len(str(raised.value)) < 200


@pytest.mark.parametrize("number", [*LONG, *NONE])
def test_a_plan_with_such_a_number_names_it(number: str) -> None:
    with pytest.raises(InvalidParameter, match=r"number = .* (has too many digits|is not a number)"):
        parse_plan(f'{{"schema": {number}}}')
