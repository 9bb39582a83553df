"""Faces that are nobody's: ovals, eyes and mouths whose places and tones come from a seed."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np

from dpveil.assets.model_cards import Card
from dpveil.codecs import AAM
from dpveil.core.registry import CODECS
from dpveil.errors import ModelError
from dpveil_train import TRAINERS

CANVAS = (20, 16, 3)
CARD = Card("any", data="made faces", terms="none", seed=3)
LENGTH = 8
PLACES: dict[bytes, np.ndarray] = {}
"""The landmarks of every face that was made."""


def faces(count: int, *, seed: int, canvas: tuple[int, int, int] = CANVAS) -> np.ndarray:
    """Return made faces, count × canvas, uint8."""
    rng = np.random.default_rng(seed)
    height, width, channels = canvas
    y, x = np.mgrid[0:height, 0:width]
    y, x = (y + 0.5) / height, (x + 0.5) / width
    out = np.empty((count, *canvas), np.uint8)
    turns = np.arange(12) * (np.pi / 6)
    for number in range(count):
        cx, cy = rng.normal(0.5, 0.02, 2)
        radius = rng.normal(0.36, 0.03)
        tones = rng.uniform(90, 220) * np.array([1, 0.85, 0.75])[:channels]
        head = 1 / (1 + np.exp(40 * (np.hypot((x - cx) / 0.8, y - cy) - radius)))
        spots = ((-0.14, -0.08), (0.14, -0.08), (0, rng.normal(0.17, 0.02)))
        dark = sum(np.exp(-(((x - cx - dx) / 0.07) ** 2) - ((y - cy - dy) / 0.05) ** 2) for dx, dy in spots)
        picture = rng.uniform(10, 90) * (1 - head) + head
        picture = (picture - head)[..., None] + head[..., None] * tones * (1 - 0.8 * dark[..., None])
        out[number] = np.clip(picture + rng.normal(0, 2, (height, width, 1)), 0, 255)
        oval = np.stack([0.8 * radius * np.cos(turns), radius * np.sin(turns)], axis=1)
        around = [(dx + a, dy + b) for dx, dy in spots for a, b in ((-0.07, 0), (0.07, 0), (0, 0.05))]
        points = np.concatenate([oval, around]) + np.array([cx, cy])
        PLACES[out[number, :, :, min(1, channels - 1)].tobytes()] = points * (width, height) - 0.5
    return out


def marks(crops: np.ndarray) -> np.ndarray:
    """Return where made faces, in colour or of their green alone, were drawn: n × 21 × 2, in pixels."""
    green = crops[..., min(1, crops.shape[3] - 1)]
    return np.stack([PLACES[crop.tobytes()] for crop in green])


def source_of(crops: np.ndarray, batch: int = 32) -> Any:
    """Return a source of these crops."""
    return lambda: (crops[start : start + batch] for start in range(0, len(crops), batch))


def train(kind: Any, source: Any, *, seed: int = 3, length: int = LENGTH, **more: Any) -> Any:
    if kind is AAM:
        more = {"landmarks": marks, **more}
    return TRAINERS[kind.name](source, card=CARD, seed=seed, length=length, **more)


@cache
def trained(name: str, channels: int) -> Any:
    """Return the codec of that name, fitted to the made faces."""
    crops = faces(90, seed=1)
    which = crops if channels == 3 else np.ascontiguousarray(crops[..., 1:2])
    return train(CODECS[name], source_of(which))


class Trained(dict[tuple[str, int], Any]):
    """Codecs by name and channels, each trained on the same made faces when it is asked for first."""

    def __missing__(self, key: tuple[str, int]) -> Any:
        return trained(*key)


def damages(array: np.ndarray) -> Iterator[tuple[str, np.ndarray]]:
    """Yield what may be wrong with a tensor of a file, whatever it means."""
    yield from (("cut", array[..., :-1]), ("empty", array[:0]), ("short", array[1:]), ("deeper", array[None]))
    if array.dtype.kind == "f":
        yield "nan", np.where(np.arange(array.size).reshape(array.shape) == array.size // 2, np.nan, array)
        yield "far", np.full_like(array, np.inf if array.dtype == np.float16 else 1e30)
        yield from (("negative", -array), ("zero", np.zeros_like(array)))
    elif array.dtype != np.uint8:  # numbers of others; bytes are a network
        yield from (("beyond", array + 1000), ("turned", array[..., ::-1]))


def accepted(codec: Any) -> dict[str, str]:
    """Return which damages of which tensors are taken for a model; all others are refused in one line."""
    found: dict[str, str] = {}
    for name, array in codec.tensors().items():
        for damage, wrong in damages(np.asarray(array)):
            try:
                type(codec).of_file(codec.facts(), {**codec.tensors(), name: wrong}, codec.card)
            except ModelError as refusal:
                if "\n" in str(refusal):
                    raise
                continue
            found[name] = f"{found.get(name, '')} {damage}".strip()
    return found
