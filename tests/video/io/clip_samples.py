"""Small clips of every kind for tests: each frame shows its own number, and its corners are coloured."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from fractions import Fraction
from pathlib import Path
from typing import Any

import av
import numpy as np

from dpveil.video.containers import Source
from dpveil.video.decoding import Reader

SIZE = (64, 48)
UNIT = Fraction(1, 1000)
STEPS = (0, 40, 80, 130, 170, 250, 260)
"""Times of seven frames in milliseconds, at a rate that varies."""
COLOURS = ((200, 40, 40), (40, 180, 60), (50, 60, 210))
"""Colours of the corners: bottom left, bottom middle, bottom right."""


def picture(number: int, size: tuple[int, int] = SIZE) -> np.ndarray:
    """Return levels that show `number`: five bits above, and three colours below."""
    width, height = size
    levels = np.full((height, width, 3), 110, np.uint8)
    for bit in range(5):
        left, right = bit * width // 5, (bit + 1) * width // 5
        levels[: height // 2, left:right] = 235 if number >> bit & 1 else 20
    for place, colour in enumerate(COLOURS):
        levels[height // 2 :, place * width // 3 : (place + 1) * width // 3] = colour
    return levels


def number_in(levels: np.ndarray) -> int:
    """Return the number that a picture shows; fails if the picture is not upright, or of other colours."""
    height, width = levels.shape[:2]
    for place, colour in enumerate(COLOURS):
        shown = levels[height * 3 // 4, (2 * place + 1) * width // 6].astype(int)
        assert np.abs(shown - colour).max() < 24, (place, shown, colour)
    row = levels[height // 4].mean(axis=1)
    return sum(int(row[(2 * bit + 1) * width // 10] > 128) << bit for bit in range(5))


def clip(
    path: Path,
    times: Sequence[int] = STEPS,
    *,
    codec: str = "libx264",
    container: str | None = None,
    size: tuple[int, int] = SIZE,
    unit: Fraction = UNIT,
    pixels: str = "yuv420p",
    options: dict[str, str] | None = None,
    muxer: dict[str, str] | None = None,
    turn: Sequence[int] | None = None,
    store: Any = lambda levels: levels,
    sound: str | None = None,
    extra: Any = None,
    context: dict[str, Any] | None = None,
) -> Path:
    """Write a clip whose frame n shows n at `times[n]`; `store` turns a picture into how it is stored."""
    with av.open(str(path), "w", format=container, container_options=muxer or {}) as made:
        stream = made.add_stream(codec, rate=25)
        stream.width, stream.height = store(picture(0, size)).shape[1::-1]
        stream.pix_fmt = pixels
        stream.codec_context.time_base = stream.time_base = unit
        stream.codec_context.options = {"preset": "ultrafast", "crf": "12"} if "x26" in codec else {}
        stream.codec_context.options |= options or {}
        for name, value in (context or {}).items():
            setattr(stream.codec_context, name, value)
        if turn is not None:
            stream.set_display_matrix(turn)
        voice = made.add_stream(sound, rate=48000) if sound else None
        if voice is not None:
            voice.codec_context.layout = "mono"
        if extra is not None:
            extra(made)
        packets = []
        for number, time in enumerate(times):
            levels = np.ascontiguousarray(store(picture(number, size)))
            frame = av.VideoFrame.from_ndarray(levels, "rgb24")
            packets += stream.encode(as_stored(frame, pixels, time, unit))
        packets += stream.encode(None)
        if voice is not None:
            packets += _tone(voice, times[-1] * unit)
        packets.sort(key=lambda packet: packet.dts * packet.time_base)
        made.mux(packets)
        for other in made.streams:
            if other.type == "subtitle":
                made.mux(_line(other))
    return path


def _line(stream: Any) -> Any:
    packet = av.Packet(PLANTED.encode())
    packet.stream, packet.pts, packet.dts, packet.duration, packet.time_base = stream, 0, 0, 200, UNIT
    return packet


def as_stored(frame: av.VideoFrame, pixels: str, time: int, unit: Fraction) -> av.VideoFrame:
    frame = frame.reformat(format=pixels, dst_colorspace="ITU601", dst_color_range="MPEG")
    frame.pts, frame.time_base = time, unit
    return frame


def _tone(voice: Any, seconds: Fraction) -> list[Any]:
    packets = []
    size = voice.codec_context.frame_size or 1024
    resampler = av.AudioResampler(voice.codec_context.format, "mono", 48000, size)
    count = int(seconds * 48000) + 2 * size
    wave = (8000 * np.sin(np.arange(count) / 20)).astype(np.int16)[None]
    frame = av.AudioFrame.from_ndarray(wave, "s16", "mono")
    frame.sample_rate, frame.pts, frame.time_base = 48000, 0, Fraction(1, 48000)
    for part in [*resampler.resample(frame), *resampler.resample(None)]:
        packets += voice.encode(part)
    return packets + voice.encode(None)


def shown(path: Path) -> list[tuple[Fraction, int]]:
    """Return the time in seconds of every frame of a clip, and the number that it shows, by PyAV alone."""
    with av.open(str(path)) as found:
        return [
            (frame.pts * frame.time_base, number_in(frame.to_ndarray(format="rgb24")))
            for frame in found.decode(video=0)
        ]


ONE, LAST = 1 << 16, 1 << 30
QUARTER = (0, ONE, 0, -ONE, 0, 0, SIZE[1] * ONE, 0, LAST)
"""The display matrix of a phone held upright: a quarter turn clockwise."""
PLANTED = "planted-8c1f"


def quarter(levels: np.ndarray) -> np.ndarray:
    """Return how a picture is stored that `QUARTER` turns upright."""
    return np.rot90(levels)


def extras(made: Any) -> None:
    """Give a container metadata and chapters, and Matroska an attachment and subtitles, all `PLANTED`."""
    if made.format.name == "matroska":
        made.add_attachment("font.ttf", "application/x-truetype-font", (3 * PLANTED).encode())
        made.add_mux_stream("subrip")
    made.metadata.update({"title": PLANTED, "comment": PLANTED, "location": f"+52.5+013.4/{PLANTED}"})
    half = {"id": 1, "start": 0, "end": 100, "time_base": UNIT, "metadata": {"title": PLANTED}}
    made.set_chapters([half, half | {"id": 2, "start": 100, "end": 200}])
    for stream in made.streams:
        stream.metadata["title"] = PLANTED


def reader(path, **limits):
    """Open a clip in this process, in a context."""
    return nullcontext(Reader(Source(path), **limits))
