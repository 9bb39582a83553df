"""Training of `gan` from labelled shards to its file; it goes on where it was interrupted."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Final

import numpy as np
import torch
from jaxtyping import Float32, UInt8

from dpveil.assets.cards import Card
from dpveil.assets.store import save
from dpveil.codecs import GAN
from dpveil.core.numbers import Json
from dpveil.errors import DPVeilError, InvalidParameter, PhotoError
from dpveil.metrics import psnr, ssim
from dpveil.training.crops import centred
from dpveil.training.generators.export import codec_of
from dpveil.training.generators.plan import PLANS, Plan
from dpveil.training.generators.trainer import Trainer
from dpveil.training.labelled import Labelled, labelled
from dpveil.training.landmarks import Finder
from dpveil.training.order import Order, Progress, Trained, silent

OFTEN: Final = 120.0
"""Seconds between checkpoints."""
READ: Final = 128
"""Side of the crops in which landmarks are looked for, in pixels."""
MEASURED: Final = 400
"""Most held-out pictures that are measured."""
LEAST: Final = 40
"""Least number of pictures."""


@dataclass(frozen=True, kw_only=True)
class NetworkOrder(Order):
    """An order for a `gan`: its plan, and what finds the landmarks from which poses follow.

    Without `landmarks` no pose is known, and the decoder learns none.
    """

    plan: Plan = PLANS["small"]
    landmarks: Finder | None = None

    def settings(self) -> dict[str, Json]:
        """Return the settings that determine the codec together with the images and the seed."""
        plan = {name: list(v) if isinstance(v, tuple) else v for name, v in asdict(self.plan).items()}
        file: dict[str, Json] = {}
        if self.landmarks is not None:
            file["landmark_file_sha256"] = self.landmarks.digest
        return {**plan, **file, **super().settings()}


def train(order: NetworkOrder, progress: Progress = silent) -> Trained[GAN]:
    """Train the codec on labelled shards, evaluate it, and write the model and its card.

    Raises `PhotoError` if no labelled image can be read, `InvalidParameter` for fewer than `LEAST`, and the
    errors of `Order.check` and of writing.
    """
    order.check()
    crops, conditions, failed = read_faces(order, progress)
    plan = replace(order.plan, seed=order.seed, posed=order.plan.posed and order.landmarks is not None)
    trainer = Trainer(plan, crops, conditions)
    kept = order.out.with_name(f".{order.out.name}.checkpoint")
    key = order.checkpoint({"codec": GAN.name, "crops": len(crops)}).key
    take_up(trainer, kept, key)
    with progress(plan.steps - trainer.done, "learning") as step:
        learn(trainer, lambda: _keep(trainer, kept, key), step)
    settings = {
        **order.settings(),
        "images": len(trainer.faces.rows),
        "hours": round(trainer.spent / 3600, 2),
    }
    codec = codec_of(trainer, Card(GAN.name, order.data, order.terms, order.seed, settings))
    codec = codec.with_card(replace(codec.card, metrics=measured(codec, trainer)))
    digest = save(codec, order.out, replace=order.replace)
    kept.unlink(missing_ok=True)
    return Trained(codec, digest, len(crops), failed)


def read_faces(
    order: NetworkOrder, progress: Progress
) -> tuple[UInt8[np.ndarray, "n s s 3"], Float32[np.ndarray, "n 3"], list[DPVeilError]]:
    """Return crops and conditions of labelled shards, NaN where a pose is unknown, and what failed."""
    crops, conditions, failed = [], [], list[DPVeilError]()
    with progress(len(order.paths), "reading") as step:
        for found in labelled(order.paths, step):
            if not isinstance(found, Labelled):
                failed.append(found)
                continue
            seen = np.ascontiguousarray(centred(found.photo, (READ, READ, 3)))
            pose = order.landmarks.pose(seen) if order.landmarks else None
            angles = (np.nan, np.nan) if pose is None else (pose.yaw, pose.pitch)
            conditions.append((2.0 * found.labels["gender"] - 1, *angles))
            crops.append(centred(found.photo, (order.plan.side, order.plan.side, 3)))
    if not crops:
        hint = "give .tar shards with a .json of age, gender and race beside every picture"
        raise failed[0] if failed else PhotoError("the shards contain no pictures", hint=hint)
    if len(crops) < LEAST:
        hint = f"give at least {LEAST}, and thousands to learn from"
        raise InvalidParameter("images", None, f"are only {len(crops)}", hint=hint)
    return np.stack(crops), np.array(conditions, np.float32), failed


def learn(trainer: Trainer, keep: Callable[[], None], step: Callable[[], None]) -> None:
    """Train to the end of the plan; `keep` is called every two minutes, and when it is interrupted."""
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


def _keep(trainer: Trainer, path: Path, key: str) -> None:
    """Write the checkpoint atomically."""
    new = path.with_name(f"{path.name}.new")
    torch.save({"key": key, **trainer.state()}, new)
    new.replace(path)


def take_up(trainer: Trainer, path: Path, key: str) -> None:
    """Take up a checkpoint of the same order and data; ignore any other, and one that is damaged."""
    try:
        state: dict[str, Any] = torch.load(path, weights_only=True)
    except (OSError, RuntimeError, ValueError, KeyError, EOFError):
        return
    if state.get("key") == key:
        trainer.take_up(state)


def measured(codec: GAN, trainer: Trainer) -> dict[str, Json]:
    """Return the mean PSNR in dB and SSIM of held-out crops after encoding and decoding, each at most 100."""
    crops = trainer.faces.crops[trainer.faces.held_out[:MEASURED]]
    pairs = zip(crops, codec.decode(codec.encode(crops)), strict=True)
    found = [(psnr(crop, seen, data_range=255), ssim(crop, seen, data_range=255)) for crop, seen in pairs]
    noise, likeness = np.mean(np.minimum(found, 100), axis=0)
    return {"images": len(found), "psnr": round(float(noise), 2), "ssim": round(float(likeness), 4)}
