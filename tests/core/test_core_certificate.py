import hashlib
import json
from dataclasses import replace
from importlib.resources import files

import jsonschema
import pytest

from dpveil.accounting import compose
from dpveil.core.certificate import Certificate, Output
from dpveil.core.certificate_text import parse_certificate
from dpveil.core.guarantee import Guarantee, Relation, Scope
from dpveil.core.region import Box
from dpveil.errors import CertificateError
from records import record

SCOPE = Scope("face: 2×2 pixels at 0,0", ("everything else",))
GUARANTEES = [
    Guarantee(kind="pure", epsilon="1/3", relation=Relation("m-pixels", 16), scope=SCOPE),
    Guarantee(kind="approximate", epsilon=1, delta=1e-6, relation=Relation("any-image"), scope=SCOPE),
    Guarantee(kind="zcdp", rho=0.5, relation=Relation("any-image"), scope=SCOPE),
    Guarantee(
        kind="metric", epsilon=1, metric="d", diameter=2, relation=Relation("latent-cell"), scope=SCOPE
    ),
    Guarantee(kind="heuristic", broken_by=("averaging",), relation=Relation("any-image"), scope=SCOPE),
]
OUTPUT = Output(sha256="a" * 64, format="png", width=4, height=3, channels=3)


def make(guarantee: Guarantee = GUARANTEES[0], **changes: object) -> Certificate:
    certificate = Certificate(
        method="dp-pix",
        parameters={"epsilon": "1/3", "block": 16, "neighbourhood": None},
        request=("0,0,2,2",),
        guarantees=(guarantee,),
        regions=(record("face", Box(0, 0, 2, 2), 3),),
        composition=guarantee,
        strength="strong",
        accountant="sum",
        bits="secure",
        warnings=("ε is large",),
        output=OUTPUT,
    )
    return replace(certificate, **changes)


def sealed(data: dict) -> str:
    """The checksum, written down independently."""
    rest = {key: value for key, value in data.items() if key != "checksum"}
    text = json.dumps(rest, sort_keys=True, indent=2, ensure_ascii=False) + "\n"
    return hashlib.sha256(text.encode()).hexdigest()


@pytest.fixture(scope="module")
def schema() -> jsonschema.Draft202012Validator:
    text = files("dpveil.core").joinpath("certificate.schema.json").read_text(encoding="utf-8")
    jsonschema.Draft202012Validator.check_schema(json.loads(text))
    return jsonschema.Draft202012Validator(json.loads(text))


@pytest.mark.parametrize("guarantee", GUARANTEES, ids=lambda g: g.kind)
def test_text_and_certificate_are_one_to_one_and_fit_the_schema(guarantee, schema):
    certificate = make(guarantee)
    again = parse_certificate(certificate.to_text())
    assert again == certificate
    schema.validate(json.loads(certificate.to_text()))


def test_a_copy_fits_the_schema(schema):
    nothing = {"method": None, "parameters": {}, "guarantees": (), "regions": ()}
    copy = make(**nothing, composition=None, strength=None, output=None)
    schema.validate(json.loads(copy.to_text()))
    assert parse_certificate(copy.to_text()) == copy


@pytest.mark.parametrize(
    "damage",
    [
        {"publishable": "yes"},
        {"guarantees": [{"kind": "pure"}]},
        {"extra": 1},
        {"schema": "dpveil.certificate/1"},
        {"strength": "firm"},
        {"wording": 0},
        {"missing": "faces"},
        {"output": {**OUTPUT.to_json(), "channels": 2}},
        {"regions": [{"origin": {"kind": "box"}, "box": [0, 0, 0, 1], "masked": None}]},
        {"regions": [{"origin": {"kind": "A b"}, "box": [0, 0, 1, 1], "masked": None}]},
        {"composition": {**GUARANTEES[0].to_json(), "delta": 0.1}},
        {"composition": {**GUARANTEES[0].to_json(), "relation": {"name": "m-pixels"}}},
    ],
)
def test_the_schema_refuses_what_is_no_certificate(damage, schema):
    assert not schema.is_valid(make().to_json() | damage)


def test_canonical_text_is_sorted_and_ends_with_one_newline():
    text = make().to_text()
    assert list(json.loads(text)) == sorted(json.loads(text))
    assert text.endswith("}\n")
    assert "ε is large" in text
    assert json.loads(text)["checksum"] == sealed(json.loads(text))


@pytest.mark.parametrize(
    "edit",
    [
        lambda t: t[:-1],
        lambda t: t + "\n",
        lambda t: t.replace('"epsilon"', '"epsilon" ', 1),
        lambda t: t.replace("  ", "\t"),
        lambda t: "\ufeff" + t,
    ],
)
def test_any_other_form_is_refused(edit):
    with pytest.raises(CertificateError):
        parse_certificate(edit(make().to_text()))


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("schema", "dpveil.certificate/3"),
        ("schema", "dpveil.certificate/1"),
        ("strength", 1),
        ("wording", 0),
        ("wording", True),
        ("missing", None),
        ("schema", None),
        ("parameters", [1]),
        ("parameters", "x"),
        ("method", 5),
        ("request", "whole"),
        ("request", [1]),
        ("guarantees", []),
        ("guarantees", {}),
        ("guarantees", [None]),
        ("regions", [{"origin": {"kind": "box"}, "box": [0, 0, 1], "masked": None}]),
        ("regions", [{"origin": {"kind": "box", "found": 1}, "box": [0, 0, 1, 1], "masked": None}]),
        ("regions", [{"origin": {"kind": "box", "more": 1}, "box": [0, 0, 1, 1], "masked": None}]),
        ("regions", [{"origin": {"kind": "box", "found": False}, "box": [0, 0, 1, 1], "masked": None}]),
        ("regions", [{"origin": {"kind": "box", "number": 0}, "box": [0, 0, 1, 1], "masked": None}]),
        ("output", {}),
        ("output", []),
        ("output", OUTPUT.to_json() | {"width": "4"}),
        ("output", OUTPUT.to_json() | {"width": 4.0}),
        ("output", OUTPUT.to_json() | {"sha256": None}),
        ("warnings", [1]),
        ("warnings", None),
        ("bits", None),
        ("tool", 1),
        ("accountant", []),
        ("publishable", False),
        ("parameters", {"epsilon": float("nan")}),
    ],
)
def test_malformed_certificates_are_one_clear_refusal(key, value):
    data = make().to_json() | {key: value}
    data["checksum"] = sealed(data)
    text = json.dumps(data, sort_keys=True, indent=2, ensure_ascii=False) + "\n"
    with pytest.raises(CertificateError):
        parse_certificate(text)


@pytest.mark.parametrize("text", ["", "null", "[]", "{", "[" * 100_000, '{"schema": 1}', "1" * 10_000])
def test_other_text_is_one_clear_refusal(text):
    with pytest.raises(CertificateError):
        parse_certificate(text)


def test_publishable_needs_secure_bits_and_a_formal_guarantee_everywhere():
    assert make().publishable
    assert not make(bits="seeded").publishable
    assert not make(GUARANTEES[4]).publishable
    assert not make(guarantees=(), regions=()).publishable
    two = (GUARANTEES[0], GUARANTEES[4])
    assert not make(guarantees=two, regions=make().regions * 2, composition=compose(two)).publishable
    assert not make(strength="practically none").publishable
    assert not make(missing=("faces",)).publishable


def test_settings_hold_what_was_chosen_and_nothing_of_the_outcome():
    a, b = make(), make(output=None, warnings=(), composition=None)
    assert a.settings == b.settings
    assert a.settings != make(request=("whole",)).settings
    assert a.settings != make(bits="seeded").settings
