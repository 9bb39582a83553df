"""Attackers on whole photos: who is it, from the face, from its placement, from what lies outside of it?

Each has photos of everybody, other than the released ones, and knows dpveil: it learns from clean photos
(`identify`) or from its own releases of them (`identify` and `parrot`), whichever names more.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence

import cv2
import numpy as np

from dpveil.attacks import Identified, identify, parrot, strongest
from heads_releases import Kept, Look

SIDE = 32
"""Side of the photo whose outside is compared, in pixels."""
BINS = 6
HOG = cv2.HOGDescriptor((64, 64), (16, 16), (8, 8), (8, 8), 8)
MOST = 200
"""Most dimensions of what attackers see of the context, by principal components of their own photos."""

Features = np.ndarray


def placements(kept: Kept) -> Features:
    """Return the placement as plans and certificates hold it: scale, roll, centre, yaw, box."""
    facts = kept.facts
    return np.array([facts["scale"], facts["roll"], *facts["centre"], facts["yaw"], *facts["box"]])


def measured(look: Look) -> Features:
    """Return the placement as programs find it in a release; NaN without a face."""
    eyes = np.stack([look.points[2:4].mean(axis=0), look.points[:2].mean(axis=0)])
    across = eyes[1] - eyes[0]
    size = np.hypot(*across)
    return np.array([np.log(size), np.arctan2(across[1], across[0]), *eyes.mean(axis=0), look.yaw, *look.box])


def context(kept: Kept) -> Features:
    """Return colours, gradients and a thumbnail of what a release does not replace."""
    open_ = ~kept.hidden
    seen = np.where(open_[..., None], kept.image, 0).astype(np.float32)
    weight = cv2.resize(open_.astype(np.float32), (SIDE, SIDE), interpolation=cv2.INTER_AREA)
    small = cv2.resize(seen, (SIDE, SIDE), interpolation=cv2.INTER_AREA) / np.maximum(weight, 0.05)[..., None]
    thumb = cv2.resize(small, (16, 16), interpolation=cv2.INTER_AREA)
    lab = cv2.cvtColor(kept.image, cv2.COLOR_RGB2LAB)[open_]
    colours, _ = np.histogramdd(lab, BINS, [(0, 255), (96, 160), (96, 160)])
    filled = cv2.inpaint(kept.image, kept.hidden.astype(np.uint8), 3, cv2.INPAINT_TELEA)
    slopes = HOG.compute(cv2.resize(filled, (64, 64), interpolation=cv2.INTER_AREA)).ravel()
    shades = np.sqrt(colours.ravel() / max(1.0, colours.sum()))
    return np.concatenate(
        [part / np.sqrt(len(part)) for part in (thumb.ravel() / 64, 8 * shades, 4 * slopes)]
    )


def standard(known: Features, probes: Features) -> tuple[Features, Features]:
    """Return both in units of the standard deviations of the known ones, reduced to principal components."""
    there = np.isfinite(known).all(axis=1)
    mean, spread = known[there].mean(axis=0), known[there].std(axis=0) + 1e-9
    if known.shape[1] > MOST:
        spread = np.full(known.shape[1], spread.mean())
    known, probes = (known - mean) / spread, (probes - mean) / spread
    if known.shape[1] > MOST:
        axes = np.linalg.svd(known[there], full_matrices=False)[2][:MOST]
        known, probes = known @ axes.T, probes @ axes.T
    return known, probes


def best(known: Features, owners: Sequence[str], probes: Features, people: Sequence[str]) -> Identified:
    """Return the better of the nearest mean and the parrot."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        return strongest(identify(known, owners, probes, people), parrot(known, owners, probes, people))


def attacks(
    clean: Mapping[str, Features],
    own: Mapping[str, Features],
    probes: Mapping[str, Features],
    owners: Sequence[str],
    people: Sequence[str],
) -> dict[str, Identified]:
    """Return the attack by each kind of features, and by all of them together.

    `clean` are features of the attacker's photos, `own` those of its releases of them, in the same order.
    """
    found, whole = {}, []
    for name, seen in probes.items():
        tried = []
        for known in (clean.get(name), own[name]):
            if known is not None:
                pair = (known, seen) if name == "face" else standard(known, seen)
                tried.append(best(pair[0], owners, pair[1], people))
        found[name] = strongest(*tried)
        known, seen = standard(own[name], seen)
        size = np.sqrt(np.nanmean((known**2).sum(axis=1)))
        whole.append([np.nan_to_num(part) / size for part in (known, seen)])
    together = [np.concatenate(parts, axis=1) for parts in zip(*whole, strict=True)]
    found["all of them"] = best(together[0], owners, together[1], people)
    return found


def told(
    looks: Sequence[Look], owners: Sequence[str], probes: Sequence[Look], people: Sequence[str]
) -> Identified:
    """Return the yardstick: who sees no release, but is told the gender that is read in the photo."""
    names, of = np.unique(np.array(owners), return_inverse=True)
    share = np.bincount(of, [one.gender == 1 for one in looks]) / np.bincount(of)
    share = np.clip(share, 0.05, 0.95)
    chances = np.array([share if one.gender == 1 else 1 - share for one in probes])
    ties = chances >= chances.max(axis=1, keepdims=True) - 1e-12
    own = np.searchsorted(names, np.array(people))
    right = ties[np.arange(len(own)), own] / ties.sum(axis=1)
    return Identified(right, tuple(people), 1 / len(names))
