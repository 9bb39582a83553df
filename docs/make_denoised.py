"""Pictures of what a network makes of noisy faces, beside a filter."""

from __future__ import annotations

import numpy as np
from skimage import data

import dpveil
from dpveil.noise.bits import SeededBits

VIEW = (slice(20, 220), slice(132, 308))
FACE = "176,60,88,120"
RELEASES = (
    ("dp-pix", {"epsilon": 5, "block": 4, "neighbourhood": 1}, "epsilon 5, m = 1", "gaussian:2"),
    ("dp-pix", {"epsilon": 2, "block": 8, "neighbourhood": 1}, "epsilon 2, m = 1", "gaussian:2"),
    ("snow", {"delta": 0.3}, "delta 0.3", "median:3"),
    ("snow", {"delta": 0.1}, "delta 0.1", "median:3"),
)

Tile = tuple[np.ndarray, str]


def rows() -> list[list[Tile]]:
    """Return each release as drawn, after a filter, and after the network of dpveil-faces."""
    return [
        [
            _tile(method, given, seed, budget, step)
            for step, budget in (((), f"{method}, {words}"), ((step,), step), (("denoiser",), "denoiser"))
        ]
        for seed, (method, given, words, step) in enumerate(RELEASES)
    ]


def _tile(method: str, given: dict[str, float], seed: int, words: str, steps: tuple[str, ...]) -> Tile:
    plan = dpveil.plan(dpveil.Photo(data.astronaut()), method, regions=FACE, post_processing=steps, **given)
    return plan.release(bits=SeededBits(60 + seed)).image[VIEW], words
