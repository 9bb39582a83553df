"""Greedy grouping of similar faces, as in the k-same papers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from jaxtyping import Float64, Int64, Num

Features = Num[np.ndarray, "n d"]
Members = Int64[np.ndarray, " members"]
PART: Final = 4096
"""Columns multiplied at a time, which bounds memory."""


@dataclass(frozen=True, eq=False)
class Group:
    """Faces that share one picture: every one of `members` is shown as the mean of `averaged`.

    Both are indices into the gallery, in rising order; they are the same except in k-same-furthest.
    """

    members: Members
    averaged: Members


Grouping = Callable[[Float64[np.ndarray, "n n"], int], list[Group]]


def squared_distances(features: Features) -> Float64[np.ndarray, "n n"]:
    """Return the squared Euclidean distances of all pairs of rows; exact for pictures of any size.

    Products of levels sum to integers below 2^53, so the result does not depend on the order of summation.
    """
    count, wide = features.shape
    centre = np.zeros(wide) if features.dtype == np.uint8 else features.mean(axis=0)
    products = np.zeros((count, count))
    for start in range(0, wide, PART):
        part = features[:, start : start + PART].astype(np.float64) - centre[start : start + PART]
        products += part @ part.T
    squares = np.diagonal(products)
    return np.maximum(squares[:, None] + squares[None] - 2 * products, 0)


def nearest(away: Float64[np.ndarray, " left"], count: int) -> Members:
    """Return the indices of the `count` smallest values, in rising order; of equal ones, the first."""
    return np.sort(np.argsort(away, kind="stable")[:count])


def greedy(away: Float64[np.ndarray, "n n"], k: int) -> list[Group]:
    """Return groups of k faces, the last one of k to 2k - 1; each face is in one.

    The first remaining face and the k - 1 nearest to it form a group, while at least 2k faces remain; the
    rest is the last group. Source: Newton, Sweeney & Malin 2005, with the gallery's order for "any face".
    """
    left, found = np.arange(len(away)), []
    while len(left) >= 2 * k:
        taken = _around(away, left, left[0], k)
        found.append(Group(taken, taken))
        left = np.setdiff1d(left, taken)
    return [*found, Group(left, left)]


def exchanged(away: Float64[np.ndarray, "n n"], k: int) -> list[Group]:
    """Return pairs of distant groups of at least k faces, each shown as the mean of the other.

    The first remaining face with the k - 1 nearest is one group; the face farthest from it, with the k - 1
    nearest of the rest, is the other. Below 4k faces the last pair takes all, halved.
    """
    left, found = np.arange(len(away)), []
    while len(left):
        last = len(left) < 4 * k
        one = _around(away, left, left[0], len(left) // 2 if last else k)
        rest = np.setdiff1d(left, one)
        farthest = rest[np.argmax(away[left[0], rest])]
        other = rest if last else _around(away, rest, farthest, k)
        found += [Group(one, other), Group(other, one)]
        left = np.setdiff1d(rest, other)
    return found


def _around(away: Float64[np.ndarray, "n n"], left: Members, face: int, k: int) -> Members:
    """Return `face` and the k - 1 nearest to it of those left; `face` is the first of its duplicates."""
    taken: Members = left[nearest(away[face, left], k)]
    return taken


def within(features: Features, classes: Sequence[str], k: int, grouping: Grouping) -> list[Group]:
    """Return the groups within each class; none mixes two classes."""
    labels, found = np.asarray(classes), []
    for label in sorted(set(classes)):
        places = np.flatnonzero(labels == label)
        own = grouping(squared_distances(features[places]), k)
        found += [Group(places[group.members], places[group.averaged]) for group in own]
    return found
