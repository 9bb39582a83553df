"""The certificate: what was released, what is promised about it, and what is not, as canonical JSON."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any, Final

from dpveil.core.guarantee import KINDS, Guarantee, Relation, Scope
from dpveil.core.numbers import Json
from dpveil.core.parameters import check_count
from dpveil.core.region import Box, Region, in_words
from dpveil.errors import CertificateError, DPVeilError

SCHEMA: Final = "dpveil.certificate/1"
UNPROTECTED: Final = "UNPROTECTED: this is a copy of the original and carries no guarantee"
SEEDED: Final = "NOT FOR PUBLICATION: made with a seeded bit source, so whoever guesses the seed undoes it"


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


def _check_texts(*values: object) -> None:
    if not all(isinstance(value, str) for value in values):
        raise CertificateError("a text of the certificate is not text")


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
        _check_texts(self.sha256, self.format)

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
        _check_texts(self.method or "", self.accountant, self.bits, self.tool, *self.request)
        _check_texts(*self.post_processing, *self.warnings, *(record.label for record in self.regions))
        for guarantee in (*self.guarantees, *filter(None, [self.composition])):
            scope = guarantee.scope
            _check_texts(
                scope.covers, *scope.in_the_clear, guarantee.metric or "", *(guarantee.broken_by or ())
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
        """Return the certificate that `text` is the canonical form of; else raise `CertificateError`."""
        try:
            certificate = _parse(json.loads(text))
            canonical = certificate.to_text()
        except CertificateError:
            raise
        except (DPVeilError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise CertificateError(
                f"the certificate is malformed ({type(error).__name__})", hint="release the photo again"
            ) from error
        if canonical != text:
            raise CertificateError(
                "the certificate was edited: its text or checksum is not what dpveil wrote",
                hint="do not rely on it; release the photo again",
            )
        return certificate


def _parse(data: dict[str, Any]) -> Certificate:
    if data["schema"] != SCHEMA:
        raise CertificateError(f"unknown certificate schema {data['schema']!r}", hint=f"expected {SCHEMA}")
    return Certificate(
        method=data["method"],
        parameters=data["parameters"],
        request=tuple(data["request"]),
        guarantees=tuple(_guarantee(entry) for entry in data["guarantees"]),
        regions=tuple(_record(entry) for entry in data["regions"]),
        composition=None if data["composition"] is None else _guarantee(data["composition"]),
        accountant=data["accountant"],
        bits=data["bits"],
        post_processing=tuple(data["post_processing"]),
        warnings=tuple(data["warnings"]),
        output=None if data["output"] is None else Output(**data["output"]),
        tool=data["tool"],
    )


def _record(data: dict[str, Any]) -> RegionRecord:
    return RegionRecord(data["label"], Box(*data["box"]), data["masked"], data["found"])


def _guarantee(data: dict[str, Any]) -> Guarantee:
    fields = {name: data[name] for name in KINDS[data["kind"]]}
    if "broken_by" in fields:
        fields["broken_by"] = tuple(fields["broken_by"])
    relation = Relation(data["relation"]["name"], data["relation"].get("m"))
    scope = Scope(data["scope"]["covers"], tuple(data["scope"]["in_the_clear"]))
    return Guarantee(kind=data["kind"], relation=relation, scope=scope, **fields)
