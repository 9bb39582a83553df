"""Losses of the completion network's training."""

from __future__ import annotations

from typing import Final

import torch
from torch import Tensor
from torch.nn.functional import adaptive_avg_pool2d, avg_pool2d, max_pool2d

from dpveil_train.completion.scenes import Scenes

CHANCES: Final = 0.99
"""Least share of a downscaled pixel within a mask for it to count."""
BESIDE: Final = 25
"""Pixels by which the face's oval is dilated (half on each side) to exclude what is close to it."""
NEAR: Final = 21
"""Side of the square around a pixel, in pixels, in which the share of seen pixels counts."""
FAR: Final = 0.25
"""Weight of the loss of levels where nothing around a pixel is seen."""


def over(scores: Tensor, hidden: Tensor) -> Tensor:
    """Return the mean score of patches, weighted by the share of each that is hidden."""
    weight = adaptive_avg_pool2d(hidden, scores.shape[-2:])
    mean: Tensor = (scores.float() * weight).sum() / weight.sum().clamp(min=1)
    return mean


def each(mask: Tensor) -> Tensor:
    """Return one value for each scene, n, as n × 1 × 1 × 1."""
    return mask[:, None, None, None]


def laid_out(scenes: Scenes, logits: Tensor) -> Tensor:
    """Return the cross-entropy of a layout where it is hidden, and with less weight where it is seen.

    Around a face that is not the photo's own, only what is at some distance from it counts.
    """
    own = each(scenes.own).float()
    weight = (scenes.hidden + 0.2 * (1 - scenes.hidden)) * scenes.counts
    weight = weight * (own + (1 - own) * (1 - widened(scenes.oval, BESIDE)))
    worth = -(scenes.layout * logits.log_softmax(dim=1)).sum(dim=1, keepdim=True)
    mean: Tensor = (worth * weight).sum() / weight.sum().clamp(min=1)
    return mean


def reconstruction(
    scenes: Scenes, painted: Tensor, looked: Tensor, guessed: Tensor | None = None
) -> dict[str, Tensor]:
    """Return the reconstruction losses: of levels, of gradients, and of the given face's gradients.

    Around a face that is not the photo's own, only hair and background at some distance from it count; in
    scenes with a `guessed` layout, nothing but the face does. Where the network is told how the head looks,
    in scenes `looked` at (n), all of it has one right answer.
    """
    own = each(scenes.own).float()
    near = widened(scenes.oval, BESIDE)
    where = scenes.hidden * scenes.counts * (own + (1 - own) * (1 - near))
    if guessed is not None:
        where = where * each(~guessed).float()
    sure = where * torch.where(each(looked), torch.ones_like(where), FAR + (1 - FAR) * given(scenes))
    level = ((painted - scenes.truth).abs() * sure).sum() / (3 * sure.sum()).clamp(min=1)
    whole = scenes.truth + scenes.hidden * (painted - scenes.truth)
    slope = _slopes(whole, scenes.truth, where)
    inner = 1 - widened(1 - scenes.oval, 5)
    kept = _slopes(painted, scenes.face, inner * (1 - own))
    return {"level": level, "slope": slope, "kept": kept}


def widened(mask: Tensor, window: int) -> Tensor:
    """Return a mask dilated by a square of `window` × `window` pixels; `window` is odd."""
    along = max_pool2d(mask, (1, window), stride=1, padding=(0, window // 2))
    out: Tensor = max_pool2d(along, (window, 1), stride=1, padding=(window // 2, 0))
    return out


def given(scenes: Scenes) -> Tensor:
    """Return the share of pixels around each that the network sees, doubled, at most 1.

    There is one right answer next to what is seen; further away any hair will do, and the critic decides.
    """
    whole = avg_pool2d(1 - scenes.hidden + scenes.hidden * scenes.oval, NEAR, stride=1, padding=NEAR // 2)
    return (2 * whole).clamp(max=1)


def _slopes(a: Tensor, b: Tensor, where: Tensor) -> Tensor:
    """Return the mean absolute difference of image gradients within a mask, summed over three scales."""
    total = a.new_zeros(())
    for scale in (1, 2, 4):
        if scale > 1:
            a, b, where = avg_pool2d(a, 2), avg_pool2d(b, 2), (avg_pool2d(where, 2) > CHANCES).float()
        d = a - b
        for axis in (2, 3):
            weight = where.narrow(axis, 1, d.shape[axis] - 1) * where.narrow(axis, 0, d.shape[axis] - 1)
            total = total + (d.diff(dim=axis).abs() * weight).sum() / (3 * weight.sum()).clamp(min=1)
    return total
