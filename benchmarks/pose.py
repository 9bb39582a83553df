"""Where released faces look: beside the original in photos, and when a release is rendered in a chosen pose.

Whole photos of LFW, 250 × 250, of people on whom no model was trained; `latent` with its default codec at
ε = 1. Yaw and pitch are read by landmarks, of original and release alike, in degrees. "found": a face is
found again; others have no angles. "error" is the median of absolute differences, from the original or from
what was asked; intervals are 95 %, by bootstrap over people.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np

import dpveil
from dpveil import read
from dpveil.core.photo import Photo
from dpveil.errors import DPVeilError, RegionError
from dpveil.faces.geometry.landmarks import predictor
from dpveil.faces.geometry.pose import pose_of
from dpveil.noise.bits import SeededBits
from dpveil.regions import Faces
from timing import report

PHOTOS = Path(__file__).parent.parent.parent / "shared" / "data" / "lfw10_250"
ASKED = ((-25, 0), (-12, 0), (0, 0), (12, 0), (25, 0), (0, -10), (0, 10))
BANDS = ((0, 10), (10, 20), (20, 35))
DRAWS = 2000


def seen(image: np.ndarray) -> tuple[float, float]:
    """Return yaw and pitch of the largest face; NaN if none is found."""
    boxes = [found.box for found in Faces(margin=0).detect(Photo(image))]
    largest = max(boxes, key=lambda box: box.w * box.h, default=None)
    if largest is None:
        return math.nan, math.nan
    try:
        pose = pose_of(predictor().near(image, largest))
    except RegionError:
        return math.nan, math.nan
    return math.degrees(pose.yaw), math.degrees(pose.pitch)


def median(errors: np.ndarray, people: Sequence[str]) -> str:
    """Return the median with its interval."""
    names = np.array(people)
    groups = [errors[names == name] for name in sorted(set(people))]
    rng = np.random.default_rng(0)
    drawn = [
        np.nanmedian(np.concatenate([groups[i] for i in rng.integers(len(groups), size=len(groups))]))
        for _ in range(DRAWS)
    ]
    low, high = np.percentile(drawn, (2.5, 97.5))
    return f"{np.nanmedian(errors):.1f} [{low:.1f}, {high:.1f}]"


def row(what: str, wanted: np.ndarray, shown: np.ndarray, people: Sequence[str]) -> dict:
    """Return a row: errors of yaw and pitch, of n × 2 angles each."""
    away = np.abs(shown - wanted)
    return {
        "pose": what,
        "photos": len(away),
        "people": len(set(people)),
        "found": round(float(np.isfinite(away[:, 0]).mean()), 3),
        "yaw error": median(away[:, 0], people),
        "pitch error": median(away[:, 1], people),
        "yaw shown": round(float(np.nanmedian(shown[:, 0])), 1),
        "pitch shown": round(float(np.nanmedian(shown[:, 1])), 1),
    }


def main() -> None:
    """Release, render and measure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--step", type=int, default=2)
    asked = parser.parse_args()
    people, before, after = [], [], {pose: [] for pose in (None, *ASKED)}
    for person in sorted(PHOTOS.glob("*"))[:: asked.step]:
        for path in sorted(person.iterdir())[:3]:
            image = read(path).image
            own = seen(image)
            try:
                release = dpveil.obfuscate(image, "latent", epsilon=1, bits=SeededBits(7, path.name))
            except DPVeilError as error:
                print(path.name, error)
                continue
            if math.isnan(own[0]):
                continue
            people.append(person.name)
            before.append(own)
            for pose, found in after.items():
                found.append(seen((release if pose is None else release.render(pose)).image))
    wanted, shown = np.array(before), np.array(after[None])
    rows = [row("as in the photo", wanted, shown, people)]
    for low, high in BANDS:
        part = (np.abs(wanted[:, 0]) >= low) & (np.abs(wanted[:, 0]) < high)
        names = [name for name, its in zip(people, part, strict=True) if its]
        rows.append(row(f"as in the photo, yaw {low} to {high}", wanted[part], shown[part], names))
    for pose in ASKED:
        there = np.array(after[pose])
        rows.append(
            row(f"render({pose})", np.broadcast_to(np.array(pose, float), there.shape), there, people)
        )
    for one in rows:
        print(one)
    report("pose", rows)


if __name__ == "__main__":
    main()
