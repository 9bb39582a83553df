"""The certificate of a photo: what was released, what is promised and what is not, as data."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Annotated, ClassVar, Final

from dpveil.core.envelope import PUBLISHABLE, Envelope, Signature, malformed_error, parse, this_tool
from dpveil.core.guarantee import Guarantee, count_noun, strength_text
from dpveil.core.parameters import CEILING
from dpveil.core.rationals import Json
from dpveil.core.region import RegionRecord
from dpveil.core.region_origin import REDUCED
from dpveil.core.strict_json import Parameters, between, check_fields, one_of, read
from dpveil.errors import CertificateError, InvalidParameter

OTHERS: Final = "others"
"""The `if_none` by which what one finder does not find is passed over where another finds something."""
UNPROTECTED: Final = "UNPROTECTED: this is a copy of the original and carries no guarantee"
SEEDED: Final = "NOT FOR PUBLICATION: made with a seeded bit source, so whoever guesses the seed undoes it"

MOST_REGIONS: Final = 10_000
"""Most regions, requested finders, missing finders and post-processing steps of one release."""
FEW_COLOURS: Final = "the source's few colours may show what is hidden"
"""The objection to releases of sources whose palette or bit depth escapes (`shown_by_colours`)."""
MANIFEST: Final = "c2pa"  # the kind of manifest that may be part of a picture's file


def shown_by_colours(regions: Iterable[RegionRecord]) -> bool:
    """Whether regions are of a source whose few colours may follow from what is hidden."""
    return any(each.origin.escapes and each.origin.grown_to in REDUCED for each in regions)


@dataclass(frozen=True)
class Output:
    """The file that a certificate describes: SHA-256 of its bytes, format, size in pixels, and channels.

    `manifest` is "c2pa" if a C2PA manifest is part of the file, else None. `metadata` has the texts that the
    file's EXIF states, which its reader compares.
    """

    sha256: str
    format: str
    width: Annotated[int, between(1, CEILING)]
    height: Annotated[int, between(1, CEILING)]
    channels: Annotated[int, one_of(1, 3)]
    manifest: Annotated[str, one_of(MANIFEST)] | None = None
    metadata: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        check_fields(self)

    def to_json(self) -> dict[str, Json]:
        return {name: value for name, value in vars(self).items() if value}


@dataclass(frozen=True, kw_only=True)
class Certificate(Envelope):
    """The release of a photo described by data; `to_text` is its canonical form, byte for byte.

    `guarantees` and `regions` run in parallel, one entry per protected region. `composition` is their total
    for the photo (None for a copy) and `strength` its rating: strong, moderate, weak, "practically none", or
    None for a copy. `request` lists the regions as the user asked for them, `missing` those of them that were
    not found and stay in the clear, `post_processing` the steps applied after the draw in each region.
    `if_none` is `OTHERS` if what is missing was to be passed over, and else None.
    `terms` are what the licences of the trained files that it names allow, by those names.
    `warnings` are sentences for who looks at the release; like scopes of guarantees they are made anew, and
    are in no certificate.
    `columns` names what of the original's sample lies beside the release in the clear, in a shard or Parquet
    file. `output` is None until the release is saved. `signature` is None for one that is not signed, which
    detects inconsistency, not forgery. Source: docs, "Certificate".
    """

    kind: ClassVar[str] = "photo"

    method: str | None
    parameters: Parameters
    request: tuple[str, ...]
    guarantees: tuple[Guarantee, ...]
    regions: tuple[RegionRecord, ...]
    composition: Guarantee | None
    strength: str | None
    accountant: str
    bits: str
    missing: tuple[str, ...] = ()
    if_none: Annotated[str, one_of(OTHERS)] | None = None
    post_processing: tuple[str, ...] = ()
    warnings: tuple[str, ...] = field(default=(), compare=False)
    terms: Mapping[str, str] = field(default_factory=dict)
    columns: tuple[str, ...] = ()
    output: Output | None = None
    tool: str = ""
    signature: Signature | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "tool", self.tool or this_tool())
        if len(self.guarantees) != len(self.regions):
            raise CertificateError("guarantees and regions differ in number")
        if max(map(len, (self.regions, self.request, self.missing, self.post_processing))) > MOST_REGIONS:
            raise CertificateError(
                f"there are more than {MOST_REGIONS:,} regions or steps",
                hint="release a larger region around",
            )

    def __repr__(self) -> str:
        """Return the method, the composed guarantee and its strength in one line."""
        if self.composition is None:
            return "Certificate(an unprotected copy)"
        regions = count_noun(len(self.regions), "region")
        promise = f"{self.composition}: {strength_text(self.composition, self.strength)}"
        return f"Certificate({self.method}, {regions}, {promise})"

    @property
    def passed_over(self) -> tuple[str, ...]:
        """The requests of which nothing was found, where that is what the user allowed (`OTHERS`)."""
        return () if self.if_none is None else self.missing

    @property
    def exposed_requests(self) -> tuple[str, ...]:
        """The requests of which nothing was found, where every one was to be."""
        return self.missing if self.if_none is None else ()

    @property
    def in_the_clear(self) -> tuple[str, ...]:
        """What the release shows of the original, in sentences; none where it was only parsed."""
        return () if self.composition is None else self.composition.scope.in_the_clear

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
            "something that was asked for is in the clear": bool(self.exposed_requests),
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

    def members(self) -> dict[str, Json]:
        given: dict[str, Json] = {
            "if_none": self.if_none,
            "terms": dict(self.terms) or None,
            "columns": list(self.columns) or None,
        }
        return {
            **self.settings,
            "missing": list(self.missing),
            "strength": self.strength,
            "guarantees": [guarantee.numbers() for guarantee in self.guarantees],
            "regions": [region.to_json() for region in self.regions],
            "composition": None if self.composition is None else self.composition.numbers(),
            "accountant": self.accountant,
            "output": None if self.output is None else self.output.to_json(),
            **{name: value for name, value in given.items() if value is not None},
        }


def parse_certificate(text: str) -> Certificate:
    """Return the certificate of a photo of which `text` is the canonical form; see `parse`."""
    return parse(text, Certificate)


def parse_guarantee(data: object) -> Guarantee:
    """Return the guarantee that a received JSON object states; raises `CertificateError`.

    >>> parse_guarantee({})
    Traceback (most recent call last):
    ...
    dpveil.errors.CertificateError: the certificate is malformed: its guarantee.kind is missing: get an ...
    """
    try:
        return read(Guarantee, data, "guarantee")
    except InvalidParameter as error:
        raise malformed_error(error) from error
