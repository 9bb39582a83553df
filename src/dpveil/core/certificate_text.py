"""Parsing certificates from untrusted text: every value is checked, and no file that it names is opened."""

from __future__ import annotations

import json
from dataclasses import fields
from typing import Any, cast

from dpveil.core.certificate import (
    SCHEMA,
    Certificate,
    Output,
)
from dpveil.core.distance import Distance
from dpveil.core.guarantee import KINDS, Guarantee, Relation, Scope
from dpveil.core.numbers import Json
from dpveil.core.origin import Origin
from dpveil.core.region import Box, RegionRecord
from dpveil.core.signature import Signature
from dpveil.core.stated_json import loads
from dpveil.errors import INTACT, CertificateError, DPVeilError, InvalidParameter


def parse_certificate(text: str) -> Certificate:
    """Return the certificate of which `text` is the canonical form, in schema /1.

    Raises `CertificateError` for any other text, including numbers of more than MOST_DIGITS characters and
    nesting deeper than the schema's. Callers that read a file limit it to MOST_BYTES.
    """
    try:
        data = _object(loads(text))
        if data["schema"] != SCHEMA:
            hint = f"this version reads {SCHEMA}; a newer one may read it"
            raise CertificateError("the certificate has another schema", hint=hint)
        certificate = _certificate(data)
        as_written = certificate.to_text()
    except CertificateError:
        raise
    except (DPVeilError, ValueError, KeyError, TypeError, RecursionError, MemoryError) as error:
        raise _malformed(_fault(error)) from error
    if as_written != text:
        raise CertificateError(
            "the certificate was edited: its text or checksum is not what dpveil wrote",
            hint=f"do not rely on it; {INTACT}",
        )
    return certificate


def parse_guarantee(data: object) -> Guarantee:
    """Return the guarantee that a received JSON object states; raises `CertificateError`.

    >>> parse_guarantee({}).kind
    Traceback (most recent call last):
    ...
    dpveil.errors.CertificateError: the certificate is malformed: it has no 'relation': get an intact copy ...
    """
    try:
        return _guarantee(data)
    except CertificateError:
        raise
    except (DPVeilError, ValueError, KeyError, TypeError, RecursionError, MemoryError) as error:
        raise _malformed(_fault(error)) from error


def _malformed(fault: str) -> CertificateError:
    return CertificateError(f"the certificate is malformed: {fault}", hint=INTACT)


def _fault(error: BaseException) -> str:
    """Return what is wrong with a certificate without quoting it: it is untrusted."""
    if isinstance(error, InvalidParameter):
        return f"its {error.name} is not as dpveil writes it"
    if type(error) is KeyError:
        return f"it has no {error.args[0]!r}"
    if isinstance(error, json.JSONDecodeError | RecursionError):
        return "it is not the JSON of one"
    return "a value is of another kind than dpveil writes"


def _certificate(data: dict[str, Any]) -> Certificate:
    return Certificate(
        method=None if data["method"] is None else _text(data["method"]),
        parameters={name: _single(value) for name, value in _object(data["parameters"]).items()},
        request=_texts(data["request"]),
        guarantees=tuple(_guarantee(entry) for entry in _list(data["guarantees"])),
        composition=None if data["composition"] is None else _guarantee(data["composition"]),
        accountant=_text(data["accountant"]),
        bits=_text(data["bits"]),
        post_processing=_texts(data["post_processing"]),
        warnings=_texts(data["warnings"]),
        terms={name: _text(terms) for name, terms in _object(data.get("terms", {})).items()},
        output=None if data["output"] is None else _output(_object(data["output"])),
        tool=_text(data["tool"]),
        regions=tuple(_record(entry) for entry in _list(data["regions"])),
        strength=None if data["strength"] is None else _text(data["strength"]),
        missing=_texts(data["missing"]),
        if_none=_text(data["if_none"]) if "if_none" in data else None,
        signature=None if "signature" not in data else _signature(_object(data["signature"])),
    )


def _output(data: dict[str, Any]) -> Output:
    for name in ("sha256", "format"):
        _text(data[name])
    needed = {field.name: data[field.name] for field in fields(Output) if field.name != "manifest"}
    return Output(**needed, manifest=_text(data["manifest"]) if "manifest" in data else None)


def _signature(data: dict[str, Any]) -> Signature:
    return Signature(_text(data["public_key"]), _text(data["value"]))


def _record(data: Any) -> RegionRecord:
    return RegionRecord(_box(data), Origin.from_json(_object(data["origin"])), data["masked"])


def _box(data: Any) -> Box:
    x, y, w, h = _list(_object(data)["box"])
    return Box(x, y, w, h)


def _guarantee(data: Any) -> Guarantee:
    relation, scope = _object(_object(data)["relation"]), _object(data["scope"])
    if _text(data["kind"]) not in KINDS:
        raise _malformed("a guarantee is of an unknown kind")
    numbers: dict[str, Any] = {name: data[name] for name in KINDS[data["kind"]]}
    if "broken_by" in numbers:
        numbers["broken_by"] = _texts(numbers["broken_by"])
    if "metric" in numbers:
        numbers["metric"] = _text(numbers["metric"])
    if "distance" in data:
        numbers["distance"] = Distance.from_json(_object(data["distance"]))
    return Guarantee(
        kind=data["kind"],
        relation=Relation(_text(relation["name"]), relation.get("m")),
        scope=Scope(_text(scope["covers"]), _texts(scope["in_the_clear"])),
        **numbers,
    )


def _object(value: object) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise _malformed("an object is expected")
    return value


def _list(value: object) -> list[Any]:
    if not isinstance(value, list):
        raise _malformed("a list is expected")
    return value


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise _malformed("a text is not text")
    return value


def _texts(value: object) -> tuple[str, ...]:
    return tuple(_text(entry) for entry in _list(value))


def _single(value: object) -> Json:
    if isinstance(value, list | dict):
        raise _malformed("a parameter is not a single value")
    return cast(Json, value)
