"""Which face examples of hair suit: their groups by layout, and regressions on faces."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import cv2
import numpy as np
import torch
from jaxtyping import Bool, Float32, Int64, UInt8
from scipy.spatial.distance import cdist
from torch.nn.functional import adaptive_avg_pool2d, cross_entropy

from dpveil.faces.geometry.hair import DARK, RATIOS, Hair, features
from dpveil.faces.geometry.head_frame import OVAL, inside, pixel_grid
from dpveil.faces.geometry.layout import CLASSES, HAIR, SKIN
from dpveil_train.completion.network import UNKNOWN, over, spread
from dpveil_train.completion.scenes import INNER, STORED, style_of
from dpveil_train.completion.trainer import Trainer

GROUPS: Final = 16
"""Number of groups of layouts that are alike."""
LAYOUT_SIDE: Final = 36
"""Side of the layouts that are grouped, in pixels."""
KNOWN_LAYOUT: Final = 0.995
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
    rows = shares[:, [HAIR, SKIN], : round(UPPER * LAYOUT_SIDE)].reshape(len(shares), -1)
    known = np.array([(layout[WITHIN, WITHIN] != UNKNOWN).mean() >= KNOWN_LAYOUT for layout in layouts])
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
    return np.asarray(
        cv2.resize(planes, (LAYOUT_SIDE, LAYOUT_SIDE), interpolation=cv2.INTER_AREA).transpose(2, 0, 1)
    )


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


SIDE: Final = 18
"""Side of an example's style in the file, in pixels."""
WANTED: Final = ((0.0, 10.0, 46), (10.0, 24.0, 19), (24.0, 90.0, 11))
"""How many examples are taken of heads turned by so many degrees."""
TRIED: Final = 6
"""Photos that are tried for each one that is taken."""
HOSTS: Final = 40
"""Held-out photos in which they are tried."""
TRIES: Final = 2
"""Those of them that are turned most alike, and count."""
WORST: Final = 70.0
"""Percentile of the error of painting the photo itself, above which it is no example."""
KNOWN: Final = (0.997, 0.95)
"""Least known share of a frame, and of its inner part, for heads that look ahead and for others."""
INSIDE: Final = np.s_[5:150, 25:155]
"""The part of the frame that has to be a photograph."""
NECK: Final = np.s_[118:135, 75:105]
"""Where a neck is, in the frame."""
SHOWN: Final = (0.045, 0.35)
"""Least share of hair in the frame, and of skin where the neck is."""
MORE: Final = 1.1
"""How much larger than its share a group's part of the examples may be."""
PITCH: Final = 18.0
"""Degrees up to which the head may be bent."""


def hair_of(trainer: Trainer, frames: Frames, layouts: Layouts, turns: Float32[np.ndarray, "n 2"]) -> Hair:
    """Return examples of hair from the photos of a training, whose heads are turned and bent by `turns`."""
    groups, likely = grouped(frames, layouts)
    ratios = [ratio(*both) for both in zip(frames, layouts, strict=True)]
    low, high = RATIOS
    able = usable(frames, layouts, turns)
    able &= np.array([one is not None and low <= one.mean() <= high for one in ratios])
    chosen: list[int] = []
    for least, most, count in WANTED:
        far = np.abs(turns[:, 0])
        rows = np.flatnonzero(able & (far >= least) & (far < most))
        order = torch.randperm(len(rows), generator=torch.Generator().manual_seed(trainer.plan.seed)).numpy()
        rows = rows[order][: TRIED * count]
        chosen += _varied(_ranked(trainer, rows.tolist()), groups, count)
    styles, looks = _told(trainer, chosen)
    own = np.array([ratios[number] for number in chosen], np.float32)
    return Hair(styles, looks, groups[chosen], own, turns[chosen, 0], likely, colours(frames, layouts))


def usable(frames: Frames, layouts: Layouts, turns: Float32[np.ndarray, "n 2"]) -> Bool[np.ndarray, " n"]:
    """Return which photos show a whole head with hair and neck, not bent, and nobody else."""
    out: Bool[np.ndarray, " n"] = np.abs(turns[:, 1]) <= PITCH
    for number, (frame, layout) in enumerate(zip(frames, layouts, strict=True)):
        ahead = np.abs(turns[number, 0]) < WANTED[-1][0]
        own, least = layout[WITHIN, WITHIN], KNOWN[0] if ahead else KNOWN[1]
        known = (own != UNKNOWN).mean(), (frame[WITHIN, WITHIN, 3][INSIDE] == 255).mean()
        shown = (own == HAIR).mean() >= SHOWN[0] and (own[NECK] == SKIN).mean() >= SHOWN[1]
        out[number] &= known[0] >= least and known[1] >= (1.0 if ahead else least) and shown
    return out


def _ranked(trainer: Trainer, rows: Sequence[int]) -> list[int]:
    """Return photos by how well the critics like their hair in others, last those that are painted badly."""
    fools, errors = np.array([_scored(trainer, number) for number in rows]).reshape(-1, 2).T
    bad = errors > np.percentile(errors, WORST) if len(rows) else errors > 0
    return [rows[place] for place in np.lexsort((-fools, bad))]


def _varied(ranked: Sequence[int], groups: Int64[np.ndarray, " n"], count: int) -> list[int]:
    """Return the first photos of which no group has more than its share and a little: critics like the bald
    best.
    """
    shares = np.bincount(groups[list(ranked)]) / max(1, len(ranked)) if ranked else np.zeros(1)
    room = np.ceil(MORE * count * shares)
    chosen: list[int] = []
    for number in ranked:
        if len(chosen) < count and room[groups[number]] > 0:
            room[groups[number]] -= 1
            chosen.append(number)
    rest = [number for number in ranked if number not in chosen]
    return chosen + rest[: count - len(chosen)]


@torch.no_grad()  # type: ignore[untyped-decorator,unused-ignore]
def _scored(trainer: Trainer, number: int) -> tuple[float, float]:
    """Return the critics' score of a photo's hair on other heads, and the error of painting it on its own."""
    yaws, net = trainer.maker.yaws, trainer.mean[0]
    hosts = trainer.held_out[:: max(1, len(trainer.held_out) // HOSTS)]
    alike = hosts[np.argsort(np.abs(yaws[hosts] - yaws[number]), kind="stable")[:TRIES]]
    photos = [number, *(int(host) for host in alike)]
    scenes = trainer.maker.plain(photos, None, None, [number] * len(photos))
    layout = trainer.styled(net.layout(scenes.seen), scenes.other)
    layout[0] = scenes.layout[0]
    painted = net.painter(scenes.seen, layout, spread(trainer.looks(scenes.example))).clamp(-1, 1)
    judged = trainer.critic(scenes.composed(painted), torch.cat([scenes.hidden, layout], dim=1))
    fools = [float(over(scores[k : k + 1], scenes.hidden[k : k + 1])) for scores, _ in judged for k in (1, 2)]
    weight = scenes.hidden[0] * scenes.counts[0]
    return float(np.mean(fools)), float(((painted - scenes.truth)[0].abs() * weight).sum() / weight.sum())


@torch.no_grad()  # type: ignore[untyped-decorator,unused-ignore]
def _told(trainer: Trainer, chosen: Sequence[int]) -> tuple[np.ndarray, np.ndarray]:
    """Return the styles and looks of photos."""
    styles, looks = [], []
    for number in chosen:
        scenes = trainer.maker.plain([number], None, None)
        looks.append(trainer.looks(scenes.example)[0].numpy())
        styles.append(adaptive_avg_pool2d(style_of(scenes.other, trainer.usual), SIDE)[0].numpy())
    return np.stack(styles), np.stack(looks)
