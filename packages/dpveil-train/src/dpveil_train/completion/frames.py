"""Frames of public photos for training: aligned once, and stored in one memory-mapped file."""

from __future__ import annotations

import json
import tarfile
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Final

import cv2
import numpy as np
from jaxtyping import Float32, UInt8

from dpveil.core.region import Box
from dpveil.errors import DPVeilError, PhotoError
from dpveil.faces.geometry.align import BLUR, FIVE, of_points
from dpveil.faces.geometry.head_frame import frame_parts
from dpveil.faces.geometry.landmarks import Predictor, pose_of
from dpveil.io import FORMATS, read_bytes
from dpveil_train.completion.scenes import EDGE, INNER, STORED

MIDDLE: Final = (0.312, 0.248, 0.376, 0.488)
"""The face's left, top, width and height in photos of LFW, in units of their side."""
SPREAD: Final = 0.2
"""Largest accepted `Landmarks.spread`; profiles stay below it."""
BLACK: Final = 4
"""Highest level of the black wedges at the edges of a rotated photo."""
LEAST: Final = 24
"""Area of the smallest wedge in pixels."""

Frame = UInt8[np.ndarray, "192 192 4"]


def write_frames(paths: Iterable[Path], folder: Path, step: Callable[[], None] = lambda: None) -> int:
    """Write the frames of all photos in shards as `frames.npy`, and the numbers of people as `people.npy`.

    Returns the number of photos that were left out. `step` is called after each photo.
    """
    predictor, left = Predictor(5), 0
    people: list[int] = []
    items = list(_members(paths))
    frames = np.lib.format.open_memmap(folder / "frames.npy", "w+", np.uint8, (len(items), STORED, STORED, 4))
    for number, (data, person) in enumerate(items):
        try:
            frames[len(people)] = frame_of(read_bytes(data, f"photo {number}").image, predictor)
            people.append(person)
        except DPVeilError:
            left += 1
        step()
    np.save(folder / "people.npy", np.array(people, np.int64))
    return left


def frame_of(image: UInt8[np.ndarray, "h w 3"], predictor: Predictor) -> Frame:
    """Return the frame of the face in the middle of a photo, uint8 sRGB with the mask channel of `EDGE`.

    Raises `PhotoError` if the landmarks are very uncertain or the photo is grey.
    """
    height, width, channels = image.shape
    if channels != 3:
        raise PhotoError("the photo is grey")
    x, y, w, h = (round(part * side) for part, side in zip(MIDDLE, (width, height) * 2, strict=True))
    found = predictor.near(image, Box(x, y, w, h))
    if not found.spread < SPREAD:
        raise PhotoError("the landmarks are not sure")
    wanted = (frame_parts(np.array(FIVE)) * INNER - 0.5) + (STORED - INNER) / 2
    pose, size = of_points(found.points, wanted), (STORED, STORED)
    known = np.where(wedges(image), 0, 255).astype(np.uint8)
    soft = image
    if pose.scale < 1:
        soft = np.asarray(cv2.GaussianBlur(image, (0, 0), BLUR * (pose.scale**-2 - 1) ** 0.5), np.uint8)
    mode = cv2.INTER_LINEAR if pose.scale < 1 else cv2.INTER_CUBIC
    levels = cv2.warpAffine(soft, pose.matrix, size, flags=mode, borderMode=cv2.BORDER_REFLECT_101)
    sure = cv2.warpAffine(known, pose.matrix, size, borderMode=cv2.BORDER_REFLECT_101)
    inside = cv2.warpAffine(np.full((height, width), 255, np.uint8), pose.matrix, size, borderValue=0)
    marks = np.where(sure > 250, np.where(inside > 250, 255, EDGE), 0)
    return np.dstack([levels, marks.astype(np.uint8)])


def wedges(image: UInt8[np.ndarray, "h w 3"]) -> np.ndarray:
    """Return a mask of the black areas at a photo's edge, slightly dilated."""
    dark = (image.max(axis=2) <= BLACK).astype(np.uint8)
    _, labels, sizes, _ = cv2.connectedComponentsWithStats(dark, connectivity=8)
    rim = np.concatenate([labels[0], labels[-1], labels[:, 0], labels[:, -1]])
    wide = [label for label in np.unique(rim) if label and sizes[label, cv2.CC_STAT_AREA] >= LEAST]
    out: np.ndarray = cv2.dilate(np.isin(labels, wide).astype(np.uint8), np.ones((5, 5), np.uint8)) > 0
    return out


def _members(paths: Iterable[Path]) -> Iterator[tuple[bytes, int]]:
    """Yield every image of the shards with its person's number, from the .json beside it."""
    for path in sorted(paths):
        pairs: dict[str, dict[str, bytes]] = {}
        with tarfile.open(path, "r:") as shard:
            for member in shard:
                stem, end = str(Path(member.name).with_suffix("")), Path(member.name).suffix.lower()
                opened = shard.extractfile(member)
                if opened is not None:
                    pairs.setdefault(stem, {})[end] = opened.read()
        for stem in sorted(pairs):
            picture = next((data for end, data in pairs[stem].items() if end in FORMATS), None)
            if picture is not None and ".json" in pairs[stem]:
                yield picture, int(str(json.loads(pairs[stem][".json"])["person"]).lstrip("p"))


FACE: Final = Box(69, 64, 54, 70)
"""The face's box in a stored frame, in pixels."""


def write_turns(folder: Path, step: Callable[[], None] = lambda: None) -> None:
    """Write yaw and pitch of the frames in a folder as `turns.npy`, in degrees: 0 where no pose was found.

    `step` is called after each frame.
    """
    frames, people = np.load(folder / "frames.npy", mmap_mode="r"), np.load(folder / "people.npy")
    predictor, turns = Predictor(5), np.zeros((len(people), 2), np.float32)
    for number in range(len(people)):
        turns[number] = turn_of(np.ascontiguousarray(frames[number, ..., :3]), predictor)
        step()
    np.save(folder / "turns.npy", turns)


def turn_of(frame: UInt8[np.ndarray, "192 192 3"], predictor: Predictor) -> Float32[np.ndarray, 2]:
    """Return yaw and pitch of the head in a stored frame, in degrees."""
    try:
        pose = pose_of(predictor.near(frame, FACE))
    except DPVeilError:
        return np.zeros(2, np.float32)
    return np.degrees([pose.yaw, pose.pitch]).astype(np.float32)
