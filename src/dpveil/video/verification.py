"""Verifies that a released clip is the one its certificate describes, but for what its pictures show."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Final

from dpveil.core.certificate import MOST_BYTES
from dpveil.core.guarantee import Guarantee, counted
from dpveil.errors import INTACT, ClipError, DPVeilError, UsageError
from dpveil.io import is_present, received
from dpveil.io.names import check_path, quoted
from dpveil.io.received import opened
from dpveil.io.refused import LINK, Refused
from dpveil.release.keys import PublicKey
from dpveil.release.saving import certificate_path, image_path
from dpveil.release.trust import judged
from dpveil.release.verification import FORGED, UNFORESEEN, Trusted, asked, too_weak
from dpveil.release.verified import Verification
from dpveil.release.words import bit_cautions, few_only, verdict
from dpveil.video.certificate import FORMATS, VideoCertificate
from dpveil.video.certificate_file import parse_certificate
from dpveil.video.containers import container_of
from dpveil.video.layout import Strange, coded_frames
from dpveil.video.library import pyav
from dpveil.video.reading import open_clip
from dpveil.video.source import Source
from dpveil.video.units import most_frames
from dpveil.video.words import VOICES, of_clip

if TYPE_CHECKING:
    from typing import BinaryIO

PART: Final = 1 << 20
"""Bytes that are hashed at a time."""
ISO, EBML = (4, b"ftyp"), (0, b"\x1aE\xdf\xa3")
MAGIC: Final = {"mp4": ISO, "mov": ISO, "mkv": EBML, "webm": EBML}
"""What files of a format begin with, and at which byte."""
ROUNDED: Final = {"mkv": Fraction(1, 500), "webm": Fraction(1, 500)}
"""Seconds by which times may differ in formats that store milliseconds; others store exact times."""
TICK: Final = Fraction(1, 10**6)
UNREAD: Final = "only the clip's bytes are checked, as PyAV is not installed (pip install 'dpveil[video]')"
MORE: Final = "the clip holds more than pictures and sound, or is not laid out as dpveil writes it: {}"
SEEN: Final = "{} of {:,} stay visible, as the user chose"


@dataclass(frozen=True, repr=False)
class ClipVerification(Verification):
    """The result of verifying one clip: as that of a photo, about a certificate of a clip.

    `unread` says that nothing but the bytes of the clip was checked, as what reads clips is not installed.
    """

    certificate: VideoCertificate | None = None  # type: ignore[assignment]
    unread: bool = False

    @property
    def costs(self) -> tuple[Guarantee, ...]:
        """What the clip costs, draw by draw."""
        return () if self.certificate is None else self.certificate.quote.guarantees

    @property
    def objections(self) -> tuple[str, ...]:
        """Why the clip may not be published, in a few words each."""
        return () if self.certificate is None else self.certificate.objections

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes about a consistent clip, recomputed, not copied from its certificate; else empty."""
        stated = self.certificate
        if self.status != "consistent" or stated is None:
            return ()
        quote = stated.quote
        visible = sum(track.visible for track in quote.tracks)
        seen = (SEEN.format(counted(visible, "track"), len(quote.tracks)),) * bool(visible)
        few = (few_only(quote.total),) * (few_only(quote.total) in quote.warnings)
        length = counted(quote.frames, "frame")
        voices = (VOICES,) * quote.audio
        notes = (
            length,
            *bit_cautions(stated.bits),
            *map(of_clip, verdict(stated.composition)),
            *few,
            *seen,
            *voices,
        )
        return (*notes, *((UNREAD,) * self.unread), *self.signature)


def is_clip(path: Path) -> bool:
    """Whether a path has the name of a clip in a format of `FORMATS`, or that of the certificate of one.

    >>> is_clip(Path("private.mp4")), is_clip(Path("private.mp4.certificate.json")), is_clip(Path("a.png"))
    (True, True, False)
    """
    clip = image_path(path)
    return clip is not None and clip.suffix.lower() in FORMATS


def verify_clip(path: str | Path, *, at_least: str | None = None, trust: Trusted = None) -> ClipVerification:
    """Return whether the clip at `path`, which may also name its certificate, fits its certificate.

    Recomputes the hash of the file's bytes, and the guarantee from method, parameters, tracks and rasters;
    with PyAV also the size of the clip, its frames, its length, and what it holds beside pictures. Only the
    two files are opened, and neither may be a link. Problems of the files are listed in the result, one
    line each. `at_least` and `trust` are as in `dpveil.verify`.
    """
    given = Path(check_path(path, "give the name of a released clip"))
    least, trusted = asked(at_least, trust)
    clip = image_path(given)
    if clip is None:
        problem = "the name is that of no clip's certificate"
        return _judged(ClipVerification(given, "inconsistent", (problem,)), least, trusted)
    return _judged(_verified(clip), least, trusted)


def _judged(
    found: ClipVerification, least: str | None, trusted: Sequence[PublicKey] | None
) -> ClipVerification:
    return judged(replace(found, refused=too_weak(found, least)), trusted)


def _verified(clip: Path) -> ClipVerification:
    beside = certificate_path(clip)
    if not is_present(beside):
        problem = "the file has no certificate" if is_present(clip) else "the file does not exist"
        return ClipVerification(clip, "missing", (f"{problem}: only what dpveil released can be verified",))
    try:
        certificate = parse_certificate(received(beside, MOST_BYTES).decode())
        problems = tuple(map(quoted, _problems(clip, certificate)))
    except Refused as refusal:
        return ClipVerification(clip, "inconsistent", (f"the certificate {refusal.problem}",))
    except UnicodeDecodeError:
        return ClipVerification(clip, "inconsistent", (f"the certificate is not UTF-8 text: {INTACT}",))
    except DPVeilError as error:
        return ClipVerification(clip, "inconsistent", (quoted(str(error)),))
    except Exception as error:  # noqa: BLE001  an untrusted file must not end a run over many
        return ClipVerification(clip, "inconsistent", (f"{UNFORESEEN} ({type(error).__name__})",))
    if problems:
        return ClipVerification(clip, "inconsistent", problems, certificate)
    return ClipVerification(clip, "consistent", (), certificate, unread=not installed())


def _problems(clip: Path, certificate: VideoCertificate) -> Iterator[str]:
    """Yield why a clip is not the one that its certificate describes."""
    output, signature = certificate.output, certificate.signature
    if signature is not None and not signature.fits(certificate.unsigned_text()):
        yield FORGED
    if FORMATS.get(clip.suffix.lower()) != output.format:
        yield f"its name does not end as that of a {output.format} file"
    try:
        if not is_present(clip):
            raise Refused("is missing", INTACT)
        if clip.is_symlink():
            raise Refused(LINK, INTACT)
        with opened(clip) as (file, _):
            digest, head = _hash(file)
    except Refused as refusal:
        yield f"the clip {refusal.problem}"
        return
    at, magic = MAGIC[output.format]
    if digest != output.sha256:
        yield "the clip was changed: its SHA-256 is not the one in the certificate"
    elif head[at : at + len(magic)] != magic:
        yield f"the clip is not a {output.format} file"
    elif installed():
        try:
            yield from _content_problems(clip, certificate)
        except ClipError as error:
            yield f"the clip cannot be read: {error.message}"


def _content_problems(clip: Path, certificate: VideoCertificate) -> Iterator[str]:
    """Yield in what a clip differs from what its certificate says of it, but for what its pictures show."""
    quote, event = certificate.quote, certificate.quote.event
    with closing(Source(clip)) as source:
        container_of(source)
        try:
            coded = coded_frames(source, MAGIC[certificate.output.format] == EBML)
        except Strange as found:
            yield MORE.format(found)
            return
    with open_clip(clip) as held:
        facts = held.facts
    size, rounded = f"{facts.width}×{facts.height}", ROUNDED.get(certificate.output.format, Fraction(0))
    if (facts.width, facts.height, facts.frames) != (quote.width, quote.height, quote.frames):
        yield f"the clip has {counted(facts.frames, 'frame')} of {size}, not as the certificate says"
    elif abs(facts.seconds - certificate.output.seconds) > rounded:
        yield "the clip is not as long as the certificate says"
    elif event is not None and most_frames(facts, max(TICK, event.seconds - rounded)) > event.frames:
        yield "an event can change more frames than the certificate says"
    if facts.audio != quote.audio:
        yield f"the clip has {'sound' if facts.audio else 'no sound'}, not as the certificate says"
    if coded != facts.frames:
        yield MORE.format(f"{coded:,} coded frames, of which {facts.frames:,} are shown")
    if facts.dropped:
        yield f"the clip holds more than pictures and sound: {', '.join(facts.dropped)}"


def installed() -> bool:
    """Whether what reads clips is installed."""
    try:
        pyav()
    except UsageError:
        return False
    return True


def _hash(file: BinaryIO) -> tuple[str, bytes]:
    """Return the SHA-256 of a file, and the bytes that it begins with."""
    digest, head = hashlib.sha256(), b""
    while part := file.read(PART):
        head = head or part[:16]
        digest.update(part)
    return digest.hexdigest(), head
