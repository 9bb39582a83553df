"""The certificate of a clip: one file beside it, written from data alone.

Guarantees, strength and units follow from that data, so that reading a certificate writes it again and
compares the texts. It states nothing of the original that was not paid for: no hash or
name of it, and no places, which the clip itself shows rounded.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Annotated, Any, ClassVar, Final

from dpveil.catalogue import method_from_certificate
from dpveil.core.envelope import PUBLISHABLE, Envelope, Signature, parse, this_tool
from dpveil.core.guarantee import Guarantee, count_noun
from dpveil.core.rationals import Json, to_json
from dpveil.core.region_origin import FACE, WHOLE
from dpveil.core.strict_json import Check, Hash, Parameters, at_most, between, one_of, read_object
from dpveil.errors import InvalidParameter
from dpveil.io.reading import MAX_PIXELS
from dpveil.noise.bits import SECURE, SEEDED, UNKNOWN
from dpveil.postprocessing import step_from_certificate as stated_step
from dpveil.release.saving import CLIPS
from dpveil.release.words import bit_cautions
from dpveil.video.facts import MOST_FRAMES, MOST_TRACKS, Text, TrackRecord
from dpveil.video.quote import ClipQuote, draws_faces

BITS: Final = (SECURE, SEEDED, UNKNOWN)
SHORT: Final = Check(lambda seconds: 0 <= seconds < 10**9, "are not those of a clip")


@dataclass(frozen=True)
class ClipOutput:
    """The file of a released clip: SHA-256 of its bytes, format, and seconds from first to last frame."""

    sha256: Hash
    format: Annotated[str, one_of(*CLIPS.values())]
    seconds: Annotated[Fraction, SHORT]


@dataclass(frozen=True, kw_only=True)
class VideoCertificate(Envelope):
    """What a released clip promises: the `quote` of its plan, the kind of `bits`, and the file.

    `to_text` is its canonical form, byte for byte. Without a signature it shows inconsistency, not forgery.
    """

    kind: ClassVar[str] = "clip"

    quote: ClipQuote
    bits: str
    output: ClipOutput
    terms: Mapping[str, str] = field(default_factory=dict)
    tool: str = field(default_factory=this_tool)
    signature: Signature | None = None

    def __post_init__(self) -> None:
        if self.bits not in BITS:
            raise InvalidParameter("bits", None, "is unknown", hint=f"one of {', '.join(BITS)}")

    def __repr__(self) -> str:
        """Return the method, the composed guarantee and its strength in one line."""
        draws = count_noun(len(self.quote.guarantees), "draw")
        return f"VideoCertificate({self.quote.method.name}, {draws}, {self.composition}: {self.strength})"

    @property
    def composition(self) -> Guarantee:
        return self.quote.total

    @property
    def strength(self) -> str:
        return self.quote.strength

    @property
    def warnings(self) -> tuple[str, ...]:
        """What whoever uses the clip has to know."""
        return (*bit_cautions(self.bits), *self.quote.warnings)

    @property
    def objections(self) -> tuple[str, ...]:
        """Why the clip should not be published, in a few words each; empty if it may be."""
        formal = self.composition.formal
        reasons = {
            "no formal guarantee": not formal,
            "practically none": formal and self.strength not in PUBLISHABLE,
            "seeded bits": self.bits == SEEDED,
            "unknown bits": self.bits == UNKNOWN,
        }
        return tuple(reason for reason, holds in reasons.items() if holds)

    @property
    def settings(self) -> dict[str, Json]:
        """The user's choices but for tracks, as `VideoPlan.settings`."""
        return self.quote.settings

    def members(self) -> dict[str, Json]:
        quote = self.quote
        return {
            **{name: value for name, value in self.settings.items() if name != "keep_audio"},
            "bits": self.bits,
            "tracks": [track.to_json() for track in quote.tracks],
            "rasters": [None if size is None else list(size) for size in quote.sizes],
            "guarantees": [guarantee.numbers() for guarantee in quote.guarantees],
            "composition": self.composition.numbers(),
            "strength": self.strength,
            "accountant": quote.accountant,
            "output": {
                "sha256": self.output.sha256,
                "format": self.output.format,
                "width": quote.width,
                "height": quote.height,
                "frames": quote.frames,
                "seconds": to_json(self.output.seconds),
                "audio": quote.audio,
            },
            **({"terms": dict(self.terms)} if self.terms else {}),
        }

    @classmethod
    def of_members(cls, data: Mapping[str, Any]) -> VideoCertificate:
        """Return the certificate with these members; raises `InvalidParameter` and `MissingPlugin`."""
        stated = read_object(_Stated, data)
        file = stated.output
        quote = ClipQuote(
            method=method_from_certificate(stated.method, stated.parameters),
            tracks=stated.tracks,
            sizes=stated.rasters,
            request=stated.request,
            post_processing=tuple(stated_step(each).description for each in stated.post_processing),
            audio=file.audio,
            width=file.width,
            height=file.height,
            frames=file.frames,
        )
        _check(quote)
        output = ClipOutput(file.sha256, file.format, file.seconds)
        about = {"terms": stated.terms, "tool": stated.tool, "signature": stated.signature}
        return cls(quote=quote, bits=stated.bits, output=output, **about)  # type: ignore[arg-type]


Whole = Annotated[int, between(1, MAX_PIXELS)]
Listed = at_most(MOST_TRACKS)


@dataclass(frozen=True, kw_only=True)
class _File(ClipOutput):
    """What a certificate states of the file, and of its frames."""

    width: Whole
    height: Whole
    frames: Annotated[int, between(1, MOST_FRAMES)]
    audio: bool


@dataclass(frozen=True)
class _Stated:
    """A clip's certificate as it is written; what follows from its tracks is not read."""

    method: str
    parameters: Parameters
    request: Annotated[tuple[Text, ...], Listed]
    post_processing: Annotated[tuple[str, ...], Listed]
    bits: str
    tracks: Annotated[tuple[TrackRecord, ...], Listed]
    rasters: Annotated[tuple[tuple[Whole, Whole] | None, ...], Listed]
    output: _File
    tool: str
    guarantees: Any
    composition: Any
    strength: Any
    accountant: Any
    terms: Mapping[str, Text] = field(default_factory=dict)
    signature: Signature | None = None


def parse_certificate(text: str) -> VideoCertificate:
    """Return the certificate of a clip of which `text` is the canonical form; see `parse`.

    Guarantees are computed again from method, parameters, tracks and sizes.
    """
    return parse(text, VideoCertificate)


def _check(quote: ClipQuote) -> None:
    """Raise `InvalidParameter` for tracks and rasters that no clip has."""
    size, before = (quote.width, quote.height), 0
    possible = quote.width * quote.height <= MAX_PIXELS and bool(quote.persons)
    possible &= all(each is None or (each[0] <= size[0] and each[1] <= size[1]) for each in quote.sizes)
    possible &= len(quote.sizes) == len(quote.persons)
    for track in quote.tracks:
        possible &= before < track.number and track.first <= track.last < quote.frames
        before = track.number
    for group, raster in zip(quote.persons, quote.sizes, strict=False):
        kind = group[0].kind
        possible &= all(track.kind == kind for track in group)
        crop = draws_faces(quote.method) and kind != WHOLE
        # a face's crop has no raster, what covers something else in a crop's place may have one
        possible &= crop if raster is None else not (crop and kind == FACE)
        possible &= kind != WHOLE or raster == size
    if not possible:
        raise InvalidParameter("tracks", None, "and rasters are those of no clip")
