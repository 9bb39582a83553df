"""How frames are coded in each container: one table, with settings that never depend on the input's."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from dpveil.errors import OutputError, UnknownName
from dpveil.io.names import shown
from dpveil.video.library import pyav

SUFFIXES: Final[dict[str, str]] = {
    ".mp4": "mp4",
    ".m4v": "mp4",
    ".mov": "mov",
    ".mkv": "matroska",
    ".webm": "webm",
}
"""The container of each suffix of an output, in lower case."""
KEYFRAMES: Final = 120
"""A keyframe every so many frames at least."""


@dataclass(frozen=True, kw_only=True)
class Encoder:
    """An encoder of FFmpeg: constant quality, and no frame before one that it depends on.

    `even` is the format of pixels of frames with even sides, and `odd` that of others; None if it has none.
    """

    name: str
    options: Mapping[str, str]
    even: str = "yuv420p"
    odd: str | None = None


X264: Final = Encoder(name="libx264", options={"preset": "veryfast", "crf": "18"}, odd="yuv444p")
VP9: Final = Encoder(
    name="libvpx-vp9",
    options={
        **{"crf": "24", "b": "0", "deadline": "realtime", "cpu-used": "7", "row-mt": "1"},
        **{"lag-in-frames": "0", "auto-alt-ref": "0"},
    },
    odd="yuv420p",
)
MPEG4: Final = Encoder(name="mpeg4", options={"qmin": "2", "qmax": "2"})
ENCODERS: Final[dict[str, tuple[Encoder, ...]]] = {
    "mp4": (X264, VP9, MPEG4),
    "mov": (X264, MPEG4),
    "matroska": (X264, VP9, MPEG4),
    "webm": (VP9,),
}
"""The encoders of each container, the best first: builds of FFmpeg under the LGPL have no x264."""


def container_for(path: str | Path) -> str:
    """Return the container of the suffix of `path`; raises `UnknownName`, which lists the suffixes.

    >>> container_for("private.MP4")
    'mp4'
    """
    suffix = Path(path).suffix.lower()
    if suffix not in SUFFIXES:
        raise UnknownName("format", suffix or shown(path), SUFFIXES)
    return SUFFIXES[suffix]


def encoder_for(container: str, width: int, height: int) -> tuple[Encoder, str]:
    """Return the best installed encoder for frames of this size, and its format of pixels.

    Raises `OutputError` if this FFmpeg has none.
    """
    odd = bool(width % 2 or height % 2)
    for encoder in ENCODERS[container]:
        pixels = encoder.odd if odd else encoder.even
        if pixels is not None and is_installed(encoder.name):
            return encoder, pixels
    sides = "with odd sides " if odd else ""
    raise OutputError(
        f"this FFmpeg cannot write {container} {sides}", hint="install PyAV's wheel: pip install av"
    )


def is_installed(name: str) -> bool:
    """Whether this FFmpeg has the encoder."""
    av = pyav()
    try:
        av.codec.Codec(name, "w")
    except (ValueError, av.error.FFmpegError):
        return False
    return True


def settings(stream: Any, encoder: Encoder) -> None:
    """Set the encoder of `stream`: no frames out of order, colours of BT.709, no version of the software."""
    context = stream.codec_context
    context.max_b_frames = 0
    context.gop_size = KEYFRAMES
    context.options = {**encoder.options, "flags": "+bitexact"}
    context.color_primaries = context.color_trc = context.colorspace = 1
    context.color_range = 1
