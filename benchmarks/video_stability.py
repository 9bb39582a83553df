"""Whether what is shown instead of faces is calm, and whether faces show in the finished files of commands.

Clips are released by commands and read again. `calmness` is the mean change of the head between consecutive
frames, with its true motion taken out, relative to that of the original: above 1, what is shown trembles or
slides. `shows` counts faces in frames in which fine detail of the original is still there: the correlation of
what a blur by a twelfth of the face's height takes away, inside the face, is above 0.5. Needs
../shared/data/lfw10_250 and the extra `video`: `python benchmarks/video_stability.py [CLIP ...]`.
"""

from __future__ import annotations

import math
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import cv2
import numpy as np

from dpveil.faces.geometry.align import Similarity
from dpveil.faces.geometry.head_frame import HeadFrame, between, in_head, pixel_grid
from dpveil.faces.geometry.landmarks import SEEN, of_box
from dpveil.faces.geometry.painted import shrunk
from timing import load_note, report
from video_composites import FACE, PEOPLE, Clip, Seen, clips, write
from video_speed import command, run, tools

CLIPS = ("straight", "nearing", "rolling", "turning", "room")
WHOLE = 0.999
"""Share of a face that can be seen, from which its head is compared with the frame before."""
SAME = 0.5
LEAST = 5
SIDE = 128
"""Side of the head's frame in which pictures are compared, in pixels."""
"""Least number of consecutive frames of a head."""


def images(path: Path) -> list[np.ndarray]:
    """Return the frames of a clip."""
    import av

    with av.open(str(path)) as clip:
        return [frame.to_ndarray(format="rgb24") for frame in clip.decode(video=0)]


def head(face: Seen) -> Similarity:
    """Return where a head truly is, as dpveil states it."""
    pose = face.pose
    box = SimpleNamespace(x=pose.x - face.width / 2, y=pose.y - pose.height / 2, w=face.width, h=pose.height)
    return between(of_box(box, -math.radians(pose.roll)), SEEN, HeadFrame(1))


def change(images: list[np.ndarray], heads: list[Similarity]) -> float:
    """Return the mean absolute difference, in levels, of a head between consecutive frames.

    Each frame is resampled to the head's frame by `heads`, which map pictures to one with a side of 1, so
    that what moves as they state does not count.
    """
    head = in_head(pixel_grid(SIDE))
    before: np.ndarray | None = None
    found: list[float] = []
    for image, pose in zip(images, heads, strict=True):
        there = between(pose, HeadFrame(1), HeadFrame(SIDE))
        crop = shrunk(image, there, SIDE)[head].astype(np.float32)
        if before is not None:
            found.append(float(np.abs(crop - before).mean()))
        before = crop
    return float(np.mean(found))


def runs(truth: list[list[Seen]]) -> Iterator[list[tuple[int, Seen]]]:
    """Yield runs of consecutive frames in which a whole face is seen, of one head each."""
    going: dict[int, list[tuple[int, Seen]]] = {}
    for frame, faces in enumerate([*truth, []]):
        whole = {face.head: face for face in faces if face.share >= WHOLE}
        yield from (run for who, run in going.items() if who not in whole and len(run) >= LEAST)
        going = {who: [*going.get(who, []), (frame, face)] for who, face in whole.items()}


def shows(original: np.ndarray, released: np.ndarray, face: Seen) -> bool:
    """Return whether fine detail of a face is in a released frame."""
    high, wide = face.bits.shape
    part = slice(face.top, face.top + high), slice(face.left, face.left + wide)
    inside = (face.bits & FACE) > 0
    fine = []
    for image in (original, released):
        grey = cv2.cvtColor(image[part], cv2.COLOR_RGB2GRAY).astype(np.float32)
        rest = (grey - cv2.GaussianBlur(grey, None, max(1.0, face.height / 12)))[inside]
        fine.append((rest - rest.mean()) / max(1e-6, float(rest.std())))
    return bool((fine[0] * fine[1]).mean() > SAME)


def compared(truth: list[list[Seen]], before: list[np.ndarray], after: list[np.ndarray]) -> dict[str, object]:
    """Return the figures of one released clip."""
    changes = []
    for each in runs(truth):
        poses = [head(face) for _, face in each]
        changes.append([change((part[n] for n, _ in each), poses) for part in (after, before)])
    released, original = np.mean(changes, axis=0)
    seen = [(n, face) for n, faces in enumerate(truth) for face in faces if face.share >= WHOLE]
    count = sum(shows(before[n], after[n], face) for n, face in seen)
    return {
        "calmness": round(float(released / original), 2),
        "change, levels": round(float(released), 2),
        "of the original": round(float(original), 2),
        "shows": f"{count}/{len(seen)}",
    }


def stability(names: list[str]) -> None:
    """Print and save the table."""
    rows: list[dict[str, object]] = []
    every: dict[str, Clip] = clips()
    with tempfile.TemporaryDirectory() as folder:
        clip, out = Path(folder) / "clip.mp4", Path(folder) / "out.mp4"
        for name in names or CLIPS:
            truth = write(every[name], clip)
            before = images(clip)
            for tool in tools():
                run(command(tool, clip, out))
                rows.append({"clip": name, "tool": tool, **compared(truth, before, images(out))})
    report("video_stability-quick" if names else "video_stability", rows, notes=(load_note(),))


if __name__ == "__main__":
    if PEOPLE.is_dir():
        stability(sys.argv[1:])
    else:
        print("needs the shared data sets in ../shared/data", file=sys.stderr)
