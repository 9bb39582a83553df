"""Faces, shards and small trainings of every network that tests make."""

from __future__ import annotations

import io
import json
import tarfile
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import numpy as np
from PIL import Image

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


def weights(made: Any) -> list[np.ndarray]:
    return [value.detach().numpy().copy() for value in made.mean.parameters()]


def shard(path: Path, count: int) -> Path:
    with tarfile.open(path, "w") as tar:
        for number, crop in enumerate(crops(count)):
            buffer = io.BytesIO()
            Image.fromarray(crop).save(buffer, "PNG")
            told = {"age": 30, "gender": ("male", "female")[number % 2], "race": "white"}
            for name, content in (("png", buffer.getvalue()), ("json", json.dumps(told).encode())):
                info = tarfile.TarInfo(f"{number:06}.{name}")
                info.size = len(content)
                tar.addfile(info, io.BytesIO(content))
    return path
