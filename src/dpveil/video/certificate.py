"""The certificate of a clip: one file beside it, written from data alone.

Guarantees, strength, units, warnings and sentences follow from that data, so that reading a certificate
writes it again and compares the texts. It states nothing of the original that was not paid for: no hash or
name of it, and no places, which the clip itself shows rounded.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Final

from dpveil.core.certificate import PUBLISHABLE, UNSEALED, canonical, checksum, this_tool
from dpveil.core.guarantee import Guarantee, counted
from dpveil.core.numbers import Json, to_json
from dpveil.core.signature import Signature, message
from dpveil.errors import InvalidParameter
from dpveil.noise.bits import SECURE, SEEDED, UNKNOWN
from dpveil.release.keys import SigningKey
from dpveil.release.words import bit_cautions
from dpveil.video import words
from dpveil.video.quote import ClipQuote

SCHEMA: Final = "dpveil.video-certificate/1"
BITS: Final = (SECURE, SEEDED, UNKNOWN)
FORMATS: Final = {".mp4": "mp4", ".m4v": "mp4", ".mov": "mov", ".mkv": "mkv", ".webm": "webm"}
"""Formats of released clips, by suffix."""
HASH: Final = re.compile(r"[0-9a-f]{64}")
LONGEST: Final = 10**9
"""Clips are shorter than so many seconds."""


@dataclass(frozen=True)
class ClipOutput:
    """The file of a released clip: SHA-256 of its bytes, format, and seconds from first to last frame.

    Raises `InvalidParameter` for values that no released clip has, and `TypeError` for other types.
    """

    sha256: str
    format: str
    seconds: Fraction

    def __post_init__(self) -> None:
        if not HASH.fullmatch(self.sha256):
            raise InvalidParameter("sha256", None, "is no SHA-256")
        if self.format not in FORMATS.values():
            raise InvalidParameter("format", None, "is unknown", hint=f"one of {', '.join(FORMATS)}")
        if not 0 <= self.seconds < LONGEST:
            raise InvalidParameter("seconds", None, "are out of range")


@dataclass(frozen=True, kw_only=True)
class VideoCertificate:
    """What a released clip promises: the `quote` of its plan, the kind of `bits`, and the file.

    `to_text` is its canonical form, byte for byte. Without a signature it shows inconsistency, not forgery.
    """

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
        draws = counted(len(self.quote.guarantees), "draw")
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
    def publishable(self) -> bool:
        """Whether there are no `objections` to publishing the clip."""
        return not self.objections

    @property
    def settings(self) -> dict[str, Json]:
        """The user's choices but for tracks, as `VideoPlan.settings`."""
        quote, event = self.quote, self.quote.event
        return {
            "method": quote.method.name,
            "parameters": quote.method.parameters(),
            "request": list(quote.request),
            "post_processing": list(quote.post_processing),
            "over_time": quote.over_time,
            "pose": quote.pose,
            "on_lost": quote.on_lost,
            "keep_audio": quote.audio,
            "event_seconds": None if event is None else to_json(event.seconds),
            "event_times": 1 if event is None else event.times,
        }

    def to_json(self) -> dict[str, Json]:
        """Return the JSON object."""
        quote = self.quote
        chosen = {n: v for n, v in self.settings.items() if n not in ("event_seconds", "event_times")}
        data: dict[str, Json] = {
            "schema": SCHEMA,
            "tool": self.tool,
            "wording": words.WORDING,
            **{name: value for name, value in chosen.items() if name != "keep_audio"},
            "bits": self.bits,
            "tracks": [track.to_json() for track in quote.tracks],
            "rasters": [None if size is None else list(size) for size in quote.sizes],
            "guarantees": [guarantee.to_json() for guarantee in quote.guarantees],
            "composition": self.composition.to_json(),
            "strength": self.strength,
            "publishable": self.publishable,
            "accountant": quote.accountant,
            "units": quote.units,
            "event": None if quote.event is None else quote.event.to_json(),
            "warnings": list(self.warnings),
            "output": {
                "sha256": self.output.sha256,
                "format": self.output.format,
                "width": quote.width,
                "height": quote.height,
                "frames": quote.frames,
                "seconds": to_json(self.output.seconds),
                "audio": quote.audio,
            },
        }
        data |= {"terms": dict(self.terms)} if self.terms else {}
        signed = {} if self.signature is None else {"signature": self.signature.to_json()}
        return data | {"checksum": checksum(data)} | signed

    def to_text(self) -> str:
        """Return the canonical text."""
        return canonical(self.to_json())

    def unsigned_text(self) -> str:
        """Return the canonical text without the signature: that which is signed."""
        return canonical({n: v for n, v in self.to_json().items() if n != UNSEALED[1]})

    def signed(self, key: SigningKey) -> VideoCertificate:
        """Return the certificate with the signature of a key, in the place of any other."""
        value = key.private.sign(message(self.unsigned_text()))
        return replace(self, signature=Signature(key.public.data.hex(), value.hex()))
