"""The clip of docs/video.md, docs/video.webp: before and after, side by side.

    python docs/make_video.py

A public photograph (NASA; scikit-image's `astronaut`) is filmed by a camera that moves, and released with a
seed. Needs the extras `video` and `faces`, so the picture is in the repository.
"""

from __future__ import annotations

import math
import tempfile
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import av
import cv2
import numpy as np
from PIL import Image
from skimage import data

from dpveil.video.make_plan import analyze
from dpveil.video.reading import open_clip
from dpveil.video.render_job import render

OUT = Path(__file__).parent / "video.webp"
SIDE, FRAMES, RATE = 240, 48, 12


def filmed() -> Iterator[np.ndarray]:
    """Yield frames of a camera that swings around the photograph's head."""
    photo = data.astronaut()
    for index in range(FRAMES):
        turn = 2 * math.pi * index / FRAMES
        scale = (0.92 + 0.12 * math.cos(turn)) * SIDE / 264
        move = cv2.getRotationMatrix2D((224, 118), 9 * math.sin(turn), scale)
        away = 22 * math.sin(turn) - 224, 10 * math.cos(2 * turn) - 122
        move[:, 2] += np.array(away) + SIDE / 2
        yield cv2.warpAffine(photo, move, (SIDE, SIDE), flags=cv2.INTER_AREA, borderMode=cv2.BORDER_REPLICATE)


def write(path: Path) -> None:
    with av.open(str(path), "w") as made:
        stream: Any = made.add_stream("libx264", rate=RATE)
        stream.width = stream.height = SIDE
        stream.pix_fmt = "yuv420p"
        stream.options = {"crf": "14"}
        for index, image in enumerate(filmed()):
            frame = av.VideoFrame.from_ndarray(image, format="rgb24")
            frame.pts, frame.time_base = index, Fraction(1, RATE)
            made.mux(stream.encode(frame))
        made.mux(stream.encode(None))


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        clip, private = Path(folder) / "clip.mp4", Path(folder) / "private.mp4"
        write(clip)
        render(analyze(clip), clip, private, seed=7)
        room = np.full((SIDE, 6, 3), 255, np.uint8)
        before, after = open_clip(clip), open_clip(private)
        pairs = zip(before.frames(), after.frames(), strict=True)
        frames = [Image.fromarray(np.hstack([a.image, room, b.image])) for a, b in pairs]
    frames[0].save(
        OUT, save_all=True, append_images=frames[1:], duration=1000 // RATE, loop=0, quality=70, method=6
    )


if __name__ == "__main__":
    main()
