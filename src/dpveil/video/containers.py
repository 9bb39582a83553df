"""The file of a clip, its container, and the streams in it, as FFmpeg reads them.

FFmpeg's guess is never asked for: a playlist, or anything else that names other files, is no clip.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from io import BufferedReader
from pathlib import Path
from types import ModuleType
from typing import Any, Final

from dpveil.core.guarantee import count_noun
from dpveil.errors import ClipError, DPVeilError, UsageError
from dpveil.io.names import show_path
from dpveil.io.untrusted_files import without_blocking


def pyav() -> ModuleType:
    """Return PyAV with FFmpeg's log off; raises `UsageError` if it is not installed."""
    try:
        import av
        import av.logging
    except ImportError as error:
        hint = "pip install 'dpveil[video]'"
        raise UsageError("reading and writing clips needs PyAV", hint=hint) from error
    av.logging.set_level(None)
    return av


COPY_AGAIN: Final = "copy it again from where it was made, or repair it by ffmpeg -i IN -c copy OUT.mp4"


class Source:
    """The file of a clip, which messages call by the `name` that it was given by."""

    def __init__(self, path: str | Path, name: str = "") -> None:
        self.name, self.path = name or show_path(path), Path(path).absolute()

    def open(self) -> BufferedReader:
        """Open the file; raises `ClipError`, also for anything but a regular one."""
        try:
            file = open(self.path, "rb", opener=without_blocking)  # noqa: SIM115  the caller closes it
        except (OSError, ValueError) as error:
            problem = getattr(error, "strerror", None) or "not a valid file name"
            raise self.clip_error(problem[:1].lower() + problem[1:], "check the name of the file") from error
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            file.close()
            raise self.clip_error("it is not a regular file", "give the name of a clip's file")
        return file

    def head(self) -> bytes:
        """Return the first bytes, which tell the container; raises `ClipError`."""
        with self.open() as file:
            return file.read(600)

    def sha256(self) -> str:
        """Return the SHA-256 of the file's bytes, in hexadecimal; raises `ClipError`."""
        with self.open() as file:
            return hashlib.file_digest(file, "sha256").hexdigest()

    def clip_error(self, problem: str, remedy: str = COPY_AGAIN) -> ClipError:
        return ClipError(f"cannot read {self.name}: {problem}", hint=remedy)


MOV, MATROSKA, AVI, TS, PS = "mov", "matroska", "avi", "mpegts", "mpeg"
NAMES: Final = {MOV: "mp4", MATROSKA: "matroska", AVI: "avi", TS: "mpegts", PS: "mpeg"}
"""FFmpeg's demuxers that may read a clip, and what the format is called in `Facts`."""
FIRST_BOXES: Final = frozenset((b"ftyp", b"moov", b"mdat", b"wide", b"free", b"skip", b"pnot"))
"""Types of the first box of a MOV or MP4 file."""
KNOWN_CONTAINERS: Final = "save it as MP4, MOV, Matroska, WebM, AVI or MPEG"


def container_of(source: Source) -> str:
    """Return FFmpeg's name of the clip's container; raises `ClipError` for any other file."""
    head = source.head()
    if not head:
        raise source.clip_error("the file is empty")
    if head[4:8] in FIRST_BOXES:
        return MOV
    if head.startswith(b"\x1a\x45\xdf\xa3"):
        return MATROSKA
    if head.startswith(b"RIFF") and head[8:12] == b"AVI ":
        return AVI
    if any(head[at : at + 3 * step : step] == b"GGG" for step, at in ((188, 0), (192, 4))):
        return TS
    if head.startswith(b"\x00\x00\x01\xba"):
        return PS
    raise source.clip_error("it is not a clip in a format that dpveil reads", KNOWN_CONTAINERS)


DECODERS: Final = frozenset(
    {
        *("h264", "hevc", "vp8", "vp9", "av1", "libdav1d", "mpeg4", "mpeg1video", "mpeg2video", "h263"),
        *("mjpeg", "prores", "dnxhd", "ffv1", "dvvideo", "rawvideo", "png", "qtrle", "huffyuv", "ffvhuff"),
        *("theora", "vc1", "wmv3", "msmpeg4", "cinepak"),
    }
)
"""FFmpeg's decoders of pictures that a clip may need."""
SOUND: Final = frozenset(
    {
        *("aac", "mp3", "mp3float", "mp2", "mp2float", "ac3", "eac3", "opus", "libopus", "vorbis", "flac"),
        *("alac", "amrnb", "amrwb", "pcm_s16le", "pcm_s16be", "pcm_s24le", "pcm_s24be", "pcm_s32le"),
        *("pcm_s32be", "pcm_f32le", "pcm_f32be", "pcm_u8", "pcm_s8", "pcm_mulaw", "pcm_alaw", "adpcm_ima_qt"),
    }
)
"""FFmpeg's decoders of sound, which tell how a stream is stored; no sound is decoded."""
MOST_STREAMS: Final = 32  # most streams of a file
FORMATS: Final = {MOV: "mov,mp4,m4a,3gp,3g2,mj2", MATROSKA: "matroska,webm"}
"""Names of demuxers as FFmpeg lists them, where these are others."""
TIMEOUT: Final = 60.0  # seconds that FFmpeg may take to open a file, or to read one packet
BUFFER: Final = 2**18  # bytes that FFmpeg asks for at a time
USUAL: Final = frozenset(
    {
        *("major_brand", "minor_version", "compatible_brands", "handler_name", "vendor_id", "language"),
        *("encoder", "duration", "software"),
    }
)
"""Keys of metadata that name the format and the software, in lower case."""
STREAMS: Final = {"audio": "sound", "subtitle": "subtitle stream", "data": "data stream"}


@contextmanager
def open_container(source: Source, demuxer: str, most: int) -> Iterator[Any]:
    """Yield PyAV's container of the clip: it reads by `demuxer`, and opens nothing but `source`.

    FFmpeg decodes some frames to find out what the clip is, of `most` pixels; but none of streams whose kind
    it learns late, for it has no limit there. Raises `ClipError` if there is no such clip in the file.
    """
    options = {
        "codec_whitelist": ",".join(sorted(SOUND if demuxer in (TS, PS) else DECODERS | SOUND)),
        "format_whitelist": FORMATS.get(demuxer, demuxer),
        "protocol_whitelist": "none",
        "max_streams": str(MOST_STREAMS),
        "max_pixels": str(most),
        "err_detect": "explode",
    }
    how = {"metadata_errors": "replace", "buffer_size": BUFFER, "timeout": TIMEOUT, "io_open": _open_nothing}
    with source.open() as file:
        with as_clip_error(source, "it"):
            container = pyav().open(file, "r", format=demuxer, options=options, **how)
        with container:
            yield container


def _open_nothing(*_: object) -> Any:
    raise PermissionError("a clip names another file")


@contextmanager
def as_clip_error(source: Source, what: str) -> Iterator[None]:
    """Turn what PyAV raises into a `ClipError`: the file ends early, or `what` cannot be decoded."""
    av = pyav()
    try:
        yield
    except DPVeilError:
        raise
    except av.error.EOFError as error:
        raise source.clip_error("the file ends early") from error
    except (
        av.error.FFmpegError,
        *(OSError, ValueError, OverflowError, AssertionError, RuntimeError, MemoryError),
    ) as error:
        raise source.clip_error(f"{what} cannot be decoded") from error


def picture_stream(container: Any, source: Source) -> Any:
    """Return the stream of pictures that a player shows; raises `ClipError` if there is none to decode.

    It is the one marked as default, else the first; cover art is none.
    """
    from av.stream import Disposition

    found = [stream for stream in container.streams.video if not _is_cover(stream)]
    if not found:
        raise source.clip_error("it has no pictures", "give the name of a clip")
    chosen = next((stream for stream in found if stream.disposition & Disposition.default), found[0])
    context = chosen.codec_context
    if context is None or context.codec.name not in DECODERS:
        raise source.clip_error(
            "its pictures are coded in a way that dpveil does not read", "save it as H.264"
        )
    if any(key.lower() == "alpha_mode" and value != "0" for key, value in chosen.metadata.items()):
        raise source.clip_error("its pictures are transparent in part", "save it without transparency")
    return chosen


def _is_cover(stream: Any) -> bool:
    from av.stream import Disposition

    return bool(stream.disposition & (Disposition.attached_pic | Disposition.timed_thumbnails))


def left_out_streams(container: Any, chosen: Any) -> tuple[str, ...]:
    """Return in words what the file holds beside the pictures of `chosen` and the first sound stream."""
    counts: Counter[str] = Counter()
    for stream in container.streams:
        if stream.index == chosen.index:
            continue
        kind = STREAMS.get(stream.type, "attachment" if stream.type == "attachment" else "unknown stream")
        if stream.type == "video":
            kind = "cover picture" if _is_cover(stream) else "other picture stream"
        counts[kind] += 1
    counts["chapter"] = len(container.chapters())
    counts["further sound stream"] = max(0, counts.pop("sound", 0) - 1)
    words = [count_noun(count, name) for name, count in counts.items() if count]
    if any(
        any(key.lower() not in USUAL for key in part.metadata) for part in (container, *container.streams)
    ):
        words.append("metadata")
    return tuple(words)
