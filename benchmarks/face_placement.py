"""Who is named by nothing but where a release puts the new face: exact placements beside grids.

Ten whole photos each of the 158 people of lfw10_250, faces found by CenterFace and placed by landmarks. The
attacker has half of a person's photos and names the people of the other half by scale, roll and centre of
the head, its yaw and the detector's box, as a release gives them back. Three attackers: the nearest mean and
the nearest photo after whitening within people, and a Gaussian kernel around each photo. A row has the best
of them, over 12 halves of the photos, with a 95 % interval by bootstrap over people. LFW is aligned
(deep-funnelled), so its rolls and centres tell less than those of other photos.
"""

from __future__ import annotations

import math
import sys
from pathlib import Path

import numpy as np
from scipy.spatial.distance import cdist

from dpveil import read
from dpveil.attacks.resampling import by_person
from dpveil.errors import RegionError
from dpveil.faces.geometry import place, pose_of
from dpveil.faces.geometry.head import between
from dpveil.faces.geometry.head_frame import HEAD, MIDDLE, HeadFrame
from dpveil.regions import Faces
from timing import load_note, report

SHARED = Path(__file__).parent.parent.parent / "shared" / "data" / "lfw10_250"
HALVES = 12
GRIDS = {
    "25 %, 15°, 1/8": (1.25, 15, 8),
    "25 %, 10°, 1/16": (1.25, 10, 16),
    "12.5 %, 10°, 1/16": (1.125, 10, 16),
}


def placements(step: int) -> tuple[list[str], np.ndarray, np.ndarray]:
    """Return people, exact placements (log side, roll, x, y, yaw, box) in pixels and degrees, and cells."""
    finder, people, exact, cells = Faces(margin=0), [], [], []
    for person in sorted(SHARED.iterdir())[::step]:
        for path in sorted(person.iterdir()):
            photo = read(path)
            boxes = [found.box for found in finder.detect(photo)]
            try:
                box = min(boxes, key=lambda b: abs(b.x + b.w / 2 - 125) + abs(b.y + b.h / 2 - 125) - b.w)
                there = place(photo, box)
            except (RegionError, ValueError):
                continue
            head = between(there.exact, there.frame, HeadFrame(1))
            centre = head.back(np.array([MIDDLE]) - 0.5)[0]
            yaw = math.degrees(pose_of(there.landmarks).yaw)
            shown = (-math.log(head.scale), -math.degrees(head.angle), *centre, yaw)
            people.append(person.name)
            exact.append((*shown, box.x, box.y, box.w, box.h))
            middle = there.cell.pose.back(np.array([MIDDLE]) - 0.5)[0]
            cells.append((there.cell.scale, there.cell.roll, *middle, there.cell.yaw))
    return people, np.array(exact), np.array(cells, float)


def gridded(exact: np.ndarray, step: float, degrees: float, parts: int) -> np.ndarray:
    """Return placements rounded to another grid, with yaw in classes of 20°."""
    scale = np.rint(exact[:, 0] / math.log(step))
    pitch = (2 * HEAD.half[0] / parts * step**scale)[:, None]
    centre = (np.floor(exact[:, 2:4] / pitch) + 0.5) * pitch
    yaw = np.clip(np.rint(exact[:, 4] / 20), -2, 2)
    return np.column_stack([scale, np.rint(exact[:, 1] / degrees), centre, yaw])


def named(features: np.ndarray, people: list[str]) -> tuple[str, str]:
    """Return the share of photos named by the best attacker, with its interval, and which one that is."""
    who = np.unique(people, return_inverse=True)[1]
    scaled = (features - features.mean(axis=0)) / np.maximum(features.std(axis=0), 1e-9)
    right = {name: np.zeros(len(who)) for name in ("nearest mean", "nearest photo", "kernel")}
    for half in range(HALVES):
        rng = np.random.default_rng(half)
        order = np.lexsort((rng.random(len(who)), who))
        side = np.empty(len(who), int)
        side[order] = np.arange(len(who)) % 2
        for known in (side == 0, side == 1):
            for name, guess in guesses(scaled[known], who[known], scaled[~known], rng).items():
                right[name][~known] += guess == who[~known]
    best = max(right, key=lambda name: right[name].mean())
    low, high = by_person(right[best] / HALVES, people, draws=2000, level=0.95, seed=0)
    return f"{right[best].mean() / HALVES:.4f} [{low:.4f}, {high:.4f}]", best


def guesses(
    known: np.ndarray, who: np.ndarray, probes: np.ndarray, rng: np.random.Generator
) -> dict[str, np.ndarray]:
    """Return the person whom each attacker names for each probe; ties are broken at random."""
    everybody = np.unique(who)
    means = np.stack([known[who == one].mean(axis=0) for one in everybody])
    within = known - means[np.searchsorted(everybody, who)]
    white = np.linalg.cholesky(np.linalg.inv(within.T @ within / len(known) + 1e-3 * np.eye(known.shape[1])))
    away = cdist(probes @ white, known @ white)
    away += 1e-9 * rng.random(away.shape)
    near = np.stack([np.exp(-(away[:, who == one] ** 2) / 2).mean(axis=1) for one in everybody], axis=1)
    return {
        "nearest mean": everybody[cdist(probes @ white, means @ white).argmin(axis=1)],
        "nearest photo": who[away.argmin(axis=1)],
        "kernel": everybody[(near + 1e-12 * rng.random(near.shape)).argmax(axis=1)],
    }


def main() -> None:
    """Print and save the table."""
    if not SHARED.is_dir():
        print("needs the shared data sets in ../shared/data", file=sys.stderr)
        return
    quick = "quick" in sys.argv[1:]
    people, exact, cells = placements(10 if quick else 1)
    seen = {
        "exact scale, roll and centre": exact[:, :4],
        "exact, with yaw": exact[:, :5],
        "exact, with yaw and box": exact,
        **{f"{name}, with yaw by 20°": gridded(exact, *grid) for name, grid in GRIDS.items()},
        "25 %, 15°, 1/8, without yaw": gridded(exact, 1.25, 15, 8)[:, :4],
        "dpveil's cells: 25 %, 15°, 1/16, with yaw by 20°": cells,
        "dpveil's cells, without yaw": cells[:, :4],
    }
    rows = []
    for name, features in seen.items():
        share, attacker = named(features, people)
        chance = round(1 / len(set(people)), 4)
        rows.append({"placement": name, "named": share, "attacker": attacker, "chance": chance})
    note = f"{len(people)} photos, found and placed by landmarks"
    report("face_placement-quick" if quick else "face_placement", rows, notes=(note, load_note()))


if __name__ == "__main__":
    main()
