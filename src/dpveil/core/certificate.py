"""The certificate: what was released, what is promised about it, and what is not, as canonical JSON."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from typing import Any, Final, cast

from dpveil.core.guarantee import KINDS, Guarantee, Relation, Scope
from dpveil.core.numbers import Json
from dpveil.core.parameters import check_count
from dpveil.core.region import Box, Region, in_words
from dpveil.errors import CertificateError, DPVeilError

SCHEMA: Final = "dpveil.certificate/1"
UNPROTECTED: Final = "UNPROTECTED: this is a copy of the original and carries no guarantee"
SEEDED: Final = "NOT FOR PUBLICATION: made with a seeded bit source, so whoever guesses the seed undoes it"


MOST_BYTES: Final = 1 << 23
"""Bytes of the largest certificate that is read or written; MOST_REGIONS regions take up to 7.1 MB."""
MOST_REGIONS: Final = 10_000
"""Regions of one release, choices of regions that were asked for, and steps after the draw."""
CHANNELS: Final = (1, 3)
"""Of grey photos and of those in colour."""
MOST_DIGITS: Final = 32
"""Letters of a JSON number: honest ones are at most 2^53 or the shortest decimal of a float."""


@cache
def this_tool() -> str:
    """Return the name and version of this program, as certificates state it."""
    return f"dpveil {version('dpveil')}"


def checksum(data: Mapping[str, Json]) -> str:
    """Return the SHA-256 of a certificate's canonical form without its own `checksum`.

    It shows edits of what no number depends on, such as a block size; who recomputes it is not stopped.
    """
    rest = {key: value for key, value in data.items() if key != "checksum"}
    return hashlib.sha256(_canonical(rest).encode()).hexdigest()


def _canonical(data: Mapping[str, Json]) -> str:
    return json.dumps(data, sort_keys=True, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


@dataclass(frozen=True)
class RegionRecord:
    """Where a guarantee applies: its label, its box, how many pixels of the box a mask covers, and `found`:
    whether it was chosen by looking at the photo's pixels.
    """

    label: str
    box: Box
    masked: int | None = None
    found: bool = False

    def __post_init__(self) -> None:
        if not isinstance(self.found, bool):
            raise CertificateError("whether a region was found is neither true nor false")
        if self.masked is not None:
            check_count(self.masked, "masked")

    @classmethod
    def of(cls, region: Region) -> RegionRecord:
        """Return the record of a region, without its mask."""
        masked = None if region.mask is None else region.pixels
        return cls(region.label, region.box, masked, region.found)

    @property
    def full(self) -> bool:
        """Whether every pixel of the box is replaced."""
        return self.masked is None or self.masked == self.box.w * self.box.h

    def in_words(self) -> str:
        """Return what a certificate says the region is: as `Region.in_words`."""
        return in_words(self.label, self.box, self.masked)

    def to_json(self) -> dict[str, Json]:
        """Return the JSON object of a certificate."""
        box = [self.box.x, self.box.y, self.box.w, self.box.h]
        return {"label": self.label, "box": list(box), "masked": self.masked, "found": self.found}


@dataclass(frozen=True)
class Output:
    """The file that a certificate is about: SHA-256 of its bytes, format, and size in pixels."""

    sha256: str
    format: str
    width: int
    height: int
    channels: int

    def __post_init__(self) -> None:
        for name in ("width", "height", "channels"):
            check_count(getattr(self, name), name)
        if self.channels not in CHANNELS:
            raise CertificateError(f"the certificate is malformed: no photo has {self.channels} channels")
        for text in (self.sha256, self.format):
            _text(text)

    def to_json(self) -> dict[str, Json]:
        """Return the JSON object of a certificate."""
        return {name: getattr(self, name) for name in ("sha256", "format", "width", "height", "channels")}


@dataclass(frozen=True, kw_only=True)
class Certificate:
    """A release in words and numbers; `to_text` is its canonical form, byte for byte.

    `guarantees` and `regions` run in parallel, one entry per protected region; `composition` is what they
    cost the photo together (None for a copy). `request` is the regions as the user asked for them,
    `post_processing` the steps that followed the draw in each of them.
    `output` is None until the release is saved. Certificates are not signed: they show inconsistency, not
    forgery. Source: docs, "Certificate".
    """

    method: str | None
    parameters: Mapping[str, Json]
    request: tuple[str, ...]
    guarantees: tuple[Guarantee, ...]
    regions: tuple[RegionRecord, ...]
    composition: Guarantee | None
    accountant: str
    bits: str
    post_processing: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    output: Output | None = None
    tool: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "tool", self.tool or this_tool())
        if len(self.guarantees) != len(self.regions):
            raise CertificateError("guarantees and regions differ in number")
        if max(len(self.regions), len(self.request), len(self.post_processing)) > MOST_REGIONS:
            raise CertificateError(
                f"there are more than {MOST_REGIONS:,} regions or steps",
                hint="release a larger region around",
            )

    @property
    def publishable(self) -> bool:
        """Whether a formal guarantee says anything, and nobody can know the bits that it rests on."""
        total = self.composition
        said = total is not None and total.formal and total.delta != 1
        return said and bool(self.guarantees) and self.bits == "secure"

    @property
    def settings(self) -> dict[str, Json]:
        """What the user chose: two releases with equal settings promise the same."""
        return {
            "method": self.method,
            "parameters": dict(self.parameters),
            "request": list(self.request),
            "post_processing": list(self.post_processing),
            "bits": self.bits,
        }

    def to_json(self) -> dict[str, Json]:
        """Return the JSON object; keys as in the published schema."""
        data: dict[str, Json] = {
            "schema": SCHEMA,
            "tool": self.tool,
            **self.settings,
            "publishable": self.publishable,
            "guarantees": [guarantee.to_json() for guarantee in self.guarantees],
            "regions": [region.to_json() for region in self.regions],
            "composition": None if self.composition is None else self.composition.to_json(),
            "accountant": self.accountant,
            "warnings": list(self.warnings),
            "output": None if self.output is None else self.output.to_json(),
        }
        return data | {"checksum": checksum(data)}

    def to_text(self) -> str:
        """Return the canonical form: sorted keys, two spaces, UTF-8 letters, one newline at the end."""
        return _canonical(self.to_json())

    @classmethod
    def from_text(cls, text: str) -> Certificate:
        """Return the certificate that `text` is the canonical form of; else raise `CertificateError`.

        Nothing of it is believed: texts are texts, numbers have at most MOST_DIGITS letters, and nothing is
        nested deeper than the schema says. Whoever reads a file reads at most MOST_BYTES of it.
        """
        try:
            certificate = _parse(
                json.loads(text, parse_int=_int, parse_float=_float, parse_constant=_refuse_constant)
            )
            canonical = certificate.to_text()
        except CertificateError:
            raise
        except (DPVeilError, ValueError, KeyError, TypeError, RecursionError, MemoryError) as error:
            raise CertificateError(
                f"the certificate is malformed ({type(error).__name__})", hint="release the photo again"
            ) from error
        if canonical != text:
            raise CertificateError(
                "the certificate was edited: its text or checksum is not what dpveil wrote",
                hint="do not rely on it; release the photo again",
            )
        return certificate


def _int(digits: str) -> int:
    return int(_short(digits))


def _float(digits: str) -> float:
    return float(_short(digits))


def _short(digits: str) -> str:
    if len(digits) > MOST_DIGITS:
        raise ValueError(f"a number of {len(digits)} digits")
    return digits


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is no number")


def _parse(data: Any) -> Certificate:
    data = _object(data)
    if data["schema"] != SCHEMA:
        raise CertificateError("the certificate has another schema", hint=f"expected {SCHEMA}")
    output = None if data["output"] is None else _object(data["output"])
    return Certificate(
        method=None if data["method"] is None else _text(data["method"]),
        parameters={name: _single(value) for name, value in _object(data["parameters"]).items()},
        request=_texts(data["request"]),
        guarantees=tuple(_guarantee(entry) for entry in _list(data["guarantees"])),
        regions=tuple(_record(entry) for entry in _list(data["regions"])),
        composition=None if data["composition"] is None else _guarantee(data["composition"]),
        accountant=_text(data["accountant"]),
        bits=_text(data["bits"]),
        post_processing=_texts(data["post_processing"]),
        warnings=_texts(data["warnings"]),
        output=output if output is None else Output(**output),
        tool=_text(data["tool"]),
    )


def _record(data: Any) -> RegionRecord:
    x, y, w, h = _list(_object(data)["box"])
    return RegionRecord(_text(data["label"]), Box(x, y, w, h), data["masked"], data["found"])


def _guarantee(data: Any) -> Guarantee:
    relation, scope = _object(_object(data)["relation"]), _object(data["scope"])
    numbers: dict[str, Any] = {name: data[name] for name in KINDS[_text(data["kind"])]}
    if "broken_by" in numbers:
        numbers["broken_by"] = _texts(numbers["broken_by"])
    if "metric" in numbers:
        numbers["metric"] = _text(numbers["metric"])
    return Guarantee(
        kind=data["kind"],
        relation=Relation(_text(relation["name"]), relation.get("m")),
        scope=Scope(_text(scope["covers"]), _texts(scope["in_the_clear"])),
        **numbers,
    )


def _object(value: object) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise CertificateError("the certificate is malformed: an object is expected")
    return value


def _list(value: object) -> list[Any]:
    if not isinstance(value, list):
        raise CertificateError("the certificate is malformed: a list is expected")
    return value


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise CertificateError("the certificate is malformed: a text is not text")
    return value


def _texts(value: object) -> tuple[str, ...]:
    return tuple(_text(entry) for entry in _list(value))


def _single(value: object) -> Json:
    if isinstance(value, list | dict):
        raise CertificateError("the certificate is malformed: a parameter is no single value")
    return cast(Json, value)
