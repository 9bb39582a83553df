"""Styles of hair, from the layouts of photos, and which face each suits."""

from __future__ import annotations

from typing import Final

import cv2
import numpy as np
import torch
from jaxtyping import Float32, UInt8
from torch.nn.functional import cross_entropy

from dpveil.faces.geometry.hair import DARK, Hair, features
from dpveil.faces.geometry.head import inside
from dpveil.faces.geometry.head_frame import OVAL, pixel_grid
from dpveil.faces.geometry.layout import CLASSES, HAIR, SKIN
from dpveil.training.completion.network import UNKNOWN
from dpveil.training.completion.scenes import INNER, STORED

STYLES: Final = 16
"""Number of styles."""
SIDE: Final = 36
"""Side of a style, in pixels."""
KNOWN: Final = 0.995
"""Least share of a layout that has to be known to count."""
UPPER: Final = 0.6
"""Part of the frame, from its top, by which styles are told apart."""
RARE: Final = 0.03
"""Share that is added to those of the classes before their logarithms are taken."""
PENALTY: Final = 0.015
"""Weight of the squared weights of the regression; on people held out, a loss of 2.09 (2.73 without)."""
ENOUGH: Final = 400
"""Least number of pixels of hair in a stored frame whose colour counts."""
SHRUNK: Final = 300.0
"""Weight of the squared weights of the regression of colours: on people held out it explains 26 % of the
variance of the logarithms, which differ by 0.58 in lightness besides, and by 0.12 in warmth."""
STEPS: Final = 60
"""Steps of the regression's optimiser."""


def hair_of(
    frames: UInt8[np.ndarray, "n 192 192 4"], layouts: UInt8[np.ndarray, "n 192 192"], *, seed: int = 1
) -> Hair:
    """Return the styles of hair in stored frames; groups of layouts that are alike (k-means)."""
    inner = slice((STORED - INNER) // 2, (STORED + INNER) // 2)
    shares, faces = [], []
    for frame, layout in zip(frames, layouts, strict=True):
        own = layout[inner, inner]
        if (own != UNKNOWN).mean() >= KNOWN:
            planes = (own[..., None] == np.arange(CLASSES)).astype(np.float32)
            shares.append(cv2.resize(planes, (SIDE, SIDE), interpolation=cv2.INTER_AREA).transpose(2, 0, 1))
            faces.append(features(np.asarray(frame[inner, inner, :3], np.float32)))
    seen = np.stack(shares)
    groups = _groups(seen[:, [HAIR, SKIN], : round(UPPER * SIDE)].reshape(len(seen), -1), seed)
    usual = np.log(seen.mean(axis=0) + RARE)
    styles = np.stack([np.log(seen[groups == one].mean(axis=0) + RARE) - usual for one in range(STYLES)])
    colours = _colours([one[inner, inner] for one in frames], [one[inner, inner] for one in layouts])
    return Hair(styles.astype(np.float32), _regression(np.stack(faces), groups), colours)


def _colours(frames: list[np.ndarray], layouts: list[np.ndarray]) -> Float32[np.ndarray, "3 f"]:
    """Return the weights of a linear regression of the colour of hair on the face, and its constants."""
    oval, faces, ratios = inside(OVAL, pixel_grid(INNER)), [], []
    for frame, layout in zip(frames, layouts, strict=True):
        hair = cv2.erode((layout == HAIR).astype(np.uint8), np.ones((5, 5), np.uint8)) > 0
        if np.count_nonzero(hair) >= ENOUGH:
            levels = np.asarray(frame[..., :3], np.float32)
            own, face = (np.median(levels[one], axis=0) + DARK for one in (hair, oval))
            faces.append(np.append(features(levels), 1.0))
            ratios.append(np.log(own / face))
    x, y = np.stack(faces), np.stack(ratios)
    ridge = np.diag([*np.full(x.shape[1] - 1, SHRUNK), 0.0])
    return np.asarray(np.linalg.solve(x.T @ x + ridge, x.T @ y).T, np.float32)


def _groups(rows: Float32[np.ndarray, "n d"], seed: int) -> np.ndarray:
    """Return the group of each row."""
    cv2.setRNGSeed(seed)
    until = (cv2.TERM_CRITERIA_EPS + cv2.TERM_CRITERIA_MAX_ITER, 100, 1e-3)
    start = np.zeros((len(rows), 1), np.int32)
    _, groups, _ = cv2.kmeans(rows, STYLES, start, until, 4, cv2.KMEANS_PP_CENTERS)
    return np.asarray(groups)[:, 0]


def _regression(faces: Float32[np.ndarray, "n f"], groups: np.ndarray) -> Float32[np.ndarray, "k f"]:
    """Return the weights of a logistic regression of groups on faces, and its constants."""
    x = torch.from_numpy(np.hstack([faces, np.ones((len(faces), 1), np.float32)]))
    wanted = torch.from_numpy(groups).long()
    weights = torch.zeros(STYLES, x.shape[1], requires_grad=True)
    optimiser = torch.optim.LBFGS([weights], max_iter=STEPS, line_search_fn="strong_wolfe")

    def loss() -> torch.Tensor:
        optimiser.zero_grad()
        total = cross_entropy(x @ weights.T, wanted) + PENALTY * (weights[:, :-1] ** 2).sum()
        total.backward()
        return total

    optimiser.step(loss)
    return np.asarray(weights.detach().numpy())
