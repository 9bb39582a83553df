"""How heads in stored frames are turned."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final

import numpy as np
from jaxtyping import Float32, UInt8

from dpveil.core.region import Box
from dpveil.errors import DPVeilError
from dpveil.faces.geometry.landmarks import Predictor
from dpveil.faces.geometry.pose import pose_of

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
