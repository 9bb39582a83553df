import hashlib
import json
from collections.abc import Iterator
from dataclasses import replace
from importlib.resources import files

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpveil.accounting import compose
from dpveil.core.certificate import Certificate, Output, parse_certificate
from dpveil.core.envelope import malformed_error
from dpveil.core.guarantee import Distance, Guarantee, Relation, Scope
from dpveil.core.region import Box
from dpveil.errors import INTACT, CertificateError, InvalidParameter
from records import record
from strategies import certificates

SCOPE = Scope("face: 2×2 pixels at 0,0", ("everything else",))
GUARANTEES = [
    Guarantee(kind="pure", epsilon="1/3", relation=Relation("m-pixels", 16), scope=SCOPE),
    Guarantee(kind="approximate", epsilon=1, delta=1e-6, relation=Relation("any-image"), scope=SCOPE),
    Guarantee(kind="zcdp", rho=0.5, relation=Relation("any-image"), scope=SCOPE),
    Guarantee(
        kind="metric",
        epsilon=1,
        metric="d",
        diameter=2,
        relation=Relation("latent-cell"),
        scope=SCOPE,
        distance=Distance.of("box-mean", codec="a" * 64, clip=0.5, steps=65536),
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
    rest = {key: value for key, value in data.items() if key not in ("checksum", "signature")}
    text = json.dumps(rest, sort_keys=True, indent=2, ensure_ascii=False) + "\n"
    return hashlib.sha256(text.encode()).hexdigest()


@pytest.fixture(scope="module")
def schema() -> jsonschema.Draft202012Validator:
    text = files("dpveil.core").joinpath("certificate.schema.json").read_text(encoding="utf-8")
    jsonschema.Draft202012Validator.check_schema(json.loads(text))
    return jsonschema.Draft202012Validator(json.loads(text))


@given(certificates())
def test_text_and_certificate_are_one_to_one_and_fit_the_schema(schema, certificate):
    text = certificate.to_text()
    data = json.loads(text)
    assert parse_certificate(text) == certificate
    assert parse_certificate(text).to_text() == text
    assert text == json.dumps(data, sort_keys=True, indent=2, ensure_ascii=False) + "\n"
    assert data["checksum"] == sealed(data)
    assert list(schema.iter_errors(data)) == []


@given(certificates(), st.data())
def test_no_edit_of_the_text_goes_unnoticed(certificate, data):
    text = certificate.to_text()
    start = data.draw(st.integers(0, len(text)), "start")
    end = data.draw(st.integers(start, min(len(text), start + 9)), "end")
    by = data.draw(st.text(max_size=3) | st.sampled_from([" ", "\n", "0", '"']), "by")
    edited = text[:start] + by + text[end:]
    if edited != text:
        with pytest.raises(CertificateError):
            parse_certificate(edited)


ODD = [None, True, False, 0, 1, -1, 4.0, 0.5, 1e300, "", "x", "4", "1/3", [], [None], [1], {}, {"a": 1}]
"""What stands in for every value, with a checksum that fits."""
LEFT_TO_VERIFY = {
    "output.sha256",
    "output.format",
    "strength",
    "request",
    "regions.0.box.0",
    "regions.0.box.1",
}
"""What the schema limits and a text may say all the same: `verify` holds it to the file and the numbers."""


def paths(data: object, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    inner = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    for key, value in inner:
        yield (*path, key)
        yield from paths(value, (*path, key))


@pytest.mark.parametrize("guarantee", GUARANTEES, ids=lambda g: g.kind)
def test_whatever_stands_in_for_a_value_is_refused_or_taken_as_it_is_written(guarantee, schema):
    region = {"box": [1, 2, 3, 4], "masked": 2, "origin": {"kind": "face", "number": 2, "found": True}}
    whole = make(guarantee).to_json() | {"regions": [region]}
    for path in paths(whole):
        for odd in ODD:
            data = held = json.loads(json.dumps(whole))
            for key in path[:-1]:
                held = held[key]
            held[path[-1]] = odd
            data["checksum"] = sealed(data)
            text = json.dumps(data, sort_keys=True, indent=2, ensure_ascii=False) + "\n"
            try:
                found = parse_certificate(text)
            except CertificateError:
                continue
            assert found.to_text() == text
            assert schema.is_valid(data) or ".".join(map(str, path)) in LEFT_TO_VERIFY


@pytest.mark.parametrize(
    "damage",
    [
        {"publishable": "yes"},
        {"guarantees": [{"kind": "pure"}]},
        {"extra": 1},
        {"schema": "dpveil.certificate/2"},
        {"strength": "firm"},
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


BOXED = {"box": [0, 0, 1, 1], "masked": None}


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("schema", "dpveil.certificate/3"),
        ("schema", "dpveil.certificate/2"),
        ("regions", [BOXED | {"origin": {"kind": "box", "more": 1}}]),
        ("regions", [BOXED | {"origin": {"kind": "box", "found": False}}]),  # as usual, and not written
        ("parameters", {"epsilon": float("nan")}),
    ],
)
def test_malformed_certificates_are_one_clear_refusal(key, value):
    data = make().to_json() | {key: value}
    data["checksum"] = sealed(data)
    text = json.dumps(data, sort_keys=True, indent=2, ensure_ascii=False) + "\n"
    with pytest.raises(CertificateError):
        parse_certificate(text)


FAULTS = {
    "regions": lambda data: data.pop("regions"),
    "output.sha256": lambda data: data["output"].pop("sha256"),
    "regions[0].box": lambda data: data["regions"][0].pop("box"),
    "regions[0].box[2]": lambda data: data["regions"][0].update(box=[0, 0, "evil", 1]),
    "guarantees[0].kind": lambda data: data["guarantees"][0].update(kind="evil\n"),
    "regions[0].origin.evil": lambda data: data["regions"][0].update(origin={"evil": "e" * 1000}),
}


@pytest.mark.parametrize("place", FAULTS)
def test_a_malformed_certificate_is_refused_by_the_name_of_its_field(place):
    data = json.loads(make().to_text())
    FAULTS[place](data)
    with pytest.raises(CertificateError) as caught:
        parse_certificate(json.dumps(data))
    assert f" its {place} " in caught.value.message
    assert caught.value.message.isprintable()
    assert len(caught.value.message) < 200
    assert caught.value.hint == INTACT
    assert "intact copy" in INTACT.partition(", or ")[0]


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


def test_a_copy_is_said_to_have_no_noise_and_never_unknown_bits():
    assert make(guarantees=(), regions=(), composition=None, bits="none").objections == (
        "no formal guarantee",
        "no noise was drawn",
    )
    assert make(bits="none").objections == ("no noise was drawn",)  # which no release of ours says
    assert make(bits="dice").objections == ("unknown bits",)


def test_settings_hold_what_was_chosen_and_nothing_of_the_outcome():
    a, b = make(), make(output=None, warnings=(), composition=None)
    assert a.settings == b.settings
    assert a.settings != make(request=("whole",)).settings
    assert a.settings != make(bits="seeded").settings


def test_only_short_values_of_a_malformed_certificate_are_told() -> None:
    short, long = (malformed_error(InvalidParameter("age", "7" * n, "is odd")).message for n in (5, 5000))
    assert short.endswith("its age is odd, and is '77777'")
    assert long.endswith("its age is odd")
