"""Sample sheets of the papers: Croft 2022 figure 13, and Reilly & Fan 2021 figures 2 and 10.

Their photos are of FaceScrub, CASIA and AT&T; these are the astronaut's face (NASA, public domain) and an eye
that dpveil draws.
"""

from __future__ import annotations

from pathlib import Path

import cv2
import numpy as np
from skimage import data

from dpveil.mechanisms.pixel import DPSVD, DPPix, DPSamp, PixelMethod, Snow, SSIMExponential
from dpveil.mechanisms.pixel.dp_samp import frequent_levels, histogram
from dpveil.noise.bits import SeededBits
from dpveil.postprocessing.steps import GaussianBlur, Median
from dpveil_research.data import levels, people_of

Tile = tuple[np.ndarray, str]
FACE = (slice(15, 207), slice(130, 290))
EPSILON = 10_000
GREEN = (40, 200, 60)


def face(mode: str) -> np.ndarray:
    """Return the astronaut's face, 128 × 128 in "RGB" or 112 × 92 in "L", as the papers' photos are."""
    crop, size = data.astronaut()[FACE], (128, 128) if mode == "RGB" else (92, 112)
    small = cv2.resize(crop, size, interpolation=cv2.INTER_AREA)
    return small if mode == "RGB" else cv2.cvtColor(small, cv2.COLOR_RGB2GRAY)[..., None]


def eye() -> np.ndarray:
    image = levels(people_of(Path("drawn-eyes"))[0][0], "L")
    return cv2.resize(image, (92, 112), interpolation=cv2.INTER_AREA)[..., None]


def tile(image: np.ndarray, words: str) -> Tile:
    """Return a picture in colour, enlarged to an equal height, with words below."""
    rgb = np.repeat(image, 3, axis=2) if image.shape[2] == 1 else image
    wide = round(rgb.shape[1] * 224 / rgb.shape[0])
    return np.ascontiguousarray(cv2.resize(rgb, (wide, 224), interpolation=cv2.INTER_NEAREST)), words


def figure_13() -> list[list[Tile]]:
    """Return blurred releases by both mechanisms, at three sizes of cells."""
    image, blur, rows = face("RGB"), GaussianBlur(1), []
    for name, kind in (("exponential", SSIMExponential), ("Laplace", DPPix)):
        row = [tile(image, "original")]
        for block in (4, 8, 16):
            shown = kind(epsilon=EPSILON, block=block).release(image, bits=SeededBits(block, name))
            row.append(tile(blur(shown), f"{name}, b = {block}, epsilon {EPSILON}"))
        rows.append(row)
    return rows


def figure_2() -> list[list[Tile]]:
    """Return in green which pixels DP-Samp may show, by the number of clusters."""
    rows = []
    for image in (eye(), face("L")):
        row = [tile(image, "original")]
        for k in (4, 8, 16, 48):
            shown = np.repeat(image, 3, axis=2)
            shown[np.isin(image[..., 0], frequent_levels(histogram(image[..., 0]), k))] = GREEN
            row.append(tile(shown, f"k = {k}"))
        rows.append(row)
    return rows


def figure_10() -> list[list[Tile]]:
    """Return releases by every method with the parameters of table I, at two budgets."""
    median, rows = Median(3), []
    for image, block, clusters, rank in ((eye(), 6, 28, 6), (face("L"), 4, 48, 4)):
        for epsilon, delta in (("0.5", "0.33"), ("1", "0.8")):
            made: list[tuple[str, PixelMethod]] = [
                (f"dp-samp, epsilon {epsilon}", DPSamp(epsilon=epsilon, clusters=clusters, neighbourhood=1)),
                (f"dp-svd, levels to 1, epsilon {epsilon}", DPSVD(epsilon=float(epsilon) / 255, rank=rank)),
                (f"dp-pix, epsilon {epsilon}", DPPix(epsilon=epsilon, block=block, neighbourhood=1)),
                (f"snow, delta {delta}", Snow(delta=delta)),
            ]
            shown = [(words, method.release(image, bits=SeededBits(10, words))) for words, method in made]
            shown.append((f"snow, median, delta {delta}", median(shown[-1][1])))
            rows.append([tile(image, "original"), *(tile(one, words) for words, one in shown)])
    return rows
