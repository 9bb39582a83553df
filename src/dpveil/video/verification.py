"""Verifies that a released clip is the one its certificate describes, but for what its pictures show."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Final

from dpveil.assets.file_reference import forbids_commerce
from dpveil.core.guarantee import count_noun
from dpveil.errors import ClipError, UsageError
from dpveil.io.unreadable import LINK
from dpveil.io.untrusted_files import is_present
from dpveil.release.saving import CLIPS, read_certificate
from dpveil.release.verification import FORGED, RESEARCH_ONLY, Trusted, Verification, examine, verify_file
from dpveil.release.words import bit_cautions, few_pixels_warning, total_warnings
from dpveil.video.certificate import VideoCertificate
from dpveil.video.containers import Source, pyav
from dpveil.video.decoding import MAX_PIXELS
from dpveil.video.reading import Clip
from dpveil.video.words import VOICES, of_clip

MATROSKA: Final = ("mkv", "webm")
ROUNDED: Final = dict.fromkeys(MATROSKA, Fraction(1, 500))
"""Seconds by which times may differ in formats that store milliseconds; others store exact times."""


def content_problems(
    source: Source, certificate: VideoCertificate, *, max_pixels: int = MAX_PIXELS
) -> Iterator[str]:
    """Yield in what a clip differs from what its certificate says of it, but for what its pictures show.

    Decodes no more than its first frames. Raises `ClipError` if it cannot be read, or a frame has more than
    `max_pixels`.
    """
    quote, form = certificate.quote, certificate.output.format
    facts = Clip(source, max_pixels, searched=False).facts
    size, rounded = f"{facts.width}×{facts.height}", ROUNDED.get(form, Fraction(0))
    if (facts.width, facts.height, facts.frames) != (quote.width, quote.height, quote.frames):
        yield f"the clip has {count_noun(facts.frames, 'frame')} of {size}, not as the certificate says"
    elif abs(facts.seconds - certificate.output.seconds) > rounded:
        yield "the clip is not as long as the certificate says"
    if facts.audio != quote.audio:
        yield f"the clip has {'sound' if facts.audio else 'no sound'}, not as the certificate says"
    if facts.dropped:
        yield f"the clip holds more than pictures and sound: {', '.join(facts.dropped)}"


ISO, EBML = (4, b"ftyp"), (0, b"\x1aE\xdf\xa3")
MAGIC: Final = {"mp4": ISO, "mov": ISO, "mkv": EBML, "webm": EBML}
"""What files of a format begin with, and at which byte."""
UNREAD: Final = "only the clip's bytes are checked, as PyAV is not installed (pip install 'dpveil[video]')"
TRACKS_VISIBLE: Final = "of {}, {:,} stay as they are, by choice"


@dataclass(frozen=True, repr=False)
class ClipVerification(Verification):
    """The result of verifying one clip: as that of a photo, about a certificate of a clip.

    `unread` says that nothing but the bytes of the clip was checked, as what reads clips is not installed.
    """

    certificate: VideoCertificate | None = None  # type: ignore[assignment]
    unread: bool = False

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes about a consistent clip, recomputed, not copied from its certificate; else empty."""
        stated = self.certificate
        if self.status != "consistent" or stated is None:
            return ()
        quote = stated.quote
        visible, few = sum(track.visible for track in quote.tracks), few_pixels_warning(quote.total)
        return (
            count_noun(quote.frames, "frame"),
            *bit_cautions(stated.bits),
            *map(of_clip, total_warnings(stated.composition)),
            *((few,) * (few in quote.warnings)),
            *((TRACKS_VISIBLE.format(count_noun(len(quote.tracks), "track"), visible),) * bool(visible)),
            *((VOICES,) * quote.audio),
            *((RESEARCH_ONLY,) * forbids_commerce(stated.terms.values())),
            *((UNREAD,) * self.unread),
            *self.signature,
        )


def verify_clip(path: str | Path, *, at_least: str | None = None, trust: Trusted = None) -> ClipVerification:
    """Return whether the clip at `path`, which may also name its certificate, fits its certificate.

    Recomputes the hash of the file's bytes, and the guarantee from method, parameters, tracks and rasters;
    with PyAV also the size of the clip, its frames, its length, and what it holds beside pictures. Only the
    two files are opened, and neither may be a link. Problems of the files are listed in the result, one
    line each. `at_least` and `trust` are as in `dpveil.verify`.
    """

    def clip(file: Path) -> ClipVerification:
        stated = partial(read_certificate, file, VideoCertificate)
        found = examine(ClipVerification, file, stated, partial(_problems, file))
        return replace(found, unread=not found.problems and not can_read_clips())

    return verify_file(path, clip, ClipVerification, at_least=at_least, trust=trust)


def _problems(clip: Path, certificate: VideoCertificate) -> Iterator[str]:
    output = certificate.output
    if not certificate.signature_fits():
        yield FORGED
    if CLIPS.get(clip.suffix.lower()) != output.format:
        yield f"its name does not end as that of a {output.format} file"
    if not is_present(clip) or clip.is_symlink():
        yield f"the clip {LINK if is_present(clip) else 'is missing'}"
        return
    at, magic = MAGIC[output.format]
    try:
        source = Source(clip)
        if source.sha256() != output.sha256:
            yield "the clip was changed: its SHA-256 is not the one in the certificate"
        elif not source.head()[at:].startswith(magic):
            yield f"the clip is not a {output.format} file"
        elif can_read_clips():
            yield from content_problems(source, certificate)
    except ClipError as error:
        yield f"the clip cannot be read: {error.message}"


def can_read_clips() -> bool:
    try:
        pyav()
    except UsageError:
        return False
    return True
