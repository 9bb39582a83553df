"""A clip's file, opened once, and its pictures, decoded in the order in which they are shown.

FFmpeg's guess is never asked for: a playlist, or anything else that names other files, is no clip.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections import Counter, deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from types import ModuleType
from typing import Any, Final

import cv2
import numpy as np

from dpveil.core.arrays import UInt8
from dpveil.core.guarantee import count_noun
from dpveil.errors import ClipError, DPVeilError, UsageError
from dpveil.io.names import show_path


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


PIECE: Final = 2**20
"""Bytes hashed at a time."""
CHANGED: Final = "the file changed while it was read"


class Source:
    """The regular file at `path`, open until `close`; any number of `View` read it at the same time."""

    handle = -1

    def __init__(self, path: str | Path, name: str = "") -> None:
        self.name, self.path = name or show_path(path), str(Path(path).absolute())
        try:
            self.handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        except (OSError, ValueError) as error:
            raise self.read_error(error) from error
        self.state = self._file_state()
        if not stat.S_ISREG(os.fstat(self.handle).st_mode):
            self.close()
            raise self.clip_error("it is not a regular file", "give the name of a clip's file")
        self.size = self.state[2]

    def close(self) -> None:
        """Close the file; closing it again does nothing."""
        if self.handle >= 0:
            os.close(self.handle)
        self.handle = -1

    def __del__(self) -> None:
        self.close()

    def read(self, at: int, size: int) -> bytes:
        """Return up to `size` bytes from the offset `at` on; raises `ClipError` for a disk's error."""
        try:
            return os.pread(self.handle, size, at)
        except OSError as error:
            raise self.read_error(error) from error

    def sha256(self) -> str:
        """Return the SHA-256 of the file's bytes."""
        digest, at = hashlib.sha256(), 0
        while piece := self.read(at, PIECE):
            digest.update(piece)
            at += len(piece)
        return digest.hexdigest()

    def check(self) -> None:
        """Raise `ClipError` if the file was written to since it was opened."""
        if self._file_state() != self.state:
            raise self.clip_error(CHANGED, "wait until it is complete, and try again")

    def clip_error(self, problem: str, remedy: str = "") -> ClipError:
        """Return the error that this file has a `problem`."""
        return ClipError(f"cannot read {self.name}: {problem}", hint=remedy)

    def read_error(self, error: OSError | ValueError) -> ClipError:
        """Return an operating system's error about this file."""
        problem = getattr(error, "strerror", None) or "not a valid file name"
        return self.clip_error(problem[:1].lower() + problem[1:], "check the name of the file")

    def _file_state(self) -> tuple[int, ...]:
        found = os.fstat(self.handle)
        return (found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns)


class View:
    """A position in a `Source`, with the methods of an open file that PyAV calls."""

    name = ""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._at = 0

    def read(self, size: int = -1) -> bytes:
        """Return the next `size` bytes, or all."""
        found = self._source.read(self._at, self._source.size - self._at if size < 0 else size)
        self._at += len(found)
        return found

    def seek(self, offset: int, whence: int = 0) -> int:
        """Move to `offset` from the start, the position or the end; return the new position."""
        self._at = max(0, (0, self._at, self._source.size)[whence] + offset)
        return self._at

    def tell(self) -> int:
        """Return the position in bytes."""
        return self._at


MOV, MATROSKA, AVI, TS, PS = "mov", "matroska", "avi", "mpegts", "mpeg"
NAMES: Final = {MOV: "mp4", MATROSKA: "matroska", AVI: "avi", TS: "mpegts", PS: "mpeg"}
"""FFmpeg's demuxers that may read a clip, and what the format is called in `Facts`."""
FIRST_BOXES: Final = frozenset((b"ftyp", b"moov", b"mdat", b"wide", b"free", b"skip", b"pnot"))
"""Types of the first box of a MOV or MP4 file."""
MOST_FRAMES: Final = 2_000_000
"""Most frames of a clip: 18 hours at 30 a second."""
COPY_AGAIN: Final = "copy it again from where it was made, or repair it by ffmpeg -i IN -c copy OUT.mp4"
KINDS: Final = "save it as MP4, MOV, Matroska, WebM, AVI or MPEG"


def container_of(source: Source) -> str:
    """Return FFmpeg's name of the clip's container; raises `ClipError` for any other file."""
    head = source.read(0, 600)
    if not head:
        raise source.clip_error("the file is empty", COPY_AGAIN)
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
    raise source.clip_error("it is not a clip in a format that dpveil reads", KINDS)


def early(source: Source) -> ClipError:
    """Return the error that the file ends early."""
    return source.clip_error("the file ends early", COPY_AGAIN)


def damage_error(source: Source, what: str = "its structure is damaged") -> ClipError:
    """Return the error that the file is damaged."""
    return source.clip_error(what, COPY_AGAIN)


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
TIMEOUT: Final = 60.0
"""Seconds that FFmpeg may take to open a file, or to read one packet."""
BUFFER: Final = 2**18
"""Bytes that FFmpeg asks for at a time."""
USUAL: Final = frozenset(
    {
        *("major_brand", "minor_version", "compatible_brands", "handler_name", "vendor_id", "language"),
        *("encoder", "duration", "software"),
    }
)
"""Keys of metadata that name the format and the software, in lower case."""
STREAMS: Final = {"audio": "sound", "subtitle": "subtitle stream", "data": "data stream"}


def open_container(source: Source, demuxer: str, most: int) -> Any:
    """Return PyAV's container of the clip: it reads by `demuxer`, and opens nothing but `source`.

    FFmpeg decodes some frames to find out what the clip is, of `most` pixels; but none of streams whose kind
    it learns late, for it has no limit there. Raises `ClipError` if there is no such clip in the file.
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
    with as_clip_error(source, "it"):
        return av.open(
            View(source),
            "r",
            format=demuxer,
            options=options,
            metadata_errors="replace",
            buffer_size=BUFFER,
            timeout=TIMEOUT,
            io_open=_open_nothing,
        )


def _open_nothing(*_: object) -> Any:
    """Open no other file, whatever the clip names."""
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
        raise early(source) from error
    except av.error.FFmpegError as error:
        raise damage_error(source, f"{what} cannot be decoded") from error
    except (OSError, ValueError, OverflowError, AssertionError, RuntimeError, MemoryError) as error:
        raise damage_error(source, f"{what} cannot be decoded") from error


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


MATRICES: Final = {1: 1, 4: 4, 5: 5, 6: 5, 7: 7, 9: 9}
"""FFmpeg's number of the matrix of a frame (ITU-T H.273), and swscale's for it."""
UNSTATED: Final = (2, 3)
RGB: Final = 0
HIGH: Final = (576, 1024)
"""A higher or wider picture that does not state its matrix has that of BT.709, as players take it."""
HDR: Final = {16: "PQ", 18: "HLG"}
"""Transfer functions of pictures that have brighter things than a sheet of white paper (ITU-R BT.2100)."""
BT709, BT2020, UNKNOWN = 1, 9, 2
FULL, LIMITED = 2, 1
MOST_ASPECT: Final = 4
"""A pixel that is longer than this many times its other side is a lie."""


@dataclass(frozen=True)
class Look:
    """What all frames of a clip share: size, format, display matrix, colours, and whether they are fields."""

    width: int
    height: int
    pixels: str
    turn: bytes
    aspect: Fraction
    matrix: int
    limited: bool
    fields: bool
    hdr: str = ""


def look_of(frame: Any, turn: bytes, aspect: Fraction | None, source: Source, most: int) -> Look:
    """Return the look of a decoded frame; raises `ClipError` for one that cannot be converted faithfully.

    `turn` is its display matrix as FFmpeg stores it, `aspect` the ratio of a pixel's width to its height,
    and `most` the largest number of pixels.
    """
    check_size(frame.width, frame.height, source, most)
    if aspect and not Fraction(1, MOST_ASPECT) <= aspect <= MOST_ASPECT:
        raise source.clip_error("its pixels are not nearly square", "save it with square pixels")
    matrix, hdr = frame.colorspace, HDR.get(frame.color_trc, "")
    if matrix in UNSTATED:
        large = frame.height > HIGH[0] or frame.width > HIGH[1]
        matrix = BT2020 if hdr else BT709 if large else 6
    if matrix != RGB and matrix not in MATRICES:
        raise source.clip_error(
            "its colours are coded in a way that dpveil does not read", "save it as H.264"
        )
    name = frame.format.name
    full = frame.color_range == FULL or name.startswith("yuvj")
    full |= frame.color_range == 0 and (frame.format.is_rgb or name.startswith("gray"))
    return Look(
        width=frame.width,
        height=frame.height,
        pixels=name,
        turn=turn,
        aspect=Fraction(aspect or 1),
        matrix=matrix,
        limited=not full,
        fields=bool(frame.interlaced_frame),
        hdr=hdr,
    )


def check_size(width: int, height: int, source: Source, most: int) -> None:
    """Raise `ClipError` if frames of this size have more than `most` pixels."""
    if width * height > most:
        problem = f"its frames have {width}×{height} pixels, above the limit of {most:,}"
        raise source.clip_error(problem, "make them smaller")


class Upright:
    """Converts frames of one look; `width` and `height` are those of what it returns.

    Levels are rounded to the nearest; swscale's quick conversion makes them darker by one. HDR becomes SDR as
    it is seen up to its white (203 cd/m², ITU-R BT.2408); what is brighter is white.
    """

    def __init__(self, look: Look, source: Source, most: int) -> None:
        from av.video.format import VideoFormat
        from av.video.reformatter import Interpolation, VideoReformatter

        self._look = look
        self._exact = Interpolation.BILINEAR | Interpolation.ACCURATE_RND | Interpolation.FULL_CHR_H_INT
        self._to_rgb = VideoReformatter()
        # the shorter side of a pixel is stretched, so that nothing is lost
        wide = look.aspect >= 1
        across = round(look.width * look.aspect) if wide else look.width
        self._size = across, look.height if wide else round(look.height / look.aspect)
        self._turned = _flips(look.turn, source)
        self.width, self.height = self._size[::-1] if self._turned[0] else self._size
        check_size(self.width, self.height, source, most)
        parts = VideoFormat(look.pixels).components
        self._alpha = any(part.is_alpha for part in parts) or look.pixels == "pal8"

    def image(self, frame: Any) -> UInt8[np.ndarray, "h w 3"]:
        """Return the upright levels of a frame, read-only; what is transparent is shown on black."""
        look, (width, height) = self._look, self._size
        if look.hdr and frame.color_primaries == UNKNOWN:
            frame.color_primaries = BT2020
        plain = self._to_rgb.reformat(
            frame,
            width,
            height,
            "rgba" if self._alpha else "rgb24",
            dst_colorspace=BT709 if look.hdr else None,
            dst_color_trc=BT709 if look.hdr else None,
            dst_color_primaries=BT709 if look.hdr else None,
            src_colorspace=MATRICES.get(look.matrix, 5),
            src_color_range=LIMITED if look.limited else FULL,
            dst_color_range=FULL,
            interpolation=self._exact,
            threads=1,
        )
        plane: Any = plain.planes[0]
        channels = 4 if self._alpha else 3
        rows = np.frombuffer(plane, np.uint8).reshape(plane.height, plane.line_size)
        levels = rows[:, : channels * plane.width].reshape(plane.height, plane.width, channels)
        if self._alpha:
            levels = (levels[:, :, :3].astype(np.uint16) * levels[:, :, 3:] // 255).astype(np.uint8)
        swap, across, down = self._turned
        if swap:
            levels = np.asarray(cv2.transpose(levels))
        if across or down:
            levels = np.asarray(cv2.flip(levels, -1 if across and down else int(across)))
        levels = np.ascontiguousarray(levels)
        levels.flags.writeable = False
        return levels


def _flips(turn: bytes, source: Source) -> tuple[bool, bool, bool]:
    """Return whether to swap rows and columns, then to mirror left and right, then top and bottom.

    `turn` is FFmpeg's display matrix: nine signed numbers a b u, c d v, x y w; a point goes to
    (a·x + c·y, b·x + d·y).
    """
    if len(turn) < 36:
        return False, False, False
    a, b, _, c, d, *_ = np.frombuffer(turn[:36], np.int32).astype(float)
    scale = max(abs(a), abs(b), abs(c), abs(d)) / 100
    if max(abs(b), abs(c)) < scale <= 50 * min(abs(a), abs(d)):
        return False, bool(a < 0), bool(d < 0)
    if max(abs(a), abs(d)) < scale <= 50 * min(abs(b), abs(c)):
        return True, bool(c < 0), bool(b < 0)
    raise source.clip_error(
        "its pictures are turned by an angle other than 90, 180 or 270°", "save it upright"
    )


GENPTS: Final = "put its times right by ffmpeg -fflags +genpts -i IN OUT.mp4"


class Clock:
    """Gives every decoded frame its time, in the order in which they are shown.

    A time that is missing is `usual` units after the one before. One that repeats is a single unit later
    than the one before, as are those that follow until the clip's own times are later again. `repaired`
    says whether any time was not the file's own. Times that go backwards are a `ClipError` of the `source`.
    """

    def __init__(self, usual: int, source: Source) -> None:
        self._usual, self._source = max(1, usual), source
        self._own: int | None = None
        self._last: int | None = None
        self.repaired = False

    def time(self, own: int | None) -> int:
        """Return the time of the next frame, which has its `own` in the file; raises `ClipError`."""
        if own is None:
            time = 0 if self._last is None else self._last + self._usual
        elif self._own is not None and own < self._own:
            raise self._source.clip_error("the times of its frames go backwards", GENPTS)
        else:
            time = own if self._last is None else max(own, self._last + 1)
            self._own = own
        self.repaired |= time != own
        self._last = time
        return time


THREADS: Final = 8
"""Most threads of a decoder: each holds some frames."""


@dataclass(frozen=True)
class Way:
    """How a clip is decoded: its file, FFmpeg's name of its container, and the most pixels of a frame."""

    source: Source
    demuxer: str
    most: int

    @contextmanager
    def stream(self) -> Iterator[tuple[Any, Any]]:
        """Open the clip, and yield PyAV's container and its stream of pictures, ready to be decoded."""
        with open_container(self.source, self.demuxer, self.most) as container:
            stream = picture_stream(container, self.source)
            context = stream.codec_context
            check_size(context.width, context.height, self.source, self.most)
            context.options = {"err_detect": "explode", "max_pixels": str(self.most)}
            context.thread_count = min(os.cpu_count() or 1, THREADS)
            context.thread_type = "AUTO"
            yield container, stream

    def looks(self, frames: Iterator[Any], stream: Any) -> Iterator[tuple[Look, Any]]:
        """Yield `frames` of `stream` with their looks; raises `ClipError` for one unlike the first.

        Only whether they consist of fields may change, as it does in broadcasts. The display matrix is read
        from the first: PyAV keeps a frame whose side data was read until Python looks for cycles.
        """
        first: Look | None = None
        angle = 0
        for frame in frames:
            turn = bytes(frame.side_data.get("DISPLAYMATRIX") or b"") if first is None else first.turn
            aspect = stream.sample_aspect_ratio or stream.codec_context.sample_aspect_ratio
            look = look_of(frame, turn, aspect, self.source, self.most)
            if first is None:
                first, angle = look, frame.rotation
            if frame.rotation != angle or replace(look, fields=False) != replace(first, fields=False):
                same = (look.width, look.height) == (first.width, first.height)
                what = "format" if same else "size"
                raise self.source.clip_error(f"the {what} of its frames changes", "cut it where it does")
            yield look, frame

    def read_frames(self, look: Look, usual: int, near: int | None = None) -> Iterator[tuple[int, Any]]:
        """Yield time and picture of every frame, from the first or from the keyframe before time `near` on.

        Those that consist of fields are made whole. Raises `ClipError` if one is not as `look`.
        """
        with self.stream() as (container, stream):
            if near is not None:
                with as_clip_error(self.source, "its index"):
                    container.seek(near, stream=stream)
            clock = Clock(usual, self.source)
            found = decode_frames(container, stream, self.source, numbered=near is None)
            frames = self._as(look, stream, found)
            plain = ((frame.pts, frame) for frame in frames)
            for own, frame in _deinterlace(frames, look, self.source) if look.fields else plain:
                yield clock.time(own), frame

    def _as(self, look: Look, stream: Any, frames: Iterator[Any]) -> Iterator[Any]:
        for found, frame in self.looks(frames, stream):
            if replace(found, fields=look.fields) != look or found.fields > look.fields:
                raise damage_error(self.source, "its frames are not as they were when it was opened")
            yield frame


def decode_frames(container: Any, stream: Any, source: Source, *, numbered: bool = True) -> Iterator[Any]:
    """Yield the frames of PyAV from where `container` is, in the order in which they are shown.

    Raises `ClipError` for the first packet that is damaged or cannot be decoded, with the frame's number if
    that is `numbered`, as from the first one on.
    """
    count = 0
    packets = container.demux(stream)
    while True:
        name = f"frame {count}" if numbered else "a frame"
        with as_clip_error(source, name):
            packet = next(packets, None)
            if packet is None:
                return
            if packet.is_corrupt:
                raise damage_error(source, f"{name} is damaged")
            frames = packet.decode()
        for frame in frames:
            name = f"frame {count}" if numbered else "a frame"
            if frame.is_corrupt:
                raise damage_error(source, f"{name} is damaged")
            yield frame
            count += 1


def _deinterlace(frames: Iterator[Any], look: Look, source: Source) -> Iterator[tuple[int | None, Any]]:
    """Yield `frames` with their times, each made of its two fields by FFmpeg's bwdif: one for one."""
    with as_clip_error(source, "what its fields show"):
        graph = pyav().filter.Graph()
        size = {"width": look.width, "height": look.height, "format": look.pixels}
        entry = graph.add_buffer(**size, time_base=Fraction(1, 25))
        filters = graph.add("bwdif", "mode=send_frame:parity=auto:deint=interlaced")
        end = graph.add("buffersink")
        entry.link_to(filters)
        filters.link_to(end)
        graph.configure()
    times: deque[int | None] = deque()
    for count, frame in enumerate(frames):
        times.append(frame.pts)
        frame.pts, frame.time_base = count, Fraction(1, 25)
        with as_clip_error(source, f"frame {count}"):
            entry.push(frame)
        yield from _pull_frames(end, times, source)
    with as_clip_error(source, "its last frame"):
        entry.push(None)
    yield from _pull_frames(end, times, source)
    if times:
        raise damage_error(source, "its last frames cannot be decoded")


def _pull_frames(end: Any, times: deque[int | None], source: Source) -> Iterator[tuple[int | None, Any]]:
    av = pyav()
    while times:
        with as_clip_error(source, "a frame"):
            try:
                frame = end.pull()
            except (av.error.BlockingIOError, av.error.EOFError):
                return
        yield times.popleft(), frame
