"""Writing a clip: every frame at its exact time, beside sound that is kept."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from fractions import Fraction
from functools import lru_cache
from pathlib import Path
from types import TracebackType
from typing import Any, Final

import numpy as np

from dpveil.core.photo import check_image
from dpveil.errors import DPVeilError, InvalidParameter, OutputError, UnknownName
from dpveil.io.names import show_path
from dpveil.io.writing import write_error
from dpveil.processes import Channel, answer
from dpveil.video.containers import Source, as_clip_error, container_of, open_container, pyav
from dpveil.video.decoding import Reader
from dpveil.video.facts import Facts, Frame, durations

SUFFIXES: Final = {".mp4": "mp4", ".m4v": "mp4", ".mov": "mov", ".mkv": "matroska", ".webm": "webm"}
"""The container of each suffix of an output, in lower case."""
KEYFRAMES: Final = 120  # a keyframe every so many frames at least


X264: Final = "libx264", {"preset": "veryfast", "crf": "18"}
VP9: Final = (
    "libvpx-vp9",
    {
        **{"crf": "24", "b": "0", "deadline": "realtime", "cpu-used": "7", "row-mt": "1"},
        **{"lag-in-frames": "0", "auto-alt-ref": "0"},
    },
)
"""FFmpeg's encoders, with constant quality and no frame before one that it depends on."""


def container_for(path: str | Path) -> str:
    """Return the container of the suffix of `path`; raises `UnknownName`, which lists the suffixes.

    >>> container_for("private.MP4")
    'mp4'
    """
    suffix = Path(path).suffix.lower()
    if suffix not in SUFFIXES:
        raise UnknownName("format", suffix or show_path(path), SUFFIXES)
    return SUFFIXES[suffix]


def encoder_for(container: str, width: int, height: int) -> tuple[str, dict[str, str], str]:
    """Return the encoder of a container, its options, and the format of pixels of frames of this size.

    Raises `OutputError` if this FFmpeg does not have it: builds under the LGPL have no x264.
    """
    name, options = VP9 if container == "webm" else X264
    if not is_installed(name):
        hint = "write a .webm file, or install PyAV's wheel: pip install av"
        raise OutputError(f"this FFmpeg has no {name}, which writes {container}", hint=hint)
    odd = bool(width % 2 or height % 2)
    return name, options, "yuv444p" if odd and container != "webm" else "yuv420p"


def is_installed(name: str) -> bool:
    av = pyav()
    try:
        av.codec.Codec(name, "w")
    except (ValueError, av.error.FFmpegError):
        return False
    return True


BT709, LIMITED = 1, 1
MESSAGES: Final = 6  # the type of H.264's units that hold supplemental messages
LONGEST_TICKS: Final = 2**31  # an MP4 file states how long a frame is shown by a number below this
SLOWEST, FASTEST = 1, 240
"""Frames a second that encoders are told, which changes no time."""


def unit_of(facts: Facts) -> Fraction:
    """Return the unit of times in an MP4 file that holds those of `facts` exactly, as 1 / a whole number.

    Raises `OutputError` if there is none, as times are too fine for how far frames are apart.
    """
    steps = [step for step, _ in facts.steps]
    unit = Fraction(1, (facts.time_base * (math.gcd(*steps) or 1)).denominator)
    if max(steps, default=0) * facts.time_base / unit >= LONGEST_TICKS or unit.denominator >= LONGEST_TICKS:
        raise OutputError("frames are too far apart for the unit of their times", hint="cut the clip there")
    return unit


MILLISECOND: Final = Fraction(1, 1000)
EXACT: Final = ("mp4", "mov")  # containers that hold times exactly


def time_unit(facts: Facts, container: str) -> Fraction:
    """Return the unit of times in a file in `container`; raises `OutputError` if there is none."""
    exact = unit_of(facts)  # of what the encoder is told, too
    return exact if container in EXACT else MILLISECOND


def muxer_options(facts: Facts, container: str) -> dict[str, str]:
    """Return options of a file that is written: no version of the software, no random numbers."""
    exact = {"movie_timescale": str(unit_of(facts).denominator)} if container in EXACT else {}
    return {"fflags": "+bitexact", **exact}


def frame_ticks(facts: Facts, unit: Fraction) -> Iterator[tuple[int, int]]:
    """Yield when each frame begins and ends, in `unit`; raises `OutputError` if two begin at once."""
    ticks, last = 0, -1
    for length, count in durations(facts):
        for _ in range(count):
            begun = round(ticks * facts.time_base / unit)
            ticks += length
            if begun <= last:
                raise OutputError("two frames are less than a millisecond apart", hint="write an .mp4 file")
            last = begun
            yield begun, round(ticks * facts.time_base / unit)


def check_times(facts: Facts, container: str) -> None:
    """Raise `OutputError` if files in `container` do not hold the times of a clip."""
    for _ in frame_ticks(facts, time_unit(facts, container)):
        pass


@contextmanager
def as_writing_error(path: Path) -> Iterator[None]:
    """Turn errors of the operating system and of FFmpeg in writing `path` into `OutputError`."""
    av = pyav()
    try:
        yield
    except DPVeilError:
        raise
    except (OSError, ValueError, av.error.FFmpegError) as error:
        cause: BaseException | None = error  # PyAV tells of a full disk by another error
        while isinstance(cause, OSError | ValueError | av.error.FFmpegError):
            if isinstance(cause, OSError) or not isinstance(cause, av.error.FFmpegError):
                raise write_error(path, cause) from error
            cause = cause.__cause__ or cause.__context__
        raise OutputError(f"cannot write {show_path(path)}: it cannot be encoded") from error


class Writer:
    """Writes a clip in `container`, with the sizes and times of `facts`, to a new file at `path`.

    Frames come in order, all of them, and get the times of `facts`, from zero on: exactly in MP4 and MOV, to
    the next millisecond in Matroska and WebM. Use it as a context manager: the file is complete and on the
    disk at its end. Raises `OutputError`.
    """

    def __init__(self, path: str | Path, facts: Facts, *, container: str = "mp4") -> None:
        from av.bitstream import BitStreamFilterContext
        from av.video.reformatter import VideoReformatter

        self._av = pyav()
        self._path, self._facts = Path(path), facts
        self._written = 0
        self._to_yuv = VideoReformatter()
        encoder, options, self._pixels = encoder_for(container, facts.width, facts.height)
        self._exact, self._unit = unit_of(facts), time_unit(facts, container)
        self._ticks = frame_ticks(facts, self._unit)
        with as_writing_error(self._path):
            self._file = self._path.open("xb")
            muxer = muxer_options(facts, container)
            self._container = self._av.open(self._file, "w", format=container, container_options=muxer)
            rate = (facts.frames - 1) / facts.seconds if facts.seconds else Fraction(25)
            rate = min(max(rate, Fraction(SLOWEST)), Fraction(FASTEST)).limit_denominator(2**16)
            self._stream = self._container.add_stream(encoder, rate=rate)
            self._stream.width, self._stream.height = facts.width, facts.height
            self._stream.pix_fmt = self._pixels
            self._stream.time_base, self._stream.codec_context.time_base = self._unit, self._exact
            context = self._stream.codec_context  # no frames out of order, no version of the software
            context.max_b_frames, context.gop_size = 0, KEYFRAMES
            context.options = {**options, "flags": "+bitexact"}
            context.color_primaries = context.color_trc = context.colorspace = BT709
            context.color_range = LIMITED
            self._container.start_encoding()
        # x264 states its version and settings in messages
        bare = encoder == X264[0]
        units = f"filter_units=remove_types={MESSAGES}"
        self._bare = BitStreamFilterContext(units, self._stream) if bare else None

    def __enter__(self) -> Writer:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if kind is None:
                self._mux(None)
                if self._written != self._facts.frames:
                    text = f"cannot write {show_path(self._path)}: it has {self._written} frames"
                    raise OutputError(text, hint="render the clip again")
                with as_writing_error(self._path), self._file:
                    self._container.close()
                    self._file.flush()
                    os.fsync(self._file.fileno())
        finally:
            with suppress(OSError):  # what it could not write was told
                self._file.close()

    def write(self, frame: Frame) -> None:
        """Encode the next frame; raises `InvalidParameter` for another size."""
        levels = np.ascontiguousarray(check_image(frame.image))
        if levels.shape != (self._facts.height, self._facts.width, 3):
            shape = "×".join(map(str, levels.shape))
            raise InvalidParameter("frame", shape, "is not of the clip's size")
        plain = self._av.VideoFrame.from_numpy_buffer(levels, "rgb24")
        made = self._to_yuv.reformat(
            plain, format=self._pixels, dst_colorspace=BT709, dst_color_range=LIMITED, threads=1
        )
        made.pts = int((frame.time - self._facts.start) * self._facts.time_base / self._exact)
        made.time_base = self._exact
        self._mux(made)

    def _mux(self, frame: Any) -> None:
        with as_writing_error(self._path):
            for packet in self._stream.encode(frame):
                for kept in [packet] if self._bare is None else self._bare.filter(packet):
                    kept.stream = self._stream
                    self._container.mux(set_times(kept, next(self._ticks), self._unit))
                    self._written += 1


def set_times(packet: Any, ticks: tuple[int, int], unit: Fraction) -> Any:
    """Return a packet of the frame that is shown between these `ticks` of a `unit`."""
    packet.pts = packet.dts = ticks[0]
    packet.duration = ticks[1] - ticks[0]
    packet.time_base = unit
    return packet


KEPT: Final[dict[str, frozenset[str]]] = {
    "mp4": frozenset({"aac", "mp3", "ac3", "eac3", "opus", "flac", "alac"}),
    "mov": frozenset({"aac", "mp3", "ac3", "alac", "pcm_s16le", "pcm_s16be", "pcm_s24le", "pcm_s24be"}),
    "matroska": frozenset({"aac", "mp3", "ac3", "eac3", "opus", "flac", "pcm_s16le", "pcm_s24le"}),
    "webm": frozenset({"opus"}),
}
"""The coded sound that each container takes, and that holds nothing but sound: Vorbis has comments."""
WITHOUT: Final = "leave the sound out"
NEW_SETUP, SKIPPED = "new_extradata", "skip_samples"
"""FFmpeg's names of what may come beside a packet: another setup, and how many samples are not heard."""


class Sound:
    """The first stream of sound of `clip`, copied into the open container `made` piece by piece."""

    def __init__(self, clip: Reader, made: Any, container: str) -> None:
        self._source, self._made, self._held = clip.source, made, ExitStack()
        opening = open_container(clip.source, clip.demuxer, clip.most)
        self._opened = self._held.enter_context(opening)
        if not self._opened.streams.audio:
            raise self._source.clip_error("it has no sound to keep", WITHOUT)
        stream = self._opened.streams.audio[0]
        name = stream.codec_context.codec.canonical_name if stream.codec_context else "unknown"
        if name not in KEPT[container]:
            raise self._source.clip_error(
                f"its sound is in a format that {container} files do not take", WITHOUT
            )
        self._unit = stream.time_base
        self._shift = round(clip.facts.start * clip.facts.time_base / self._unit)
        self._before = container in ("mp4", "mov") or name == "opus"
        self._stream = made.add_stream_from_template(stream, opaque=True)
        self._packets = self._time_packets(stream)
        self._next = next(self._packets, None)

    def close(self) -> None:
        self._held.close()

    def until(self, time: Fraction | None) -> None:
        """Copy what begins before `time`, in seconds from the first frame on; all that is left if None."""
        while self._next is not None and (time is None or self._next.dts * self._unit < time):
            packet = self._bare(self._next)
            packet.stream = self._stream
            self._made.mux(packet)
            self._next = next(self._packets, None)

    def _time_packets(self, stream: Any) -> Iterator[Any]:
        """Yield the packets of sound, timed from the first frame on."""
        begun = False
        with as_clip_error(self._source, "its sound"):
            for packet in self._opened.demux(stream):
                if not packet.size:
                    continue
                if packet.dts is None or packet.pts is None or packet.is_corrupt:
                    raise self._source.clip_error("its sound is damaged, or has no times", WITHOUT)
                packet.pts, packet.dts = packet.pts - self._shift, packet.dts - self._shift
                length = packet.duration or 0
                if packet.is_discard and (begun or packet.pts >= 0):
                    continue  # what an edit list cuts out later
                begun |= not packet.is_discard
                # In files that can say so, the last packet before is kept: decoders need one to begin with.
                if packet.pts >= 0 or (self._before and packet.pts + 2 * length > 0):
                    yield packet

    def _bare(self, packet: Any) -> Any:
        """Return a packet with the same sound, times, and samples to skip, and nothing else."""
        # What came beside may be of any length, and muxers write it, as RFC 9559's BlockAdditions.
        if packet.has_sidedata(NEW_SETUP):
            raise self._source.clip_error("its sound changes how it is coded on the way", WITHOUT)
        bare = pyav().Packet(bytes(packet))
        bare.pts, bare.dts, bare.duration = packet.pts, packet.dts, packet.duration
        bare.time_base, bare.is_keyframe = packet.time_base, packet.is_keyframe
        if packet.has_sidedata(SKIPPED):
            bare.set_sidedata(packet.get_sidedata(SKIPPED))
        return bare


def check_sound(clip: Reader, container: str) -> None:
    """Raise `ClipError` unless all packets of a clip's sound can be copied into such a file; writes none."""
    av = pyav()
    try:
        with (
            av.open(os.devnull, "w", format=container) as made,
            closing(Sound(clip, made, container)) as sound,
        ):
            sound.until(None)
    except (av.error.FFmpegError, ValueError) as error:
        problem = f"its sound cannot be copied into {container} files: its times, or how it is coded"
        raise clip.source.clip_error(problem, WITHOUT) from error


def add_sound(pictures: str | Path, out: str | Path, clip: Reader, container: str) -> None:
    """Write the frames of `pictures`, which a `Writer` wrote, to the new file `out`, with a clip's sound.

    Its first stream of sound is copied, from the time of the first frame on. Raises `OutputError`, and
    `ClipError` for sound that `container` does not take.
    """
    facts, path = clip.facts, Path(out)
    unit = time_unit(facts, container)
    with ExitStack() as held:
        held.enter_context(as_writing_error(path))
        file = held.enter_context(path.open("xb"))
        source = Source(pictures)
        read = held.enter_context(open_container(source, container_of(source), facts.width * facts.height))
        options = muxer_options(facts, container)
        made = held.enter_context(pyav().open(file, "w", format=container, container_options=options))
        stream = made.add_stream_from_template(read.streams.video[0], opaque=True)
        stream.time_base = unit
        sound = held.enter_context(closing(Sound(clip, made, container)))
        packets = (packet for packet in read.demux(read.streams.video[0]) if packet.size)
        for packet, ticks in zip(packets, frame_ticks(facts, unit), strict=True):
            sound.until(ticks[0] * unit)
            packet.stream = stream
            made.mux(set_times(packet, ticks, unit))
        sound.until(None)
        made.close()
        file.flush()
        os.fsync(file.fileno())


def serve(channel: Channel) -> None:
    """Answer questions of `Clip`: clips are decoded, and sound copied, in processes with limits."""
    answer(channel, lambda _: _answer)


def _answer(asked: list[Any]) -> tuple[Any, ...]:
    (name, path, size, changed, most, searched), what, *given = asked
    try:
        reader = _cached_reader(name, path, (size, changed), most, searched)
        if what == "frame":
            frame = reader.frame(*given)
            return ({"value": None},) if frame is None else ({"value": frame.time}, frame.image)
        if what == "facts":
            facts = vars(reader.facts) | {"time_base": str(reader.facts.time_base)}
            steps = np.array(facts.pop("steps"), np.int64).reshape(-1, 2)
            return {"value": facts}, steps
        if what == "sound":
            check_sound(reader, *given)
        else:
            pictures, out, container = given
            add_sound(pictures, out, reader, container)
        return ({"value": None},)
    except DPVeilError as error:
        return ({"refused": [type(error).__name__, error.message, str(error.hint)]},)


@lru_cache(maxsize=2)
def _cached_reader(name: str, path: str, stamp: tuple[int, int], most: int, searched: bool) -> Reader:
    return Reader(Source(path, name), most, searched=searched)
