"""Opening a clip's file: one allowed demuxer, allowed decoders, its pictures, and what else it holds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

from dpveil.core.guarantee import counted
from dpveil.errors import DPVeilError
from dpveil.video.containers import MATROSKA, MOV, PS, TS, damaged, early
from dpveil.video.library import pyav
from dpveil.video.source import BARE, Source, View

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
MOST_STREAMS: Final = 32
"""Most streams of a file."""
FORMATS: Final = {MOV: "mov,mp4,m4a,3gp,3g2,mj2", MATROSKA: "matroska,webm"}
"""Names of demuxers as FFmpeg lists them, where these are others."""
LONG: Final = "too much of it has to be read before its first frame"
TIMEOUT: Final = 60.0
"""Seconds that FFmpeg may take to open a file, or to read one packet."""
OPENING: Final = 128 << 20
"""Bytes that FFmpeg may read to open a file, and those of a frame: it keeps much of them."""
BUFFER: Final = 2**18
"""Bytes that FFmpeg asks for at a time."""
USUAL: Final = frozenset(
    {
        *("major_brand", "minor_version", "compatible_brands", "handler_name", "vendor_id", "language"),
        *("encoder", "duration", "software"),
    }
)
"""Keys of metadata that name the format and the software, in lower case."""
KINDS: Final = {"audio": "sound", "subtitle": "subtitle stream", "data": "data stream"}


def opened(source: Source, demuxer: str, most: int) -> Any:
    """Return PyAV's container of the clip: it reads by `demuxer`, and opens nothing but `source`.

    FFmpeg decodes some frames to find out what the clip is, of `most` pixels; but none of streams whose kind
    it learns late, for it has no limit there. Raises `ClipError` if there is no such clip in the file, or
    if more than `OPENING` of it has to be read for that.
    """
    av = pyav()
    options = {
        "codec_whitelist": ",".join(sorted(SOUND if demuxer in (TS, PS) else DECODERS | SOUND)),
        "format_whitelist": FORMATS.get(demuxer, demuxer),
        "protocol_whitelist": "none",
        "max_streams": str(MOST_STREAMS),
        "max_pixels": str(most),
        "err_detect": "explode",
    }
    view = View(source, OPENING + 4 * most)
    try:
        with told(source, "it"):
            return av.open(
                view,
                "r",
                format=demuxer,
                options=options,
                metadata_errors="replace",
                buffer_size=BUFFER,
                timeout=TIMEOUT,
                io_open=_nothing,
            )
    finally:
        if view.spent:
            raise source.refused(LONG, BARE)
        view.left = None


def _nothing(*_: object) -> Any:
    """Open no other file, whatever the clip names."""
    raise PermissionError("a clip names another file")


@contextmanager
def told(source: Source, what: str) -> Iterator[None]:
    """Turn what PyAV raises into a `ClipError`: the file ends early, or `what` cannot be decoded."""
    av = pyav()
    try:
        yield
    except DPVeilError:
        raise
    except av.error.EOFError as error:
        raise early(source) from error
    except av.error.FFmpegError as error:
        raise damaged(source, f"{what} cannot be decoded") from error
    except (OSError, ValueError, OverflowError, AssertionError, RuntimeError, MemoryError) as error:
        raise damaged(source, f"{what} cannot be decoded") from error


def picture_stream(container: Any, source: Source) -> Any:
    """Return the stream of pictures that a player shows; raises `ClipError` if there is none to decode.

    It is the one marked as default, else the first; cover art is none.
    """
    from av.stream import Disposition

    found = [stream for stream in container.streams.video if not _is_cover(stream)]
    if not found:
        raise source.refused("it has no pictures", "give the name of a clip")
    chosen = next((stream for stream in found if stream.disposition & Disposition.default), found[0])
    context = chosen.codec_context
    if context is None or context.codec.name not in DECODERS:
        raise source.refused("its pictures are coded in a way that dpveil does not read", "save it as H.264")
    if any(key.lower() == "alpha_mode" and value != "0" for key, value in chosen.metadata.items()):
        raise source.refused("its pictures are transparent in part", "save it without transparency")
    return chosen


def _is_cover(stream: Any) -> bool:
    from av.stream import Disposition

    return bool(stream.disposition & (Disposition.attached_pic | Disposition.timed_thumbnails))


def _tells(metadata: Mapping[str, str]) -> bool:
    """Whether metadata has more than what every file of its format has."""
    return any(key.lower() not in USUAL for key in metadata)


def dropped(container: Any, chosen: Any) -> tuple[str, ...]:
    """Return in words what the file holds beside the pictures of `chosen` and the first sound stream."""
    counts: Counter[str] = Counter()
    for stream in container.streams:
        if stream.index == chosen.index:
            continue
        kind = KINDS.get(stream.type, "attachment" if stream.type == "attachment" else "unknown stream")
        if stream.type == "video":
            kind = "cover picture" if _is_cover(stream) else "other picture stream"
        counts[kind] += 1
    counts["chapter"] = len(container.chapters())
    counts["further sound stream"] = max(0, counts.pop("sound", 0) - 1)
    words = [counted(count, name) for name, count in counts.items() if count]
    if any(_tells(part.metadata) for part in (container, *container.streams)):
        words.append("metadata")
    return tuple(words)
