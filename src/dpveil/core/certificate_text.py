"""Parsing certificates from untrusted text: every value is checked, and no file that it names is opened.

This version writes schema /2. Schema /1 describes regions by labels in words, which are parsed here, and
only here, into origins.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import fields
from typing import Any, Final, cast

from dpveil.core.certificate import (
    MOST_WORDING,
    SCHEMA,
    Certificate,
    Output,
    sealed,
)
from dpveil.core.distance import Distance
from dpveil.core.guarantee import KINDS, Guarantee, Relation, Scope
from dpveil.core.numbers import Json
from dpveil.core.origin import FACE, KIND, WHOLE, Origin
from dpveil.core.photo import ESCAPING
from dpveil.core.region import Box, RegionRecord
from dpveil.core.signature import Signature
from dpveil.core.stated_json import loads
from dpveil.errors import INTACT, CertificateError, DPVeilError, InvalidParameter

FORMER: Final = "dpveil.certificate/1"
LABEL: Final = re.compile(
    r"(?P<head>head of )?(?P<kind>[^,]*?)(?: (?P<number>[1-9][0-9]{0,5}))?"
    r"(?:, grown to the (?P<codec>\w{1,20}) blocks)?"
)
"""The label of a region in schema /1."""
FALLBACK: Final = "whole photo, as no region was found"
NOT_FOUND: Final = re.compile(
    r"NOT FOUND: (.*); what it would have protected is released as it is", re.DOTALL
)
"""The warning by which schema /1 states a missing region."""


def parse_certificate(text: str) -> Certificate:
    """Return the certificate of which `text` is the canonical form, in schema /2 or /1.

    Raises `CertificateError` for any other text, including numbers of more than MOST_DIGITS characters and
    nesting deeper than the schema's. Callers that read a file limit it to MOST_BYTES.
    """
    try:
        data = _object(loads(text))
        read = READERS.get(_text(data["schema"]))
        if read is None:
            hint = f"this version reads {' and '.join(READERS)}; a newer one may read it"
            raise CertificateError("the certificate has another schema", hint=hint)
        certificate, again = read(data)
        as_written = sealed(again)
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


def _present(data: dict[str, Any]) -> tuple[Certificate, dict[str, Json]]:
    certificate = Certificate(
        **_common(data),
        regions=tuple(_record(entry) for entry in _list(data["regions"])),
        strength=None if data["strength"] is None else _text(data["strength"]),
        missing=_texts(data["missing"]),
        if_none=_text(data["if_none"]) if "if_none" in data else None,
        wording=_whole(data["wording"]),
        signature=None if "signature" not in data else _signature(_object(data["signature"])),
    )
    return certificate, certificate.unsealed()


def _former(data: dict[str, Any]) -> tuple[Certificate, dict[str, Json]]:
    """Return a certificate of schema /1, which states no strength, and the JSON object it must have."""
    labels = [_text(_object(entry)["label"]) for entry in _list(data["regions"])]
    certificate = Certificate(
        **_common(data),
        regions=tuple(map(_former_record, _list(data["regions"]))),
        strength=None,
        missing=tuple(m[1] for text in _texts(data["warnings"]) if (m := NOT_FOUND.fullmatch(text))),
        wording=1,
        schema=FORMER,
    )
    total = certificate.composition
    if any(part is not None and part.distance is not None for part in (*certificate.guarantees, total)):
        raise _malformed("schema /1 has no distances")
    if certificate.output is not None and certificate.output.manifest is not None:
        raise _malformed("schema /1 has no manifests")
    said = total is not None and total.formal and total.delta != 1 and bool(certificate.guarantees)
    again = {n: v for n, v in certificate.unsealed().items() if n not in ("wording", "missing", "strength")}
    stated = [_object(entry) for entry in _list(data["regions"])]
    boxes = [list(_list(entry["box"])) for entry in stated]
    again |= {
        "schema": FORMER,
        "publishable": said and certificate.bits == "secure",
        "regions": [
            {"label": label, "box": box, "masked": record.masked, "found": entry["found"]}
            for label, box, record, entry in zip(labels, boxes, certificate.regions, stated, strict=True)
        ],
    }
    return certificate, again


READERS: Final[dict[str, Callable[[dict[str, Any]], tuple[Certificate, dict[str, Json]]]]] = {
    SCHEMA: _present,
    FORMER: _former,
}


def _common(data: dict[str, Any]) -> dict[str, Any]:
    """Return the fields that both schemas have, checked."""
    return {
        "method": None if data["method"] is None else _text(data["method"]),
        "parameters": {name: _single(value) for name, value in _object(data["parameters"]).items()},
        "request": _texts(data["request"]),
        "guarantees": tuple(_guarantee(entry) for entry in _list(data["guarantees"])),
        "composition": None if data["composition"] is None else _guarantee(data["composition"]),
        "accountant": _text(data["accountant"]),
        "bits": _text(data["bits"]),
        "post_processing": _texts(data["post_processing"]),
        "warnings": _texts(data["warnings"]),
        "output": None if data["output"] is None else _output(_object(data["output"])),
        "tool": _text(data["tool"]),
    }


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


def _former_record(data: Any) -> RegionRecord:
    box, found = _box(data), data["found"]
    if not isinstance(found, bool):
        raise _malformed("whether a region was found is not stated")
    return RegionRecord(
        box,
        former_origin(_text(data["label"]), found=found, masked=data["masked"] is not None),
        data["masked"],
    )


def former_origin(label: str, *, found: bool, masked: bool = True) -> Origin:
    """Return the origin that a label of schema /1 describes; a label of the user's own becomes "region".

    `found` and `masked` are the other facts that schema /1 states; only a masked region can be outlined.

    >>> former_origin("head of face 2, grown to the JPEG blocks", found=True).in_words()
    'head of face 2, grown to the JPEG blocks'
    """
    if label in ("whole photo", FALLBACK):
        return Origin(WHOLE, found=found, fallback=label == FALLBACK)
    parts = LABEL.fullmatch(label)
    if (
        parts is None
        or (parts["head"] and not masked)
        or not KIND.fullmatch(parts["kind"])
        or parts["kind"].startswith(WHOLE)
    ):
        return Origin("region", found=found)
    codec, number = parts["codec"], parts["number"]
    return Origin(
        kind=parts["kind"] if found or parts["kind"] != FACE else "region",
        number=None if number is None else int(number),
        found=found,
        outlined=parts["head"] is not None,
        grown_to=codec,
        escapes=codec in ESCAPING,
    )


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


def _whole(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 < value < MOST_WORDING:
        raise _malformed("its wording is not an integer")
    return value


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
