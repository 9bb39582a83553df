"""What the trainings of all networks share: their orders, reading faces, checkpoints, and going on."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final, Protocol

import numpy as np
import torch
from jaxtyping import Float32, UInt8

from dpveil.core.numbers import Json
from dpveil.errors import DPVeilError, InvalidParameter, ModelError, PhotoError
from dpveil.faces.portrait import centred
from dpveil_train.labelled import Labelled, labelled
from dpveil_train.landmarks import Finder
from dpveil_train.order import Order, Progress

OFTEN: Final = 120.0
"""Seconds between checkpoints."""
READ: Final = 128
"""Side of the crops in which landmarks are looked for, in pixels."""
LEAST: Final = 40
"""Least number of pictures."""


class Sized(Protocol):
    """A plan: a frozen dataclass of sizes and hyperparameters."""

    @property
    def side(self) -> int:
        """The side of the pictures, in pixels."""

    @property
    def steps(self) -> int:
        """The number of steps."""

    @property
    def seed(self) -> int:
        """The seed."""


class Learner(Protocol):
    """The state of a training: `done` steps of its plan, in `spent` seconds."""

    plan: Any
    done: int
    spent: float

    def step(self) -> dict[str, float]:
        """Make one step and return the losses."""

    def state(self) -> dict[str, Any]:
        """Return the state for a checkpoint."""

    def take_up(self, state: dict[str, Any]) -> None:
        """Restore the state of a checkpoint."""


@dataclass(frozen=True, kw_only=True)
class PlannedOrder(Order):
    """An order for a network: its plan, and what finds the landmarks from which poses follow, if allowed."""

    plan: Any
    landmarks: Finder | None = None

    def settings(self) -> dict[str, Json]:
        """Return the settings that determine the network together with the images and the seed."""
        plan = {name: list(v) if isinstance(v, tuple) else v for name, v in asdict(self.plan).items()}
        file: dict[str, Json] = {}
        if self.landmarks is not None:
            file["landmark_file_sha256"] = self.landmarks.digest
        return {**plan, **file, **super().settings()}


Look = Callable[[Finder | None, UInt8[np.ndarray, "s s 3"]], tuple[float, ...]]
"""What is computed of a crop from its landmarks; NaN where they are unknown."""


def angles(finder: Finder | None, crop: UInt8[np.ndarray, "s s 3"]) -> tuple[float, float]:
    """Return yaw and pitch in radians."""
    pose = finder.pose(crop) if finder else None
    return (np.nan, np.nan) if pose is None else (pose.yaw, pose.pitch)


def read_faces(
    order: PlannedOrder, progress: Progress, look: Look = angles
) -> tuple[UInt8[np.ndarray, "n s s 3"], Float32[np.ndarray, "n c"], list[DPVeilError]]:
    """Return crops of labelled shards, their gender (1 female, -1 male) and `look`, and what failed.

    Raises `PhotoError` if no labelled image can be read, and `InvalidParameter` for fewer than `LEAST`.
    """
    crops, about, failed = [], [], list[DPVeilError]()
    with progress(len(order.paths), "reading") as step:
        for found in labelled(order.paths, step):
            if not isinstance(found, Labelled):
                failed.append(found)
                continue
            seen = np.ascontiguousarray(centred(found.photo, (READ, READ, 3)))
            about.append((2.0 * found.labels["gender"] - 1, *look(order.landmarks, seen)))
            crops.append(centred(found.photo, (order.plan.side, order.plan.side, 3)))
    if not crops:
        hint = "give .tar shards with a .json of age, gender and race beside every picture"
        raise failed[0] if failed else PhotoError("the shards contain no pictures", hint=hint)
    if len(crops) < LEAST:
        hint = f"give at least {LEAST}, and thousands to learn from"
        raise InvalidParameter("images", None, f"are only {len(crops)}", hint=hint)
    return np.stack(crops), np.array(about, np.float32), failed


def costs(trainer: Learner, images: int) -> dict[str, Json]:
    """Return what a card says of a training: pictures, hours, and the most memory that its process took."""
    about: dict[str, Json] = {"images": images, "hours": round(trainer.spent / 3600, 2)}
    peak = peak_memory()
    return about if peak is None else {**about, "peak memory in MiB": peak}


def peak_memory() -> int | None:
    """Return the most memory that this process has had resident, in MiB; None where that is not known."""
    if sys.platform == "win32":
        return None
    import resource

    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return int(most >> (20 if sys.platform == "darwin" else 10))


def learned(trainer: Learner, order: PlannedOrder, kind: str, images: int, progress: Progress) -> Path:
    """Train to the end of the plan, from the checkpoint of the same order, if there is one; return its path.

    Progress is kept every two minutes, and when the training is interrupted.
    """
    kept = order.out.with_name(f".{order.out.name}.checkpoint")
    key = order.checkpoint({"codec": kind, "crops": images}).key
    _take_up(trainer, kept, key)
    with progress(trainer.plan.steps - trainer.done, "learning") as step:
        _learn(trainer, lambda: _keep(trainer, kept, key), step)
    return kept


def _learn(trainer: Learner, keep: Callable[[], None], step: Callable[[], None]) -> None:
    saved = time.monotonic()
    try:
        while trainer.done < trainer.plan.steps:
            trainer.step()
            step()
            if time.monotonic() - saved > OFTEN:
                keep()
                saved = time.monotonic()
    finally:
        keep()


def _keep(trainer: Learner, path: Path, key: str) -> None:
    """Write the checkpoint atomically, through no link."""
    new = path.with_name(f"{path.name}.new")
    new.unlink(missing_ok=True)
    with new.open("xb") as file:
        torch.save({"key": key, **trainer.state()}, file)
    new.replace(path)


def _take_up(trainer: Learner, path: Path, key: str) -> None:
    """Take up a checkpoint of the same order and data; ignore any other, and one that is damaged.

    Raises `ModelError` for one of this order whose state is another one.
    """
    try:
        state = torch.load(path, map_location="cpu", weights_only=True)
    except Exception:  # noqa: BLE001  whatever PyTorch raises for a damaged file
        return
    if not isinstance(state, dict) or not isinstance(state.get("key"), str) or state["key"] != key:
        return
    try:
        trainer.take_up(state)
    except (AttributeError, KeyError, RuntimeError, TypeError, ValueError) as error:
        raise ModelError(f"{path} is a damaged checkpoint", hint="delete it, and train again") from error
