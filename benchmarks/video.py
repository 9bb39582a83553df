"""Clips beside deface 1.5: faces that show and flicker, on composites of moving faces in one run.

The 20 clips of `video_composites.py`: heads of LFW that move over photographs, straight, fast, turning,
rolled, behind bars and a fence, small, shaken, dark, compressed, through the picture's edges and with cuts.
A face counts in a frame if half of it can be seen, and as replaced if 95 % of its visible pixels are: of the
ellipse in its box, and of the whole box (`box`). `gaps` are times for which a face shows between frames in
which it is replaced, in `gap frames` frames; `late` counts frames before its first, and `never` faces that
always show. `% of pixels` is what is replaced of all frames. dpveil follows faces between searches; `every
frame` is its own search of each frame alone, with ellipses a margin of 0.3 larger. deface runs with its own
code and defaults in an environment of its own, .venv-deface. Speed and memory are in
`video_speed.py`. Needs ../shared/data/lfw10_250 and the extra
`video`: `python benchmarks/video.py [CLIP ...]`.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np

from dpveil import Photo
from dpveil.catalogue import build
from dpveil.regions import Faces
from dpveil.video.make_plan import analyze
from dpveil.video.reading import open_clip
from folder import _deface
from timing import load_note, report
from video_composites import PEOPLE, SMALL, Clip, Seen, clips, write
from video_recall import Ellipse, Score, drawn, score

MARGIN = 0.3
METHODS = {"dpveil, fill": "fill", "dpveil, faces of nobody": "attributes"}
EVERY = "every frame, dpveil's search"
DEFACE = "deface 1.5"

Masks = list[np.ndarray]


def planned(path: Path) -> dict[str, Masks]:
    """Return the pixels that dpveil replaces in every frame, by every method from the same tracks."""
    found = analyze(path, "fill", regions="faces")
    plans = {name: replace(found, method=build(method, {})) for name, method in METHODS.items()}
    return {
        name: [plan.scene.hidden_mask(n) for n in range(plan.facts.frames)] for name, plan in plans.items()
    }


def searched(path: Path, size: tuple[int, int]) -> Masks:
    """Return ellipses around the faces that are found in each frame by itself."""
    finder, masks = Faces(margin=0), []
    clip = open_clip(path)
    for frame in clip.frames():
        boxes = [face.box for face in finder.detect(Photo(frame.image))]
        ways = [(MARGIN * box.w, MARGIN * box.h) for box in boxes]
        shapes = [
            Ellipse(box.x - w, box.y - h, box.x + box.w + w, box.y + box.h + h)
            for box, (w, h) in zip(boxes, ways, strict=True)
        ]
        masks.append(drawn(shapes, size))
    return masks


def defaced(path: Path, size: tuple[int, int]) -> Masks:
    """Return the ellipses that deface blurs."""
    program = _deface()
    if program is None:
        return []
    script = Path(__file__).with_name("video_deface.py")
    call = [str(program.with_name("python")), str(script), str(path)]
    frames = json.loads(
        subprocess.run(call, check=True, capture_output=True, text=True).stdout.splitlines()[-1]
    )
    return [drawn([Ellipse(*box) for box in boxes], size) for boxes in frames]


def row(tool: str, scores: dict[str, Score], small: list[list[Seen]]) -> dict[str, object]:
    """Return a tool's line of the table: of all clips, of each, and by height in the clip of small faces."""
    one = sum(scores.values(), Score())
    return {
        "tool": tool,
        "faces": one.seen,
        "replaced": round(one.found / one.seen, 4),
        "box": round(one.boxes / one.seen, 4),
        "gaps": one.gaps,
        "gap frames": one.flickers,
        "late": one.late,
        "never": one.never,
        "% of pixels": round(100 * float(np.mean(one.area)), 1),
        **{name: round(each.found / each.seen, 4) for name, each in scores.items()},
        **(by_height(small, scores["small"]) if small else {}),
    }


def by_height(truth: list[list[Seen]], one: Score) -> dict[str, float]:
    """Return the share of faces that is replaced, by their heights."""
    found = {}
    for height in SMALL:
        seen = sum(face.height == height for frame in truth for face in frame)
        missed = sum(each == height for _, _, each in one.missed)
        found[f"small: {height} px"] = round(1 - missed / seen, 4)
    return found


def recall(clip: Clip, folder: Path) -> tuple[list[list[Seen]], dict[str, Score]]:
    """Return the faces of a clip, and the score of every tool on it."""
    path = folder / f"{clip.name}.mp4"
    truth = write(clip, path)
    masks = {**planned(path), EVERY: searched(path, clip.size), DEFACE: defaced(path, clip.size)}
    path.unlink()
    return truth, {name: score(truth, each) for name, each in masks.items() if each}


def recalls(names: list[str]) -> None:
    """Print and save the table of faces that show."""
    every, small = clips(), list[list[Seen]]()
    scores: dict[str, dict[str, Score]] = {}
    with tempfile.TemporaryDirectory() as folder:
        for name in names or list(every):
            truth, found = recall(every[name], Path(folder))
            small = truth if name == "small" else small
            for tool, one in found.items():
                scores.setdefault(tool, {})[name] = one
    rows = [row(tool, each, small) for tool, each in scores.items()]
    report("video-quick" if names else "video", rows, notes=(load_note(),))


def main() -> None:
    """Print and save one of the tables."""
    if not PEOPLE.is_dir():
        print("needs the shared data sets in ../shared/data", file=sys.stderr)
        return
    recalls(sys.argv[1:])


if __name__ == "__main__":
    main()
