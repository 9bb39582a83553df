"""Faces, shards and small trainings of every network that tests make."""

from __future__ import annotations

import io
import json
import tarfile
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import numpy as np
from PIL import Image

from dpveil.cli import run
from dpveil_train import denoiser, gan, stylegan, upconv

HOMES: Final = {"gan": gan, "stylegan": stylegan, "upconv": upconv, "denoiser": denoiser}


def crops(count: int = 60, side: int = 16) -> np.ndarray:
    made = np.random.default_rng(0).integers(0, 256, (count, 4, 4, 3), np.uint8)
    return np.kron(made, np.ones((1, side // 4, side // 4, 1), np.uint8))


def conditions(count: int = 60, others: int = 2) -> np.ndarray:
    """Return gender and pose, or gender and smile; every seventh is unknown."""
    made = np.random.default_rng(1).normal(0, 0.2, (count, 1 + others)).astype(np.float32)
    made[:, 0] = np.where(made[:, 0] > 0, 1, -1)
    if others == 1:
        made[:, 1] = made[:, 1] > 0
    made[::7, 1:] = np.nan
    return made


def trainer(name: str, **changes: Any) -> Any:
    home = HOMES[name]
    plan = replace(home.TINY, **changes)
    if name == "denoiser":
        return home.Trainer(plan, crops(side=plan.side))
    return home.Trainer(plan, crops(side=plan.side), conditions(others=1 if name == "upconv" else 2))


def train(*words: object) -> int:
    return run(["train", *map(str, words)])


def weights(made: Any) -> list[np.ndarray]:
    return [value.detach().numpy().copy() for value in made.mean.parameters()]


def png(picture: Image.Image) -> bytes:
    buffer = io.BytesIO()
    picture.save(buffer, "PNG")
    return buffer.getvalue()


def tar(path: Path, members: Iterable[tuple[str, bytes]]) -> Path:
    with tarfile.open(path, "w") as made:
        for name, content in members:
            info = tarfile.TarInfo(name)
            info.size = len(content)
            made.addfile(info, io.BytesIO(content))
    return path


def shard(path: Path, count: int) -> Path:
    members = []
    for number, crop in enumerate(crops(count)):
        told = {"age": 30, "gender": ("male", "female")[number % 2], "race": "white"}
        members.append((f"{number:06}.png", png(Image.fromarray(crop))))
        members.append((f"{number:06}.json", json.dumps(told).encode()))
    return tar(path, members)
