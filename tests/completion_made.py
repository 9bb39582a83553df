"""Photos, layouts and trainings of the completion network that tests make; needs torch."""

from __future__ import annotations

import cv2
import numpy as np

from dpveil.faces.geometry.layout import BACKGROUND, CLOTHES, HAIR, SKIN
from dpveil_train.completion.network import UNKNOWN
from dpveil_train.completion.scenes import STORED
from dpveil_train.completion.trainer import Plan, Trainer

PLAN = Plan(steps=4, batch=4, side=64, critic_from=0.5)


def photos(count: int = 44) -> np.ndarray:
    made = np.random.default_rng(0).integers(0, 256, (count, 12, 12, 4), np.uint8)
    large = np.kron(made, np.ones((1, 16, 16, 1), np.uint8))
    large[..., 3] = 255
    return large


def layouts(count: int = 44) -> np.ndarray:
    """Quarters of frames: background, hair, skin and clothes, in another order for each."""
    orders = np.array([np.roll(np.arange(4, dtype=np.uint8), k) for k in range(count)]).reshape(count, 2, 2)
    return np.kron(orders, np.ones((1, STORED // 2, STORED // 2), np.uint8))


def yaws(count: int = 44) -> np.ndarray:
    return np.linspace(-30, 30, count, dtype=np.float32)


def trainer(plan: Plan = PLAN) -> Trainer:
    faces = np.full((3, 128, 128, 3), (200, 150, 100), np.uint8)
    return Trainer(plan, photos(), np.arange(44), faces, layouts(), yaws())


def drawn(long: bool, *, other: bool = True) -> tuple[np.ndarray, np.ndarray]:
    """Return a frame with a head that is drawn, and its layout; an `other` head looks in from the right."""
    layout = np.full((STORED, STORED), BACKGROUND, np.uint8)
    if other:
        cv2.ellipse(layout, (185, 80), (16, 24), 0, 0, 360, UNKNOWN, -1)
    cv2.ellipse(layout, (96, 215), (80, 62), 0, 0, 360, CLOTHES, -1)
    cv2.ellipse(layout, (96, 85), (36, 48), 0, 0, 360, HAIR, -1)
    if long:
        cv2.rectangle(layout, (60, 85), (132, 160), HAIR, -1)
    cv2.rectangle(layout, (80, 110), (112, 155), SKIN, -1)
    cv2.ellipse(layout, (96, 100), (26, 34), 0, 0, 360, SKIN, -1)
    colours = np.zeros((256, 3), np.float64)
    colours[[BACKGROUND, HAIR, SKIN, CLOTHES, UNKNOWN]] = (
        (90, 120, 90),
        (70, 40, 20),
        (210, 160, 130),
        (40, 60, 150),
        (180, 120, 90),
    )
    noise = np.random.default_rng(0).normal(0, 4, (STORED, STORED, 3))
    return (colours[layout] + noise).clip(0, 255).astype(np.uint8), layout


def heads() -> tuple[np.ndarray, np.ndarray]:
    """Return photos of 80 heads: those with long hair have faces that get darker downwards."""
    frames, shown = [], []
    for number in range(80):
        long = number % 2 == 0
        _, layout = drawn(long, other=False)
        shade = np.linspace(90, -90, STORED) * (1 if long else -1)
        noise = np.random.default_rng(number).normal(0, 20, (STORED, STORED, 4))
        frames.append((128 + shade[:, None, None] + noise).clip(0, 255).astype(np.uint8))
        frames[-1][..., 3] = 255
        layout[8 + number % 5] = HAIR  # no two groups alike, else k-means finds fewer than asked
        frames[-1][layout == HAIR, :3] = 60
        shown.append(layout)
    return np.stack(frames), np.stack(shown)
