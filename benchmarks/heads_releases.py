"""Releases of whole photos for `heads_in_photos.py`, kept in a folder, and what a program sees in them."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

import dpveil
from dpveil import Box, Photo
from dpveil.errors import RegionError
from dpveil.faces import Attributes
from dpveil.faces.embedding import LENGTH, aligned, embedder
from dpveil.faces.geometry import Frame
from dpveil.faces.geometry.align import Similarity, of_points
from dpveil.faces.geometry.head import between, inside
from dpveil.faces.geometry.head_frame import OVAL, HeadFrame
from dpveil.faces.geometry.landmarks import predictor
from dpveil.faces.geometry.pose import pose_of
from dpveil.regions import Faces

SETTINGS: dict[str, dict[str, Any]] = {
    "none": {"method": "attributes", "attributes": "none"},
    "none, box": {"method": "attributes", "attributes": "none", "protect": "box"},
    "none, face": {"method": "attributes", "attributes": "none", "protect": "face"},
    "none, face, decoded": {"method": "attributes", "attributes": "none", "protect": "face", "decoded": True},
    "gender, ε = 8": {"method": "attributes", "attributes": "gender=8"},
    "drawn": {"method": "attributes", "attributes": "none", "gallery": "drawn"},
    "gallery, ε = 8": {"method": "gallery", "epsilon": 8},
}
FOUND = 0.3
"""Intersection over union above which two boxes are of one face."""
FRAME = Frame(128)
SEED = 14


@dataclass(frozen=True)
class Shot:
    """A photo of a person; `known` if attackers have it, else it is a probe."""

    path: Path
    known: bool

    @property
    def person(self) -> str:
        return self.path.parent.name

    @property
    def image(self) -> np.ndarray:
        return np.asarray(Image.open(self.path).convert("RGB"))


@dataclass(frozen=True)
class Kept:
    """The release of a shot in the cache: `facts` of its main face, and the files' common `stem`."""

    stem: Path
    facts: Mapping[str, Any]

    @cached_property
    def image(self) -> np.ndarray:
        return np.asarray(Image.open(self.stem.with_suffix(".png")))

    @cached_property
    def hidden(self) -> np.ndarray:
        return np.asarray(Image.open(f"{self.stem}-hidden.png")) > 0

    @cached_property
    def oval(self) -> np.ndarray:
        """The mask of the released face, from brows to mouth."""
        pose = between(Similarity(*self.facts["pose"]), Frame(*self.facts["frame"]), HeadFrame(1))
        rows, columns = np.indices(self.hidden.shape)
        at = pose.to(np.stack([columns.ravel(), rows.ravel()], axis=1).astype(float)) + 0.5
        return inside(OVAL, at).reshape(self.hidden.shape)


def shots(data: Path, step: int, known: int, probes: int) -> list[Shot]:
    """Return the first photos of every `step`-th person of `data`."""
    people = sorted(folder for folder in data.iterdir() if folder.is_dir())[::step]
    return [
        Shot(path, place < known)
        for person in people
        for place, path in enumerate(sorted(person.glob("*.jpg"))[: known + probes])
    ]


def release(shot: Shot, folder: Path, settings: Mapping[str, Any]) -> Kept | None:
    """Return the release of a shot, from the cache if it is there; None if dpveil refused the photo."""
    stem = folder / shot.path.stem
    record = stem.with_suffix(".json")
    if not record.exists():
        folder.mkdir(parents=True, exist_ok=True)
        record.write_text(json.dumps(_released(shot, stem, settings)))
    facts = json.loads(record.read_text())
    return Kept(stem, facts) if facts else None


def planned(shot: Shot, settings: Mapping[str, Any]) -> dpveil.Plan:
    """Return the plan for a shot; if `decoded`, for its levels, whose regions do not grow to JPEG blocks."""
    own = dict(settings)
    return dpveil.plan(shot.image if own.pop("decoded", False) else shot.path, **own)


def _released(shot: Shot, stem: Path, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Write the release and the mask of its regions; return the placement of the face in the middle."""
    try:
        made = planned(shot, settings)
        done = made.release(bits=dpveil.SeededBits(SEED, stem.name))
    except dpveil.DPVeilError as error:
        print(shot.path.name, error)
        return {}
    image = np.asarray(done.image)
    hidden = np.zeros(image.shape[:2], np.bool_)
    for region in made.regions:
        hidden[region.box.slices] |= True if region.mask is None else region.mask
    Image.fromarray(image).save(stem.with_suffix(".png"))
    Image.fromarray(np.where(hidden, np.uint8(255), np.uint8(0))).save(f"{stem}-hidden.png")
    return placement(made.placement.places, image.shape)


def placement(places: Any, shape: tuple[int, ...]) -> dict[str, Any]:
    """Return scale, roll, centre, yaw and the region's box of the face that is nearest to the middle."""
    height, width = shape[:2]
    middle = np.array([width / 2, height / 2])
    frames = [(one, one.pose.back(np.array([[one.frame.size / 2] * 2]))[0]) for one in places]
    main, centre = min(frames, key=lambda pair: float(np.hypot(*(pair[1] - middle))))
    box, turned = main.region.box, getattr(main, "cell", None) or getattr(main, "turned", None)
    return {
        "scale": math.log(main.frame.size / (1 + 2 * main.frame.margin) / main.pose.scale),
        "roll": main.pose.angle,
        "centre": centre.tolist(),
        "yaw": float(getattr(turned, "yaw", None) or 0),
        "box": [box.x, box.y, box.w, box.h],
        "frame": [main.frame.size, main.frame.margin],
        "pose": [main.pose.scale, main.pose.angle, main.pose.x, main.pose.y],
    }


@dataclass(frozen=True)
class Look:
    """What programs see at a face: all NaN, and `gender` -1, if no face is found."""

    box: np.ndarray
    points: np.ndarray
    yaw: float
    gender: int
    embedding: np.ndarray


MISSED = Look(np.full(4, np.nan), np.full((5, 2), np.nan), math.nan, -1, np.full(LENGTH, np.nan))


def look(image: np.ndarray, near: np.ndarray, model: Any) -> Look:
    """Return what is seen of the face whose box overlaps the box `near`; `MISSED` if none is found."""
    if not np.isfinite(near).all():
        return MISSED
    photo = Photo(image)
    boxes = [found.box for found in Faces(margin=0).detect(photo)]
    best = max(boxes, key=lambda box: overlap(box, near), default=None)
    if best is None or overlap(best, near) < FOUND:
        return MISSED
    box = np.array([best.x, best.y, best.w, best.h], float)
    try:
        found = predictor().near(image, best)
        chip = aligned(image, best)
    except RegionError:
        chip = None
    if chip is None:
        return Look(box, *(getattr(MISSED, name) for name in ("points", "yaw", "gender", "embedding")))
    crop = of_points(found.points, FRAME.points()).crop(image, FRAME)
    gender = int(model.read(crop[None])["gender"][0])
    return Look(box, found.points, _yaw(found), gender, embedder()(chip[None])[0])


def _yaw(found: Any) -> float:
    try:
        return pose_of(found).yaw
    except RegionError:
        return math.nan


def main_face(image: np.ndarray) -> np.ndarray:
    """Return the box of the face nearest to the middle of a photo, or NaN."""
    height, width = image.shape[:2]
    boxes = [found.box for found in Faces(margin=0).detect(Photo(image))]
    away = lambda box: math.hypot(box.x + box.w / 2 - width / 2, box.y + box.h / 2 - height / 2)  # noqa: E731
    best = min(boxes, key=away, default=None)
    return MISSED.box if best is None else np.array([best.x, best.y, best.w, best.h], float)


def overlap(one: Box, other: np.ndarray) -> float:
    """Return the intersection over union of two boxes."""
    x, y, w, h = other
    wide = min(one.x + one.w, x + w) - max(one.x, x)
    high = min(one.y + one.h, y + h) - max(one.y, y)
    both = max(0.0, wide) * max(0.0, high)
    return both / (one.w * one.h + w * h - both)


def looks_of(folder: Path, pairs: Sequence[tuple[Shot, Kept]], real: Sequence[Look] = ()) -> list[Look]:
    """Return what is seen in releases at the faces of `real` or, without it, in the originals.

    It is kept in `looks.npz` of the folder.
    """
    names = np.array([shot.path.stem for shot, _ in pairs])
    record = folder / "looks.npz"
    if record.exists():
        held = np.load(record)
        if np.array_equal(held["names"], names):
            return [Look(*parts) for parts in zip(*(held[field.name] for field in fields(Look)), strict=True)]
    model = Attributes(attributes="gender=8").model.held
    nears = [one.box for one in real] or [main_face(shot.image) for shot, _ in pairs]
    images = [kept.image if real else shot.image for shot, kept in pairs]
    found = [look(*one, model) for one in zip(images, nears, strict=True)]
    columns = {field.name: np.stack([getattr(one, field.name) for one in found]) for field in fields(Look)}
    folder.mkdir(exist_ok=True)
    np.savez(record, names=names, **columns)
    return found
