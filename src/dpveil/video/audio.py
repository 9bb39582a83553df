"""Sound that is kept: its packets are copied as they are, beside the frames, without its metadata."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Any, Final

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


class Sound:
    """The first stream of sound of `clip`, copied into the open container `made` piece by piece."""

    def __init__(self, clip: Clip, made: Any, container: str) -> None:
        self._clip, self._made = clip, made
        self._opened = opened(clip.source, clip.demuxer)
        if not self._opened.streams.audio:
            raise clip.source.refused("it has no sound to keep", WITHOUT)
        stream = self._opened.streams.audio[0]
        name = stream.codec_context.codec.canonical_name if stream.codec_context else "unknown"
        if name not in KEPT[container]:
            raise clip.source.refused(f"its sound is in a format that {container} files do not take", WITHOUT)
        self._unit = stream.time_base
        self._start = clip.facts.start * clip.facts.time_base
        self._stream = made.add_stream_from_template(stream, opaque=True)
        self._packets = self._timed(stream)
        self._next = next(self._packets, None)

    def until(self, time: Fraction | None) -> None:
        """Copy what begins before `time`, in seconds from the first frame on; all that is left if None."""
        while self._next is not None and (time is None or self._next.dts * self._unit < time):
            self._next.stream = self._stream
            self._made.mux(self._next)
            self._next = next(self._packets, None)

    def _timed(self, stream: Any) -> Iterator[Any]:
        shift = round(self._start / self._unit)
        with told(self._clip.source, "its sound"):
            for packet in self._opened.demux(stream):
                if not packet.size:
                    continue
                if packet.dts is None or packet.pts is None or packet.is_corrupt:
                    raise self._clip.source.refused("its sound is damaged, or has no times", WITHOUT)
                if (packet.pts + (packet.duration or 0)) <= shift:
                    continue
                packet.pts, packet.dts = packet.pts - shift, packet.dts - shift
                yield packet
