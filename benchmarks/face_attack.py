"""Re-identification by dlib's embedding in the outputs of deface 1.5 and of dpveil, on one folder.

Photos of LFW, 128 × 128: of each person `KNOWN` that the attacker has and `PROBES` that were released, all
different photos. The attacker looks where the face was in the original, detects landmarks there, and names
the person whose mean embedding is nearest: "knowing originals", or "knowing outputs" of the same tool for the
photos that he has (the parrot attack). A photo that was not written, and a face without landmarks, counts as
not named and is never left out. Intervals are 95 %, by bootstrap over people. "face found" is the share of
written probes in whose output CenterFace finds a face where one was.

`photos/s` is of the whole command, start-up included, the tools one after another on the same folder; 128
pixels are small for a photo, so the table of `folder` says more about speed. `deface` runs in its own
environment as in `folder.py`. Models are those of the package dpveil-faces; methods that need one are left
out if it is not installed. `quick` as an argument uses a few people, and saves its figures separately.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import sysconfig
import tempfile
import time
import warnings
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from PIL import Image

from dpveil import Photo, read
from dpveil.attacks import identify
from dpveil.core.region import Box
from dpveil.faces.embedding import LENGTH, SAME, aligned, embedder
from dpveil.regions import Faces
from folder import _deface
from timing import load_note, report

SHARED = Path(__file__).parent.parent.parent / "shared" / "data"
KNOWN, PROBES, STEP = 4, 2, 2
"""Photos of a person that the attacker has, photos released, and every how many-th person is taken."""
DEFACE = {"deface, blur": "blur", "deface, mosaic": "mosaic", "deface, solid": "solid"}
OURS = {
    "dpveil dp-pix, ε = 5": ["dp-pix", "--epsilon", "5", "--block", "16", "--neighbourhood", "256"],
    "dpveil latent, ε = 300": ["latent", "--epsilon", "300"],
    "dpveil latent, ε = 3000": ["latent", "--epsilon", "3000"],
    "dpveil gallery, ε = 8": ["gallery", "--epsilon", "8"],
    "dpveil attributes, gender and age at ε = 4 each": ["attributes", "--attributes", "gender=4,age=4"],
    "dpveil attributes, none": ["attributes", "--attributes", "none"],
}
FOUND = 0.3
"""Intersection over union above which two boxes are of one face."""


@dataclass(frozen=True)
class Shot:
    """One photo: its name, its person, whether the attacker has it, and the box of its face."""

    name: str
    person: str
    known: bool
    box: Box


def make(folder: Path, step: int) -> list[Shot]:
    """Copy the photos into `folder` and find the largest face in each; photos without a face are left out."""
    folder.mkdir()
    finder, shots = Faces(margin=0), []
    for person in sorted(SHARED.glob("lfw10_128/*"))[::step]:
        for number, path in enumerate(sorted(person.iterdir())[: KNOWN + PROBES]):
            boxes = [found.box for found in finder.detect(read(path))]
            if boxes:
                name = f"{person.name}-{number}"
                shutil.copy(path, folder / f"{name}.jpg")
                largest = max(boxes, key=lambda box: box.w * box.h)
                shots.append(Shot(name, person.name, number < KNOWN, largest))
    return shots


def outputs(photos: Path, work: Path) -> dict[str, tuple[Path, float]]:
    """Return the folder of outputs and the run time of every tool."""
    made: dict[str, tuple[Path, float]] = {"the originals": (photos, 0.0)}
    for name, kind in DEFACE.items():
        if _deface() is not None:
            shutil.copytree(photos, out := work / name)
            made[name] = out, _run([str(_deface()), str(out), "--replacewith", kind])
    for name, options in OURS.items():
        out = work / name
        program = str(Path(sysconfig.get_path("scripts")) / "dpveil")
        call = [program, "obfuscate", str(photos), "--out", str(out), "--regions", "faces", "--method"]
        seconds = _run([*call, *options])
        if out.is_dir() and any(out.glob("*.png")):
            made[name] = out, seconds
        else:
            print(f"{name} released nothing and is left out", file=sys.stderr)
    return made


def _run(call: list[str]) -> float:
    start = time.perf_counter()
    subprocess.run(call, capture_output=True, check=False)
    return time.perf_counter() - start


def released(folder: Path, shot: Shot) -> Photo | None:
    """Return the output of a tool for a photo, if there is one."""
    names = (f"{shot.name}.png", f"{shot.name}_anonymized.jpg", f"{shot.name}.jpg")
    path = next((folder / name for name in names if (folder / name).exists()), None)
    return None if path is None else Photo(np.asarray(Image.open(path).convert("RGB")))


def embeddings(folder: Path, shots: list[Shot]) -> np.ndarray:
    """Return an embedding for each photo; NaN without an output or without landmarks in it."""
    found = np.full((len(shots), LENGTH), np.nan)
    for number, shot in enumerate(shots):
        photo = released(folder, shot)
        chip = None if photo is None else aligned(photo.image, shot.box)
        if chip is not None:
            found[number] = embedder()(chip[None])[0]
    return found


def attacked(shots: list[Shot], made: dict[str, tuple[Path, float]]) -> list[dict[str, object]]:
    """Return a row for each tool."""
    known = np.array([shot.known for shot in shots])
    people = [[shot.person for shot in shots if shot.known == side] for side in (True, False)]
    seen = {name: embeddings(folder, shots) for name, (folder, _) in made.items()}
    clean, rows = seen["the originals"], []
    for name, (folder, seconds) in made.items():
        own = seen[name]
        lost = np.isnan(own[~known]).any(axis=1)
        same = np.linalg.norm(own - clean, axis=1)[~known] < SAME
        rows.append(
            {
                "tool": name,
                "photos": len(shots),
                "photos/s": round(len(shots) / seconds, 1) if seconds else "",
                "probes": int((~known).sum()),
                **_seen(folder, [shot for shot in shots if not shot.known]),
                "no landmarks": int(lost.sum()),
                "named, knowing originals": _share(clean[known], people, own[~known]),
                "named, knowing outputs": _share(own[known], people, own[~known]),
                "chance": round(1 / len(set(people[0])), 4),
                f"nearer than {SAME} to its original": int(same.sum()),
            }
        )
    return rows


def _share(known: np.ndarray, people: list[list[str]], probes: np.ndarray) -> str:
    """Return the share of probes named, and its interval."""
    with warnings.catch_warnings():  # people with NaN embeddings only are never named
        warnings.simplefilter("ignore", RuntimeWarning)
        found = identify(known, people[0], probes, people[1])
    low, high = found.interval()
    return f"{found.rate:.3f} [{low:.3f}, {high:.3f}]"


def _seen(folder: Path, probes: list[Shot]) -> dict[str, object]:
    """Return how many probes were not written, and in what share of the others a face is found."""
    finder, written, hits = Faces(margin=0), 0, 0
    for shot in probes:
        photo = released(folder, shot)
        if photo is not None:
            written += 1
            hits += any(_overlap(found.box, shot.box) > FOUND for found in finder.detect(photo))
    return {"not written": len(probes) - written, "face found": round(hits / max(1, written), 3)}


def _overlap(one: Box, other: Box) -> float:
    w = min(one.x + one.w, other.x + other.w) - max(one.x, other.x)
    h = min(one.y + one.h, other.y + other.h) - max(one.y, other.y)
    both = max(0, w) * max(0, h)
    return both / (one.w * one.h + other.w * other.h - both)


def main() -> None:
    """Print and save the table with the load of the machine, which may be shared."""
    if not SHARED.is_dir():
        print("needs the shared data sets in ../shared/data", file=sys.stderr)
        return
    quick = "quick" in sys.argv[1:]
    with tempfile.TemporaryDirectory() as temporary:
        work = Path(temporary)
        shots = make(work / "photos", 20 if quick else STEP)
        rows = attacked(shots, outputs(work / "photos", work))
    report("face_attack-quick" if quick else "face_attack", rows, notes=(load_note(),))


if __name__ == "__main__":
    main()
