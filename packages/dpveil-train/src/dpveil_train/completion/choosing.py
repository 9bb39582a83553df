"""Which training photos become examples of hair: those that the critics take for photographs around others'
faces.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import torch
from jaxtyping import Bool, Float32, Int64
from torch.nn.functional import adaptive_avg_pool2d

from dpveil.faces.geometry.hair import RATIOS, Hair
from dpveil.faces.geometry.layout import HAIR, SKIN
from dpveil_train.completion.examples import style_of
from dpveil_train.completion.losses import over
from dpveil_train.completion.network import UNKNOWN, spread
from dpveil_train.completion.styles import WITHIN, Frames, Layouts, colours, grouped, ratio
from dpveil_train.completion.trainer import Trainer

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
    yaws, net = trainer.maker.yaws, trainer.mean
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
