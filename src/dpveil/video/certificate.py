"""The certificate of a clip: one file beside it, written from data alone.

Guarantees, strength and units follow from that data, so that reading a certificate writes it again and
compares the texts. It states nothing of the original that was not paid for: no hash or
name of it, and no places, which the clip itself shows rounded.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, ClassVar, Final

from dpveil.catalogue import method_from_certificate
from dpveil.core.envelope import (
    PUBLISHABLE,
    Envelope,
    Signature,
    check_hash,
    parse,
    stated_composition,
    stated_signature,
    this_tool,
)
from dpveil.core.guarantee import Guarantee, count_noun
from dpveil.core.numbers import Json, exact, to_json
from dpveil.core.origin import FACE, KIND, WHOLE
from dpveil.errors import CertificateError, InvalidParameter
from dpveil.io import MAX_PIXELS
from dpveil.noise.bits import SECURE, SEEDED, UNKNOWN
from dpveil.postprocessing import step_from_certificate as stated_step
from dpveil.release.saving import CLIPS
from dpveil.release.words import bit_cautions
from dpveil.video.facts import ENDS, MOST_FRAMES, MOST_TRACKS, TrackRecord, check_text, check_whole_number
from dpveil.video.quote import ClipQuote, draws_faces

BITS: Final = (SECURE, SEEDED, UNKNOWN)
LONGEST: Final = 10**9  # clips are shorter than so many seconds


@dataclass(frozen=True)
class ClipOutput:
    """The file of a released clip: SHA-256 of its bytes, format, and seconds from first to last frame.

    Raises `InvalidParameter` for values that no released clip has, and `TypeError` for other types.
    """

    sha256: str
    format: str
    seconds: Fraction

    def __post_init__(self) -> None:
        check_hash(self.sha256)
        if self.format not in CLIPS.values():
            raise InvalidParameter("format", None, "is unknown", hint=f"one of {', '.join(CLIPS)}")
        if not 0 <= self.seconds < LONGEST:
            raise InvalidParameter("seconds", None, "are out of range")


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
        """The composed guarantee of the clip."""
        return self.quote.total

    @property
    def strength(self) -> str:
        """The strength of the total."""
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
        """Return what is stated about a clip."""
        quote = self.quote
        return {
            **{name: value for name, value in self.settings.items() if name != "keep_audio"},
            "bits": self.bits,
            "tracks": [track.to_json() for track in quote.tracks],
            "rasters": [None if size is None else list(size) for size in quote.sizes],
            "guarantees": [guarantee.numbers() for guarantee in quote.guarantees],
            "composition": stated_composition(self.composition),
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


def parse_certificate(text: str) -> VideoCertificate:
    """Return the certificate of a clip of which `text` is the canonical form; see `parse`.

    Guarantees are computed again from method, parameters, tracks and sizes.
    """
    return parse(text, VideoCertificate, _certificate)


def _certificate(data: Mapping[str, Any]) -> VideoCertificate:
    output = data["output"]
    return VideoCertificate(
        quote=_quote(data, output),
        bits=data["bits"],
        output=ClipOutput(output["sha256"], output["format"], exact(output["seconds"], "seconds")),
        terms={name: check_text(terms, "terms") for name, terms in data.get("terms", {}).items()},
        tool=data["tool"],
        signature=stated_signature(data),
    )


def _quote(data: Mapping[str, Any], output: Mapping[str, Any]) -> ClipQuote:
    width, height = (check_whole_number(output[name], name, 1, MAX_PIXELS) for name in ("width", "height"))
    if width * height > MAX_PIXELS:
        raise CertificateError(f"the certificate is of a clip of more than {MAX_PIXELS:,} pixels a frame")
    frames = check_whole_number(output["frames"], "frames", 1, MOST_FRAMES)
    for name in ("tracks", "rasters", "request", "post_processing"):
        if not isinstance(data[name], list) or len(data[name]) > MOST_TRACKS:
            raise CertificateError(
                f"the certificate has more than {count_noun(MOST_TRACKS, 'entry')} of {name}"
            )
    if not isinstance(output["audio"], bool):
        raise ValueError("neither with nor without sound")
    method = method_from_certificate(data["method"], data["parameters"])
    quote = ClipQuote(
        method=method,
        tracks=_tracks(data["tracks"], frames),
        sizes=tuple(None if size is None else _size(size, width, height) for size in data["rasters"]),
        request=tuple(check_text(each, "request") for each in data["request"]),
        post_processing=tuple(stated_step(each).description for each in data["post_processing"]),
        audio=output["audio"],
        width=width,
        height=height,
        frames=frames,
    )
    _check_sizes(quote)
    return quote


def _tracks(listed: list[Any], frames: int) -> tuple[TrackRecord, ...]:
    tracks = tuple(TrackRecord(**each) for each in listed)
    before = 0
    for track in tracks:
        before = check_whole_number(track.number, "number", before + 1, MOST_FRAMES)
        check_whole_number(track.first, "first", 0, check_whole_number(track.last, "last", 0, frames - 1))
        if track.person is not None:
            check_whole_number(track.person, "person", 1, MOST_FRAMES)
        if not KIND.fullmatch(track.kind) or track.end not in ENDS or not isinstance(track.visible, bool):
            raise ValueError("a track that cannot be")
    return tracks


def _size(size: list[Any], width: int, height: int) -> tuple[int, int]:
    across, down = size
    return check_whole_number(across, "width", 1, width), check_whole_number(down, "height", 1, height)


def _check_sizes(quote: ClipQuote) -> None:
    for group, size in zip(quote.persons, quote.sizes, strict=True):
        kind = group[0].kind
        if any(track.kind != kind for track in group):
            raise ValueError("one person of two kinds")
        crop = draws_faces(quote.method) and kind != WHOLE
        if (size is None and not crop) or (size is not None and crop and kind == FACE):
            raise ValueError("a raster where a crop is read, or none where it is")
        if kind == WHOLE and size != (quote.width, quote.height):
            raise ValueError("less than the whole picture")
    if not quote.persons:
        raise ValueError("nothing is replaced")
