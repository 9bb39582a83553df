"""Attackers on whole photos: who is it, from the face, from its placement, from what lies outside of it?

Each has photos of everybody, other than the released ones, and knows dpveil: it learns from clean photos
or from its own releases of them, by the nearest mean, the parrot and the nearest photo: whichever names most.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence

import numpy as np
from scipy.spatial.distance import cdist

from dpveil.attacks import Identified, identify, parrot, strongest
from heads_releases import Kept, Look

MOST = 200
"""Most dimensions of what attackers see of the context, by principal components of their own photos."""

FAR = 1e9
"""The distance of what was not found."""

TOGETHER = {
    "context": ("context",),
    "context and placement": ("context", "placement"),
    "all of them": ("context", "placement", "face"),
}
"""Attackers who add up normalised distances, and the kinds of features whose distances they add."""

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


def away(known: Features, owners: Sequence[str], probes: Features) -> Features:
    """Return the distance of each probe to the nearest photo of each person, in the order of names."""
    names, of = np.unique(np.array(owners), return_inverse=True)
    far = cdist(probes, known, "cityblock")
    far[~np.isfinite(far)] = FAR
    return np.stack([far[:, of == place].min(axis=1) for place in range(len(names))], axis=1)


def nearest(far: Features, owners: Sequence[str], people: Sequence[str]) -> Identified:
    """Return the naming of the nearest person; a probe that is far from everybody is not named."""
    names = np.unique(np.array(owners))
    right = (names[far.argmin(axis=1)] == np.array(people)) & (far.min(axis=1) < FAR)
    return Identified(right, tuple(people), 1 / len(names))


def best(known: Features, owners: Sequence[str], probes: Features, people: Sequence[str]) -> Identified:
    """Return the best of the nearest mean, the parrot and the nearest photo."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        usual = identify(known, owners, probes, people), parrot(known, owners, probes, people)
    return strongest(*usual, nearest(away(known, owners, probes), owners, people))


def attacks(
    clean: Mapping[str, Features],
    own: Mapping[str, Features],
    probes: Mapping[str, Features],
    owners: Sequence[str],
    people: Sequence[str],
) -> dict[str, Identified]:
    """Return the attack by each kind of features, and by sums of their normalised distances.

    `clean` are features of the attacker's photos, `own` those of its releases of them, in the same order.
    """
    found: dict[str, Identified] = {}
    parts: dict[str, Features] = {}
    for name, part in probes.items():
        held = [known for known in (clean.get(name), own[name]) if known is not None]
        pairs = [(known, part) if name == "face" else standard(known, part) for known in held]
        found[name] = strongest(*(best(known, owners, seen, people) for known, seen in pairs))
        far = away(pairs[-1][0], owners, pairs[-1][1])
        parts[name] = (far - far.mean(axis=1, keepdims=True)) / (far.std(axis=1, keepdims=True) + 1e-9)
    for name, kinds in TOGETHER.items():
        whole = sum(part for kind, part in parts.items() if kind.startswith(kinds))
        found[name] = nearest(np.asarray(whole), owners, people)
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
