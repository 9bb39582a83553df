"""Small clips for tests of what is done with them: coded blocks that move, and plans of these clips."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import av
import numpy as np

from dpveil.video.facts import Facts, Key, Track
from dpveil.video.plan import VideoPlan
from dpveil.video.reading import open_clip

WIDTH, HEIGHT, FRAMES = 48, 32, 36


def picture(index: int) -> np.ndarray:
    """Return a frame: a slope, and a square that moves."""
    image = np.zeros((HEIGHT, WIDTH, 3), np.uint8)
    image[..., 0] = np.arange(WIDTH, dtype=np.uint8) * 5
    image[..., 1] = (np.arange(HEIGHT, dtype=np.uint8) * 7)[:, None]
    x = 4 + index % (WIDTH - 12)
    image[10:20, x : x + 8] = 250 - 3 * (index % 60)
    return image


def make_clip(
    path: Path,
    frames: int = FRAMES,
    *,
    sound: bool = False,
    cut: int | None = None,
    still: np.ndarray | None = None,
) -> Path:
    """Write a clip of 12 frames a second; from the frame `cut` on, it is the negative. All show `still`."""
    with av.open(str(path), "w") as made:
        stream: Any = made.add_stream("libx264", rate=12)
        height, width, _ = (picture(0) if still is None else still).shape
        stream.width, stream.height, stream.pix_fmt = width, height, "yuv420p"
        stream.options = {"preset": "ultrafast", "crf": "12"}
        tone: Any = made.add_stream("aac", rate=8000) if sound else None
        for index in range(frames):
            shown = picture(index) if still is None else still
            shown = shown if cut is None or index < cut else 255 - shown
            frame = av.VideoFrame.from_ndarray(shown, format="rgb24")
            frame.pts, frame.time_base = index, Fraction(1, 12)
            made.mux(stream.encode(frame))
        made.mux(stream.encode(None))
        if tone is not None:
            levels = np.zeros((1, 8000 * frames // 12), np.float32)
            levels[0] = 0.1 * np.sin(np.arange(levels.shape[1]) * 0.3)
            piece = av.AudioFrame.from_ndarray(levels, format="fltp", layout="mono")
            piece.sample_rate, piece.pts = 8000, 0
            made.mux(tone.encode(piece))
            made.mux(tone.encode(None))
    return path


def facts_of(path: Path) -> Facts:
    clip = open_clip(path)
    return clip.facts


def track(
    number: int, x: int, *, last: int = FRAMES - 1, first: int = 0, moves: int = 0, **more: Any
) -> Track:
    """Return a box that a user gave, 16 × 16 pixels, which moves by so many pixels."""
    keys = (Key(first, x, 8, 16, 16), Key(last, x + moves, 8, 16, 16))
    return Track(number=number, kind="box", finder="by hand", keys=keys, end="end", **more)


def make_plan(path: Path, method: Any, tracks: Sequence[Track], **more: Any) -> VideoPlan:
    return VideoPlan(clip=path.name, facts=facts_of(path), method=method, tracks=tuple(tracks), **more)


def frames_of(path: Path) -> np.ndarray:
    """Return all frames of a clip, as they decode."""
    with av.open(str(path)) as found:
        return np.stack([frame.to_ndarray(format="rgb24") for frame in found.decode(video=0)])
