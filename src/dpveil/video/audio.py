"""Sound that is kept: its packets are copied as they are, beside the frames, without its metadata."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from fractions import Fraction
from typing import Any, Final

from dpveil.video.library import pyav
from dpveil.video.reading import Clip
from dpveil.video.streams import opened, told

KEPT: Final[dict[str, frozenset[str]]] = {
    "mp4": frozenset({"aac", "mp3", "ac3", "eac3", "opus", "flac", "alac"}),
    "mov": frozenset({"aac", "mp3", "ac3", "alac", "pcm_s16le", "pcm_s16be", "pcm_s24le", "pcm_s24be"}),
    "matroska": frozenset({"aac", "mp3", "ac3", "eac3", "opus", "flac", "pcm_s16le", "pcm_s24le"}),
    "webm": frozenset({"opus"}),
}
"""The coded sound that each container takes, and that holds nothing but sound: Vorbis has comments."""
WITHOUT: Final = "leave the sound out"
SETUP: Final = {"flac": 34, "alac": 60, "aac": 64, "opus": 19 + 2 + 255}
"""Most bytes of what a decoder of a codec needs to begin; others have none, or at most `USUAL_SETUP`."""
USUAL_SETUP: Final = 16
NEW_SETUP, SKIPPED = "new_extradata", "skip_samples"
"""FFmpeg's names of what may come beside a packet: another setup, and how many samples are not heard."""


class Sound:
    """The first stream of sound of `clip`, copied into the open container `made` piece by piece."""

    def __init__(self, clip: Clip, made: Any, container: str) -> None:
        self._source, self._made = clip.way.source, made
        self._opened = opened(self._source, clip.way.demuxer, clip.way.most)
        if not self._opened.streams.audio:
            raise self._source.refused("it has no sound to keep", WITHOUT)
        stream = self._opened.streams.audio[0]
        name = stream.codec_context.codec.canonical_name if stream.codec_context else "unknown"
        if name not in KEPT[container]:
            raise self._source.refused(
                f"its sound is in a format that {container} files do not take", WITHOUT
            )
        setup = len(stream.codec_context.extradata or b"")
        if setup > SETUP.get(name, USUAL_SETUP):
            raise self._source.refused(
                f"{setup:,} bytes describe its sound, where more than sound may hide", WITHOUT
            )
        self._unit = stream.time_base
        self._shift = round(clip.facts.start * clip.facts.time_base / self._unit)
        self._before = container in ("mp4", "mov") or name == "opus"
        self._stream = made.add_stream_from_template(stream, opaque=True)
        self._packets = self._timed(stream)
        self._next = next(self._packets, None)

    def close(self) -> None:
        """Close the clip's container."""
        self._opened.close()

    def until(self, time: Fraction | None) -> None:
        """Copy what begins before `time`, in seconds from the first frame on; all that is left if None."""
        while self._next is not None and (time is None or self._next.dts * self._unit < time):
            packet = self._bare(self._next)
            packet.stream = self._stream
            self._made.mux(packet)
            self._next = next(self._packets, None)

    def _timed(self, stream: Any) -> Iterator[Any]:
        """Yield the packets of sound, timed from the first frame on.

        In files that can say so, the last packet before it is kept, as decoders need one to begin with. What
        an edit list cuts out later is left out.
        """
        begun = False
        with told(self._source, "its sound"):
            for packet in self._opened.demux(stream):
                if not packet.size:
                    continue
                if packet.dts is None or packet.pts is None or packet.is_corrupt:
                    raise self._source.refused("its sound is damaged, or has no times", WITHOUT)
                packet.pts, packet.dts = packet.pts - self._shift, packet.dts - self._shift
                length = packet.duration or 0
                if packet.is_discard and (begun or packet.pts >= 0):
                    continue
                begun |= not packet.is_discard
                if packet.pts >= 0 or (self._before and packet.pts + 2 * length > 0):
                    yield packet

    def _bare(self, packet: Any) -> Any:
        """Return a packet with the same sound, times, and samples to skip: nothing else that came beside it.

        What came beside may be of any length, and muxers write it: RFC 9559's BlockAdditions, for example.
        """
        if packet.has_sidedata(NEW_SETUP):
            raise self._source.refused("its sound changes how it is coded on the way", WITHOUT)
        bare = pyav().Packet(bytes(packet))
        bare.pts, bare.dts, bare.duration = packet.pts, packet.dts, packet.duration
        bare.time_base, bare.is_keyframe = packet.time_base, packet.is_keyframe
        if packet.has_sidedata(SKIPPED):
            bare.set_sidedata(packet.get_sidedata(SKIPPED))
        return bare


class _Nowhere:
    """A file that keeps nothing of what is written to it."""

    def __init__(self) -> None:
        self._at = self._size = 0

    def write(self, data: bytes) -> int:
        self._at += len(data)
        self._size = max(self._size, self._at)
        return len(data)

    def seek(self, offset: int, whence: int = 0) -> int:
        self._at = offset + (0, self._at, self._size)[whence]
        return self._at

    def tell(self) -> int:
        return self._at


def check_sound(clip: Clip, container: str) -> None:
    """Raise `ClipError` unless all packets of a clip's sound can be copied into such a file; writes none."""
    av = pyav()
    try:
        with (
            av.open(_Nowhere(), "w", format=container) as made,
            closing(Sound(clip, made, container)) as sound,
        ):
            sound.until(None)
    except (av.error.FFmpegError, ValueError) as error:
        problem = f"its sound cannot be copied into {container} files: its times, or how it is coded"
        raise clip.way.source.refused(problem, WITHOUT) from error
