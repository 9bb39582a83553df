"""Super-resolution before recognition: patches of a release are put together from others' clean patches."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Final

import numpy as np
from jaxtyping import Float64

from dpveil.attacks.base import Background, View
from dpveil.attacks.patches import TOP
from dpveil.attacks.restored import SIDE, folds, painted, rows_of
from dpveil.attacks.vectors import check_people
from dpveil.attacks.wrapped import Undo, Wrapped

PATCH: Final = 8
"""Side of a patch, in pixels of `SIDE`."""
STEP: Final = 4
"""Pixels between the corners of patches, which overlap."""
NEAREST: Final = 24
"""Patches of the attacker's releases that each one is put together from."""
RIDGE: Final = 0.01
"""Penalty of the weights, relative to the mean squared distance of those patches."""
SMALL: Final = 1e-9

Pictures = Float64[np.ndarray, "n h w"]


@dataclass(frozen=True)
class Hallucinated(Wrapped):
    """Puts clean faces together from the attacker's own photos, patch by patch; `inner` sees the result.

    At every place of the face, the patch of a release is written as a weighted sum of the most similar ones
    of the attacker's releases at that place; the same sum of their clean patches takes its place, and patches
    that overlap are averaged. Sources: Chang, Yeung & Xiong 2004 (neighbour embedding); Ma, Zhang & Qi 2010
    (position patches of faces).
    """

    name: ClassVar[str] = "hallucinated"
    summary: ClassVar[str] = "super-resolution from clean patches of others, then another attack"

    def undo(self, background: Background) -> Undo:
        """Return what restores releases by all photos of a background; raises `InvalidParameter`."""
        check_people(background)
        seen, clean = _pictures(background.released), _pictures(background.originals)
        return lambda views: _restored(views, seen, clean)

    def held_out(self, background: Background, undo: Undo) -> tuple[View, ...]:
        """Return own releases, each put together from other photos."""
        fold, out = folds(background), list(background.released)
        seen, clean = _pictures(background.released), _pictures(background.originals)
        for one in np.unique(fold):
            rows, others = np.flatnonzero(fold == one), fold != one
            for row, view in zip(
                rows, _restored([out[r] for r in rows], seen[others], clean[others]), strict=True
            ):
                out[row] = view
        return tuple(out)


def _pictures(views: Sequence[View]) -> Pictures:
    return rows_of(views).reshape(-1, SIDE[1], SIDE[0])


def _restored(views: Sequence[View], seen: Pictures, clean: Pictures) -> tuple[View, ...]:
    levels = hallucinated(_pictures(views), seen, clean) * TOP
    made = np.clip(np.rint(levels), 0, TOP).astype(np.uint8)
    return tuple(painted(view, picture) for view, picture in zip(views, made, strict=True))


def hallucinated(given: Pictures, seen: Pictures, clean: Pictures) -> Pictures:
    """Return clean pictures for `given` releases, from pairs of releases `seen` and `clean` photos."""
    out, times = np.zeros_like(given), np.zeros(given.shape[1:])
    for top in _corners(given.shape[1]):
        for left in _corners(given.shape[2]):
            part = np.s_[:, top : top + PATCH, left : left + PATCH]
            patches = [one[part].reshape(len(one), -1) for one in (given, seen, clean)]
            out[part] += _combined(*patches).reshape(-1, PATCH, PATCH)
            times[part[1:]] += 1
    return out / times


def _corners(side: int) -> list[int]:
    """Return where patches begin, so that the last one ends with the picture."""
    return sorted({*range(0, side - PATCH, STEP), side - PATCH})


def _combined(
    given: Float64[np.ndarray, "n d"], seen: Float64[np.ndarray, "m d"], clean: Float64[np.ndarray, "m d"]
) -> Float64[np.ndarray, "n d"]:
    """Return sums of clean patches, with weights that add up to one and give the patches best."""
    count = min(NEAREST, len(seen))
    away = (given**2).sum(axis=1)[:, None] - 2 * given @ seen.T + (seen**2).sum(axis=1)
    near = np.argsort(away, axis=1, kind="stable")[:, :count]
    apart = seen[near] - given[:, None]
    gram = apart @ apart.transpose(0, 2, 1)
    scale = np.trace(gram, axis1=1, axis2=2) / count
    gram += (RIDGE * scale + SMALL)[:, None, None] * np.eye(count)
    weights = np.linalg.solve(gram, np.ones((len(given), count, 1)))[..., 0]
    weights /= weights.sum(axis=1, keepdims=True)
    return np.asarray(np.einsum("nk,nkd->nd", weights, clean[near]))
