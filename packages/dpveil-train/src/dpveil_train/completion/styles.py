"""Which face examples of hair suit: their groups by layout, and regressions on faces."""

from __future__ import annotations

from typing import Final

import cv2
import numpy as np
import torch
from jaxtyping import Float32, Int64, UInt8
from scipy.spatial.distance import cdist
from torch.nn.functional import cross_entropy

from dpveil.faces.geometry.hair import DARK, features
from dpveil.faces.geometry.head import inside
from dpveil.faces.geometry.head_frame import OVAL, pixel_grid
from dpveil.faces.geometry.layout import CLASSES, HAIR, SKIN
from dpveil_train.completion.network import UNKNOWN
from dpveil_train.completion.scenes import INNER, STORED

GROUPS: Final = 16
"""Number of groups of layouts that are alike."""
SIDE: Final = 36
"""Side of the layouts that are grouped, in pixels."""
KNOWN: Final = 0.995
"""Least share of a layout that has to be known to count."""
UPPER: Final = 0.6
"""Part of the frame, from its top, by which groups are told apart."""
PENALTY: Final = 0.015
"""Weight of the squared weights of the regression; on people held out, a loss of 2.09 (2.73 without)."""
ENOUGH: Final = 400
"""Least number of pixels of hair in a frame whose colour counts."""
EVEN: Final = (15, 85)
"""Percentiles of the levels of hair between which it counts as even."""
UNEVEN: Final = 1.0
"""Largest difference of their logarithms; about a third of the photos have more, by light or grey strands."""
SHRUNK: Final = 300.0
"""Weight of the squared weights of the regression of colours: on people held out it explains 26 % of the
variance of the logarithms, which differ by 0.58 in lightness besides, and by 0.12 in warmth."""
STEPS: Final = 60
"""Steps of the regression's optimiser."""
WITHIN: Final = slice((STORED - INNER) // 2, (STORED + INNER) // 2)
"""The frame in a stored image, in rows and columns."""

Frames = UInt8[np.ndarray, "n 192 192 4"]
Layouts = UInt8[np.ndarray, "n 192 192"]


def grouped(
    frames: Frames, layouts: Layouts, *, seed: int = 1
) -> tuple[Int64[np.ndarray, " n"], Float32[np.ndarray, "16 f"]]:
    """Return the group of each photo by its layout (k-means on those that are known, the nearest mean for the
    others), and the weights of a logistic regression of groups on faces.
    """
    shares = np.stack([_reduced(layout[WITHIN, WITHIN]) for layout in layouts])
    rows = shares[:, [HAIR, SKIN], : round(UPPER * SIDE)].reshape(len(shares), -1)
    known = np.array([(layout[WITHIN, WITHIN] != UNKNOWN).mean() >= KNOWN for layout in layouts])
    found, means = _groups(rows[known], seed)
    groups = cdist(rows, means).argmin(axis=1)
    groups[known] = found
    faces = np.stack([features(levels(frame)) for frame in np.asarray(frames)[known]])
    return groups, _regression(faces, found)


def colours(frames: Frames, layouts: Layouts) -> Float32[np.ndarray, "3 f"]:
    """Return the weights of a linear regression of the colour of hair on the face, and its constants."""
    faces, ratios = [], []
    for frame, layout in zip(frames, layouts, strict=True):
        if (found := ratio(frame, layout)) is not None:
            faces.append(np.append(features(levels(frame)), 1.0))
            ratios.append(found)
    x, y = np.stack(faces), np.stack(ratios)
    ridge = np.diag([*np.full(x.shape[1] - 1, SHRUNK), 0.0])
    return np.asarray(np.linalg.solve(x.T @ x + ridge, x.T @ y).T, np.float32)


def ratio(
    frame: UInt8[np.ndarray, "192 192 4"], layout: UInt8[np.ndarray, "192 192"]
) -> Float32[np.ndarray, 3] | None:
    """Return the logarithms of the ratio of a photo's hair to its face, or None for little or uneven hair."""
    hair = cv2.erode((layout[WITHIN, WITHIN] == HAIR).astype(np.uint8), np.ones((5, 5), np.uint8)) > 0
    if np.count_nonzero(hair) < ENOUGH:
        return None
    if np.ptp(np.log(np.percentile(levels(frame)[hair].mean(axis=1), EVEN) + DARK)) > UNEVEN:
        return None
    own, face = (
        np.median(levels(frame)[one], axis=0) + DARK for one in (hair, inside(OVAL, pixel_grid(INNER)))
    )
    return np.asarray(np.log(own / face), np.float32)


def levels(frame: UInt8[np.ndarray, "192 192 4"]) -> Float32[np.ndarray, "180 180 3"]:
    """Return the levels of a stored photo within the frame."""
    return np.asarray(frame[WITHIN, WITHIN, :3], np.float32)


def _reduced(layout: UInt8[np.ndarray, "180 180"]) -> Float32[np.ndarray, "4 36 36"]:
    planes = (layout[..., None] == np.arange(CLASSES)).astype(np.float32)
    return np.asarray(cv2.resize(planes, (SIDE, SIDE), interpolation=cv2.INTER_AREA).transpose(2, 0, 1))


def _groups(
    rows: Float32[np.ndarray, "n d"], seed: int
) -> tuple[Int64[np.ndarray, " n"], Float32[np.ndarray, "16 d"]]:
    """Return the group of each row, and the means of the groups."""
    cv2.setRNGSeed(seed)
    until = (cv2.TERM_CRITERIA_EPS + cv2.TERM_CRITERIA_MAX_ITER, 100, 1e-3)
    start = np.zeros((len(rows), 1), np.int32)
    _, groups, means = cv2.kmeans(rows, GROUPS, start, until, 4, cv2.KMEANS_PP_CENTERS)
    return np.asarray(groups, np.int64)[:, 0], np.asarray(means, np.float32)


def _regression(faces: Float32[np.ndarray, "n f"], groups: np.ndarray) -> Float32[np.ndarray, "k f"]:
    """Return the weights of a logistic regression of groups on faces, and its constants."""
    x = torch.from_numpy(np.hstack([faces, np.ones((len(faces), 1), np.float32)]))
    wanted = torch.from_numpy(groups).long()
    weights = torch.zeros(GROUPS, x.shape[1], requires_grad=True)
    optimiser = torch.optim.LBFGS([weights], max_iter=STEPS, line_search_fn="strong_wolfe")

    def loss() -> torch.Tensor:
        optimiser.zero_grad()
        total = cross_entropy(x @ weights.T, wanted) + PENALTY * (weights[:, :-1] ** 2).sum()
        total.backward()
        return total

    optimiser.step(loss)
    return np.asarray(weights.detach().numpy())
