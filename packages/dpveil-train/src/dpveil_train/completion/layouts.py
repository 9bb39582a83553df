"""Layouts of frames for training: which pixels show background, hair, skin and clothes.

MediaPipe's selfie segmentation (0.10.14, whose wheel holds its network) says where people are; the rest is
colours and places in the frame. Skin is what GrabCut joins to the face. Hair is what remains above the lobes
of the ears, and what hangs from it in the same colour; clothes are the rest. Hats count as hair. Other
people's heads are unknown.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from pathlib import Path
from typing import Final

import cv2
import numpy as np
from jaxtyping import Bool, Float32, UInt8

from dpveil.faces.geometry.layout import BACKGROUND, CLASSES, CLOTHES, HAIR, SKIN
from dpveil_train.completion.network import UNKNOWN
from dpveil_train.completion.scenes import INNER, STORED

EYES: Final = ((0.42, 0.446), (0.58, 0.446))
"""Centres of the eyes in units of the frame's side."""
MIDDLE: Final = (0.5, 0.522)
"""Centre of the face."""
AXES: Final = (0.132, 0.176)
"""Half axes of an ellipse that holds little but skin."""
MOUTH: Final = (0.5, 0.62)
FEATURE: Final = (0.078, 0.039)
"""Half axes of ellipses around an eye and the mouth, whose colours are not those of skin."""
CHIN: Final = 0.70
"""Height of the chin."""
BROW: Final = 0.20
"""Height above which nothing is skin without a doubt."""
NEAR: Final = (0.29, 0.417)
"""Half axes of the ellipse, its centre below the face's, in which skin is looked for."""
SPREAD: Final = (60.0, 8.0, 8.0)
"""Added variances of the skin's L, a and b (OpenCV's 8-bit scale): light falls unevenly on a face."""
ALIKE: Final = 7.0
"""Largest squared Mahalanobis distance of a colour from the skin's for GrabCut to begin with."""
WIDE: Final = 0.29
"""Largest distance of hair from the middle, to either side: other people's heads are background."""
SHOULDER: Final = 0.557
"""Height above which nothing is clothes."""
LOBE: Final = 0.57
"""Height below which hair is told from a collar by its colour."""
LONG: Final = 0.95
"""Height where the longest hair ends."""
HAIRS: Final = 50.0
"""Largest sum of the differences in L, a and b from the hair's median for hair below the chin."""
FEW: Final = 200
"""Least number of pixels of hair from which its colour is read."""
EDGES: Final = 1.8
"""Standard deviation of the blur that smooths the edges between classes, in pixels."""

Frame = UInt8[np.ndarray, "192 192 3"]
Mask = Bool[np.ndarray, "192 192"]
Layout = UInt8[np.ndarray, "192 192"]


def write_layouts(folder: Path) -> None:
    """Write `layouts.npy` for the frames in a folder, uint8 n × 192 × 192; needs mediapipe."""
    people = np.load(folder / "people.npy")
    frames = np.load(folder / "frames.npy", mmap_mode="r")
    made = np.empty((len(people), STORED, STORED), np.uint8)
    segment = _segmentation()
    for number in range(len(people)):
        frame = np.ascontiguousarray(frames[number, ..., :3])
        made[number] = layout_of(frame, segment(frame))
    np.save(folder / "layouts.npy", made)


def layout_of(frame: Frame, person: Mask) -> Layout:
    """Return the class of each pixel of a frame, uint8 sRGB, of which the pixels `person` show the person."""
    bgr = np.ascontiguousarray(frame[..., ::-1])
    lab = cv2.cvtColor(bgr, cv2.COLOR_BGR2LAB).astype(np.float32)
    person = person | _within(MIDDLE, AXES, 1.1)
    skin = _skin(bgr, lab, person)
    rest = person & ~skin
    right, down = _positions()
    aside = np.abs(right - MIDDLE[0])
    out = np.full((STORED, STORED), UNKNOWN, np.uint8)
    out[~person] = BACKGROUND
    out[rest & (down > SHOULDER)] = CLOTHES
    out[skin] = SKIN
    top = rest & (down < EYES[0][1]) & (aside < WIDE)
    if top.sum() > FEW:
        alike = np.abs(lab - np.median(lab[top], axis=0)).sum(axis=-1) < HAIRS
        hair = _joined(rest & (aside < WIDE) & (down < LOBE), top)
        out[hair | _hanging(hair, rest & alike & (aside < WIDE) & (down < LONG))] = HAIR
    kinds = np.array([*range(CLASSES), UNKNOWN], np.uint8)
    soft = [cv2.GaussianBlur((out == one).astype(np.float32), (0, 0), EDGES) for one in kinds]
    smooth: Layout = kinds[np.stack(soft).argmax(axis=0)]
    return smooth


def _skin(bgr: Frame, lab: Float32[np.ndarray, "192 192 3"], person: Mask) -> Mask:
    """Return which of a person's pixels are skin: of the face and of what hangs together with it."""
    mouth, face = _within(MOUTH, FEATURE), _within(MIDDLE, AXES)
    sample = lab[face & ~mouth & ~_within(EYES[0], FEATURE) & ~_within(EYES[1], FEATURE)]
    middle = np.median(sample, axis=0)
    off = np.abs(sample - middle).sum(axis=1)
    spread = np.cov(sample[off < np.percentile(off, 80)].T) + np.diag(SPREAD)
    apart = lab - middle
    far = np.einsum("...i,ij,...j", apart, np.linalg.inv(spread), apart)
    near = person & _within((MIDDLE[0], MIDDLE[1] + 0.078), NEAR)
    marks = np.full((STORED, STORED), cv2.GC_BGD, np.uint8)
    marks[near] = np.where(far[near] < ALIKE, cv2.GC_PR_FGD, cv2.GC_PR_BGD)
    marks[_within(MIDDLE, AXES, 0.85)] = cv2.GC_FGD
    marks[(_positions()[1] < BROW) & (marks == cv2.GC_PR_FGD)] = cv2.GC_PR_BGD
    models = np.zeros((1, 65)), np.zeros((1, 65))
    cv2.setRNGSeed(0)
    cv2.grabCut(bgr, marks, (0, 0, 0, 0), *models, 3, cv2.GC_INIT_WITH_MASK)
    found = (((marks == cv2.GC_FGD) | (marks == cv2.GC_PR_FGD)) & person).astype(np.uint8)
    found = cv2.morphologyEx(found, cv2.MORPH_OPEN, np.ones((3, 3), np.uint8))
    found = cv2.morphologyEx(found, cv2.MORPH_CLOSE, np.ones((5, 5), np.uint8))
    joined = (found > 0) | _within(MIDDLE, AXES, 0.9)
    skin: Mask = _filled(_joined(joined, face & joined)) & person
    return skin


def _hanging(hair: Mask, alike: Mask) -> Mask:
    """Return the hair below `LOBE`: pixels `alike` with hair above them, row by row."""
    out = hair.copy()
    first = int(np.ceil(LOBE * INNER + (STORED - INNER) / 2))
    for row in range(first, STORED):
        above = np.pad(out[row - 1], 1)
        out[row] = alike[row] & (above[:-2] | above[1:-1] | above[2:])
    opened = cv2.morphologyEx((out & ~hair).astype(np.uint8), cv2.MORPH_OPEN, np.ones((3, 3), np.uint8))
    return opened > 0


def _joined(mask: Mask, seeds: Mask) -> Mask:
    """Return the connected parts of a mask that hold a seed."""
    _, labels = cv2.connectedComponents(mask.astype(np.uint8))
    found = np.unique(labels[seeds])
    out: Mask = np.isin(labels, found[found > 0])
    return out


def _filled(mask: Mask) -> Mask:
    """Return a mask with its holes: glasses, brows, beards."""
    padded = np.pad(mask.astype(np.uint8), 1)
    cv2.floodFill(padded, None, (0, 0), 2)
    out: Mask = padded[1:-1, 1:-1] != 2
    return out


def _positions() -> tuple[np.ndarray, np.ndarray]:
    """Return the positions of a stored image's columns and rows, in units of the frame's side."""
    along = (np.arange(STORED) - (STORED - INNER) / 2) / INNER
    return along[None], along[:, None]


def _within(centre: tuple[float, float], axes: tuple[float, float], factor: float = 1.0) -> Mask:
    """Return which pixels lie in an ellipse, in units of the frame's side, its area times `factor`."""
    right, down = _positions()
    inside: Mask = ((right - centre[0]) / axes[0]) ** 2 + ((down - centre[1]) / axes[1]) ** 2 < factor
    return inside


def _segmentation() -> Callable[[Frame], Mask]:
    """Return MediaPipe's segmentation: which pixels of a frame, uint8 sRGB, show a person."""
    network = importlib.import_module("mediapipe").solutions.selfie_segmentation.SelfieSegmentation(0)

    def person(frame: Frame) -> Mask:
        large = cv2.resize(frame, (256, 256), interpolation=cv2.INTER_CUBIC)
        sure = network.process(large).segmentation_mask
        inside: Mask = cv2.resize(sure, (STORED, STORED), interpolation=cv2.INTER_AREA) > 0.5
        return inside

    return person
