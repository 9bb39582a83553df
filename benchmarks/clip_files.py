"""Processor time and memory of reading and writing clips: python benchmarks/clip_files.py --frames 300

A clip is made of a texture that moves, with a camera's noise; its frames are read, then read and written.
With `--minutes 10` memory is what is asked for: the peak must not grow with the length.
"""

from __future__ import annotations

import argparse
import os
import resource
import tempfile
import time
from fractions import Fraction
from pathlib import Path

import av
import cv2
import numpy as np

from dpveil.video.reading import open_clip
from dpveil.video.writing import Writer


def made(path: Path, width: int, height: int, frames: int) -> Path:
    """Write a clip of a blurred texture under a moving window, with a little noise of a sensor."""
    rng = np.random.default_rng(1)
    coarse = rng.integers(0, 256, (height // 8, width // 8, 3), np.uint8)
    texture = cv2.resize(coarse, (2 * width, 2 * height))
    grain = [rng.integers(0, 6, (height, width, 3), np.uint8) for _ in range(8)]
    with av.open(str(path), "w") as made_here:
        stream = made_here.add_stream("libx264", rate=30)
        stream.width, stream.height, stream.pix_fmt = width, height, "yuv420p"
        stream.codec_context.options = {"preset": "veryfast", "crf": "20"}
        for number in range(frames):
            at = int(height / 2 * (1 + np.sin(number / 40)))
            levels = np.ascontiguousarray(texture[at : at + height, at : at + width])
            frame = av.VideoFrame.from_ndarray(cv2.add(levels, grain[number % 8]), "rgb24")
            frame.pts, frame.time_base = number, Fraction(1, 30)
            made_here.mux(stream.encode(frame))
        made_here.mux(stream.encode(None))
    return path


def main() -> None:
    """Parse the arguments, and report a line for each size."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--frames", type=int, default=300)
    parser.add_argument("--minutes", type=float)
    parser.add_argument("--suffix", default=".mp4")
    parser.add_argument("--sizes", default="640x480,1280x720")
    arguments = parser.parse_args()
    frames = round(arguments.minutes * 1800) if arguments.minutes else arguments.frames
    for width, height in (map(int, size.split("x")) for size in arguments.sizes.split(",")):
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            path = made(folder / "in.mp4", width, height, frames)
            before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
            begun = time.process_time()
            clip = open_clip(path)
            opened = time.process_time() - begun
            begun = time.process_time()
            for _ in clip.frames():
                pass
            read = time.process_time() - begun
            begun, wall = time.process_time(), time.monotonic()
            container = {".webm": "webm"}.get(arguments.suffix, "mp4")
            out = folder / f"out{arguments.suffix}"
            with Writer(out, clip.facts, container=container) as writer:
                for frame in clip.frames():
                    writer.write(frame)
            both = time.process_time() - begun
            wall = time.monotonic() - wall
            after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
            print(
                f"{width}×{height}, {frames} frames: open {opened:.2f} s, read {1e3 * read / frames:.2f} ms, "
                f"read and write {1e3 * both / frames:.2f} ms of processor time a frame "
                f"({1e3 * wall / frames:.2f} ms of the clock); "
                f"peak {after} MB, {after - before} above making the clip; load {os.getloadavg()[0]:.1f}"
            )


if __name__ == "__main__":
    main()
