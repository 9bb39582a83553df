"""The certificate: what was released, what is promised and what is not, as canonical JSON."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from importlib.metadata import version
from typing import Final

from dpveil.core.guarantee import Guarantee, counted
from dpveil.core.numbers import Json
from dpveil.core.origin import REDUCED
from dpveil.core.parameters import check_count
from dpveil.core.region import RegionRecord
from dpveil.core.signature import Signature
from dpveil.errors import CertificateError

SCHEMA: Final = "dpveil.certificate/1"
OTHERS: Final = "others"
"""The `if_none` by which what one finder does not find is passed over where another finds something."""
UNPROTECTED: Final = "UNPROTECTED: this is a copy of the original and carries no guarantee"
SEEDED: Final = "NOT FOR PUBLICATION: made with a seeded bit source, so whoever guesses the seed undoes it"

MOST_BYTES: Final = 1 << 24
"""Largest certificate in bytes; MOST_REGIONS regions take up to 10 MB."""
MOST_REGIONS: Final = 10_000
"""Most regions, requested finders, missing finders and post-processing steps of one release."""
PUBLISHABLE: Final = frozenset({"strong", "moderate", "weak"})
"""Strengths of the composed guarantee with which a release may be published."""
FEW_COLOURS: Final = "the source's few colours may show what is hidden"
"""The objection to releases of sources whose palette or bit depth escapes (`shown_by_colours`)."""
MANIFEST: Final = "c2pa"
"""The kind of manifest that may be part of a picture's file."""
CHANNELS: Final = (1, 3)
"""Numbers of channels of grey and colour photos."""
UNSEALED: Final = ("checksum", "signature")
"""Members of a certificate that its checksum is not of."""
LINE: Final = "\n  "
"""What each of its members begins with."""
_quoted: Final = json.encoder.encode_basestring
_single: Final = json.JSONEncoder(ensure_ascii=False, allow_nan=False).encode


@cache
def this_tool() -> str:
    """Return the name and version of this program, as certificates state it."""
    return f"dpveil {version('dpveil')}"


def checksum(data: Mapping[str, Json]) -> str:
    """Return the SHA-256 in hexadecimal of a certificate's canonical form without `checksum` and `signature`.

    It detects edits of fields that no number depends on, such as a block size. It is not a signature:
    anybody can recompute it. It is the same whether the certificate is signed or not.
    """
    rest = {name: value for name, value in data.items() if name not in UNSEALED}
    return hashlib.sha256(canonical(rest).encode()).hexdigest()


def canonical(data: Mapping[str, Json]) -> str:
    """Return the canonical JSON text: sorted keys, indented by two spaces, one newline at the end.

    It is that of `json.dumps(data, sort_keys=True, indent=2, ensure_ascii=False)`, in half its time.
    Raises `ValueError` for NaN and infinities, and `TypeError` for what is no JSON.
    """
    return _written(data, "\n") + "\n"


def sealed(data: Mapping[str, Json]) -> str:
    """Return the canonical text of a certificate's object and its checksum, which is added or replaced."""
    members = {name: f"{_quoted(name)}: {_written(value, LINE)}" for name, value in data.items()}
    rest = _joined({name: text for name, text in members.items() if name not in UNSEALED})
    return _joined(members | {"checksum": f'"checksum": "{hashlib.sha256(rest.encode()).hexdigest()}"'})


def _joined(members: Mapping[str, str]) -> str:
    return "{" + LINE + ("," + LINE).join(members[name] for name in sorted(members)) + "\n}\n"


def _written(value: object, line: str) -> str:
    """Return the JSON of a value that begins in a line with this break and indentation."""
    if isinstance(value, str):
        return _quoted(value)
    if type(value) is int:
        return repr(value)
    deeper = line + "  "
    if isinstance(value, dict):
        parts = [f"{_quoted(name)}: {_written(value[name], deeper)}" for name in sorted(value)]
        return "{" + deeper + ("," + deeper).join(parts) + line + "}" if parts else "{}"
    if isinstance(value, list | tuple):
        parts = [_written(each, deeper) for each in value]
        return "[" + deeper + ("," + deeper).join(parts) + line + "]" if parts else "[]"
    return "null" if value is None else _single(value)


def shown_by_colours(regions: Iterable[RegionRecord]) -> bool:
    """Whether regions are of a source whose few colours may follow from what is hidden."""
    return any(each.origin.escapes and each.origin.grown_to in REDUCED for each in regions)


@dataclass(frozen=True)
class Output:
    """The file that a certificate describes: SHA-256 of its bytes, format, size in pixels, and channels.

    `manifest` is "c2pa" if a C2PA manifest is part of the file, else None. Raises `InvalidParameter` for
    sizes below 1, and `CertificateError` for other than 1 or 3 channels and for other manifests.
    """

    sha256: str
    format: str
    width: int
    height: int
    channels: int
    manifest: str | None = None

    def __post_init__(self) -> None:
        for name in ("width", "height", "channels"):
            check_count(getattr(self, name), name)
        if self.channels not in CHANNELS:
            raise CertificateError(f"the certificate is malformed: no photo has {self.channels} channels")
        if self.manifest not in (None, MANIFEST):
            raise CertificateError("the certificate is malformed: its file has another kind of manifest")

    def to_json(self) -> dict[str, Json]:
        """Return the JSON object of a certificate."""
        names = ("sha256", "format", "width", "height", "channels")
        held = {} if self.manifest is None else {"manifest": self.manifest}
        return {name: getattr(self, name) for name in names} | held


@dataclass(frozen=True, kw_only=True)
class Certificate:
    """A release described by data and sentences; `to_text` is its canonical form, byte for byte.

    `guarantees` and `regions` run in parallel, one entry per protected region. `composition` is their total
    for the photo (None for a copy) and `strength` its rating: strong, moderate, weak, "practically none", or
    None for a copy. `request` lists the regions as the user asked for them, `missing` those of them that were
    not found and stay in the clear, `post_processing` the steps applied after the draw in each region.
    `if_none` is `OTHERS` if what is missing was to be passed over, and else None.
    `terms` are what the licences of the trained files that it names allow, by those names.
    `output` is None until the release is saved. `signature` is None for one that is not signed, which detects
    inconsistency, not forgery. Source: docs, "Certificate".
    """

    method: str | None
    parameters: Mapping[str, Json]
    request: tuple[str, ...]
    guarantees: tuple[Guarantee, ...]
    regions: tuple[RegionRecord, ...]
    composition: Guarantee | None
    strength: str | None
    accountant: str
    bits: str
    missing: tuple[str, ...] = ()
    if_none: str | None = None
    post_processing: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    terms: Mapping[str, str] = field(default_factory=dict)
    output: Output | None = None
    tool: str = ""
    signature: Signature | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "tool", self.tool or this_tool())
        if len(self.guarantees) != len(self.regions):
            raise CertificateError("guarantees and regions differ in number")
        if self.if_none not in (None, OTHERS):
            raise CertificateError("the certificate is malformed: no release is made if_none so")
        if max(map(len, (self.regions, self.request, self.missing, self.post_processing))) > MOST_REGIONS:
            raise CertificateError(
                f"there are more than {MOST_REGIONS:,} regions or steps",
                hint="release a larger region around",
            )

    def __repr__(self) -> str:
        """Return the method, the composed guarantee and its strength in one line."""
        if self.composition is None:
            return "Certificate(an unprotected copy)"
        regions = counted(len(self.regions), "region")
        return f"Certificate({self.method}, {regions}, {self.composition}: {self.strength})"

    @property
    def passed_over(self) -> tuple[str, ...]:
        """The requests of which nothing was found, where that is what the user allowed (`OTHERS`)."""
        return () if self.if_none is None else self.missing

    @property
    def exposed(self) -> tuple[str, ...]:
        """The requests of which nothing was found, where every one was to be."""
        return self.missing if self.if_none is None else ()

    @property
    def publishable(self) -> bool:
        """Whether there are no `objections` to publishing the release."""
        return not self.objections

    @property
    def objections(self) -> tuple[str, ...]:
        """Why the release should not be published, in a few words each; empty if it may be.

        Publishing requires secure bits, a formal composed guarantee that is at least weak, that every
        requested region was found or passed over, and that the source's colours were not chosen for the whole
        picture, unless its owner says that this lost nothing.
        """
        formal = bool(self.guarantees) and self.composition is not None and self.composition.formal
        reasons = {
            "no formal guarantee": not formal,
            "practically none": formal and self.strength not in PUBLISHABLE,
            "seeded bits": self.bits == "seeded",
            "no noise was drawn": self.bits == "none",
            "unknown bits": self.bits not in ("secure", "seeded", "none"),
            "something that was asked for is in the clear": bool(self.exposed),
            FEW_COLOURS: shown_by_colours(self.regions),
        }
        return tuple(reason for reason, holds in reasons.items() if holds)

    @property
    def settings(self) -> dict[str, Json]:
        """The user's choices: releases with equal settings have the same guarantee."""
        return {
            "method": self.method,
            "parameters": dict(self.parameters),
            "request": list(self.request),
            "post_processing": list(self.post_processing),
            "bits": self.bits,
        }

    def to_json(self) -> dict[str, Json]:
        """Return the JSON object, with the keys of the published schema."""
        data = self.unsealed()
        return data | {"checksum": checksum(data)}

    def unsealed(self) -> dict[str, Json]:
        """Return the JSON object without its checksum."""
        signed = {} if self.signature is None else {"signature": self.signature.to_json()}
        passing = {} if self.if_none is None else {"if_none": self.if_none}
        data: dict[str, Json] = {
            "schema": SCHEMA,
            "tool": self.tool,
            **self.settings,
            "missing": list(self.missing),
            "publishable": self.publishable,
            "strength": self.strength,
            "guarantees": [guarantee.to_json() for guarantee in self.guarantees],
            "regions": [region.to_json() for region in self.regions],
            "composition": None if self.composition is None else self.composition.to_json(),
            "accountant": self.accountant,
            "warnings": list(self.warnings),
            "output": None if self.output is None else self.output.to_json(),
        }
        return data | passing | ({"terms": dict(self.terms)} if self.terms else {}) | signed

    def to_text(self) -> str:
        """Return the certificate's canonical text (`canonical`)."""
        return sealed(self.unsealed())

    def unsigned_text(self) -> str:
        """Return the canonical text without the signature: that which is signed."""
        return replace(self, signature=None).to_text()
