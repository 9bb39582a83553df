"""What a classifier sees of heads, real or released, to tell them apart.

Both kinds go through one path, as publishing does: the photo is shrunk to nine tenths, which breaks the grid
of the original's JPEG blocks, and saved as JPEG. Features are co-occurrences of quantised noise residuals
(after Fridrich & Kodovsky 2012) and their energies in a zone, and in the head's frame gradients (HOG) and
colours. Zones are `inner`, deep in the region, `rim`, at both sides of its edge, and `outside`.
"""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import cv2
import numpy as np
from PIL import Image

SHRUNK, QUALITY = 0.9, 90
RIM = 6
"""Half the width of the rim in pixels."""
SIDE = 96
"""Side of the crop whose gradients and colours are seen."""
LOW = 2.0
"""Standard deviation of the low-pass filter in pixels."""
CUT = 2
"""Quantised residuals are cut to -2..2."""
FILTERS = {
    "first": np.array([[-1, 1]], np.float32),
    "second": np.array([[1, -2, 1]], np.float32) / 2,
    "third": np.array([[1, -3, 3, -1]], np.float32) / 3,
    "square": np.array([[-1, 2, -1], [2, -4, 2], [-1, 2, -1]], np.float32) / 4,
}
"""High-pass filters; those of one row also work on columns."""
HOG = cv2.HOGDescriptor((SIDE, SIDE), (32, 32), (16, 16), (16, 16), 9)

Features = np.ndarray


@dataclass(frozen=True, eq=False)
class Crop:
    """Levels around a head and, in the same pixels, the mask of the regions that a release replaces."""

    levels: np.ndarray
    hidden: np.ndarray


def published(image: np.ndarray, hidden: np.ndarray, box: Sequence[float]) -> Crop:
    """Return the square around a region's box, of a photo that was shrunk and saved as JPEG."""
    height, width = (round(SHRUNK * side) for side in hidden.shape)
    small = Image.fromarray(image).resize((width, height), Image.Resampling.BICUBIC)
    small.save(buffer := io.BytesIO(), "JPEG", quality=QUALITY)
    levels = np.asarray(Image.open(buffer).convert("RGB"))
    mask = cv2.resize(hidden.astype(np.uint8), (width, height), interpolation=cv2.INTER_NEAREST) > 0
    x, y, w, h = (SHRUNK * side for side in box)
    half = 0.6 * max(w, h)
    left, top = max(0, round(x + w / 2 - half)), max(0, round(y + h / 2 - half))
    part = slice(top, round(y + h / 2 + half)), slice(left, round(x + w / 2 + half))
    return Crop(levels[part], mask[part])


def mixed(real: np.ndarray, made: np.ndarray, hidden: np.ndarray, oval: np.ndarray) -> dict[str, np.ndarray]:
    """Return releases of which a part is real, by that part, to see what the rest gives away.

    `oval` is the mask of the released face; all are of the same size.
    """
    share = cv2.GaussianBlur(oval.astype(np.float32), (0, 0), LOW)[..., None]
    fine = [one - cv2.GaussianBlur(one.astype(np.float32), (0, 0), LOW) for one in (real, made)]
    parts = {
        "real face": share * real + (1 - share) * made,
        "real around the face": share * made + (1 - share) * real,
        "real fine detail": made + fine[0] - fine[1],
    }
    whole = {name: np.clip(np.rint(part), 0, 255).astype(np.uint8) for name, part in parts.items()}
    return {name: np.where(hidden[..., None], part, made) for name, part in whole.items()}


def zones(hidden: np.ndarray) -> dict[str, np.ndarray]:
    """Return the masks of the zones."""
    inside = cv2.distanceTransform(hidden.astype(np.uint8), cv2.DIST_L2, 5)
    beyond = cv2.distanceTransform((~hidden).astype(np.uint8), cv2.DIST_L2, 5)
    return {
        "inner": (inside > RIM).astype(np.uint8),
        "rim": ((inside <= RIM) & (beyond <= RIM)).astype(np.uint8),
        "outside": (beyond > RIM).astype(np.uint8),
    }


def planes(levels: np.ndarray) -> list[np.ndarray]:
    """Return luma and a colour difference."""
    split = cv2.cvtColor(levels, cv2.COLOR_RGB2YCrCb)
    return [split[..., place].astype(np.float32) for place in (0, 1)]


def residuals(crop: Crop, sigma: float = 0.0) -> dict[str, Features]:
    """Return co-occurrences and energies of noise residuals, by zone; energies also against the outside.

    `sigma` is that of a low-pass filter that is applied first.
    """
    masks = zones(crop.hidden)
    found: dict[str, list[np.ndarray]] = {"inner": [], "rim": []}
    levels = cv2.GaussianBlur(crop.levels, (0, 0), sigma) if sigma else crop.levels
    for plane in planes(levels):
        for kernel in FILTERS.values():
            turns = [kernel] if kernel.shape[0] > 1 else [kernel, kernel.T]
            rests = [cv2.filter2D(plane, cv2.CV_32F, turn) for turn in turns]
            beyond = _energy(rests, masks["outside"])
            counts = _together(rests, masks)
            for zone, parts in found.items():
                energy = _energy(rests, masks[zone])
                part = np.sqrt(counts[zone] / max(1, counts[zone].sum()))
                parts.append(np.r_[part, energy, beyond, energy - beyond])
    return {zone: np.concatenate(parts) for zone, parts in found.items()}


def _energy(rests: Sequence[np.ndarray], mask: np.ndarray) -> float:
    return float(np.log(0.05 + np.mean([cv2.mean(np.abs(rest), mask)[0] for rest in rests])))


def _together(rests: Sequence[np.ndarray], masks: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Return how often each triple of quantised residuals occurs along rows and columns, without sign."""
    base = 2 * CUT + 1
    counts = {zone: np.zeros(base**3) for zone in masks}
    for rest in rests:
        whole = (np.clip(np.rint(rest), -CUT, CUT) + CUT).astype(np.uint8)
        for turned, turn in ((whole, False), (whole.T, True)):
            code = (turned[:, :-2] * base + turned[:, 1:-1]) * base + turned[:, 2:]
            for zone, mask in masks.items():
                own = (mask.T if turn else mask)[:, 1:-1] > 0
                counts[zone] += np.bincount(code[own], minlength=base**3)
    return {zone: one + one[::-1] for zone, one in counts.items()}


def looks(crop: Crop, sigma: float = 0.0) -> Features:
    """Return gradients and colours of the crop, after a low-pass filter."""
    levels = crop.levels if not sigma else cv2.GaussianBlur(crop.levels, (0, 0), sigma)
    small = cv2.resize(levels, (SIDE, SIDE), interpolation=cv2.INTER_AREA)
    lab = cv2.resize(cv2.cvtColor(small, cv2.COLOR_RGB2LAB), (12, 12), interpolation=cv2.INTER_AREA)
    return np.r_[HOG.compute(small).ravel(), lab.ravel() / 64]


def seen(crop: Crop) -> dict[str, Features]:
    """Return what each classifier sees of a crop."""
    plain, low = residuals(crop), residuals(crop, LOW)
    full = looks(crop)
    return {
        "everything": np.concatenate([*plain.values(), full]),
        **plain,
        "looks": full,
        "low-pass": np.concatenate([*low.values(), looks(crop, LOW)]),
    }
