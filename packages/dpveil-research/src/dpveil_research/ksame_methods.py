"""k-same: pictures that groups of at least k faces of a gallery share. It promises nothing.

An attacker who sees one release and knows only the faces of the gallery names at most one of k people. A
second release, other knowledge, a person who is there twice and all outside of the faces break that (Croft
2022 §3). Nothing is random: the order of the gallery determines the groups.

Sources: Newton, Sweeney & Malin 2005 (k-same-pixel); Gross, Sweeney, De la Torre & Baker 2006 (k-same-m:
means of codes of any codec); Meng & Sun 2014 (k-same-furthest: means of a group that lies far away).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Protocol

import numpy as np

from dpveil.core.array_types import Float64, Int64, Num, UInt8
from dpveil.errors import InvalidParameter

Features = Num[np.ndarray, "n d"]
Members = Int64[np.ndarray, " members"]
Faces = UInt8[np.ndarray, "n h w c"]
Codes = Float64[np.ndarray, "n m"]
PART: Final = 4096  # columns multiplied at a time, which bounds memory


@dataclass(frozen=True, eq=False)
class Group:
    """Faces that share one picture: every one of `members` is shown as the mean of `averaged`.

    Both are indices into the gallery, in rising order; they are the same except in k-same-furthest.
    """

    members: Members
    averaged: Members


Grouping = Callable[[Float64[np.ndarray, "n n"], int], list[Group]]


@dataclass(frozen=True, eq=False)
class Shared:
    """The pictures to release, in the order of the gallery, and the groups, which the pictures reveal."""

    faces: Faces
    groups: list[Group]

    @property
    def group_of(self) -> Int64[np.ndarray, " n"]:
        return group_indices(self.groups)


class FaceSpace(Protocol):
    """The part of a codec that k-same uses."""

    def encode(self, crops: Faces) -> Codes:
        """Return the codes of faces, n × m."""

    def decode(self, codes: Codes) -> Faces:
        """Return the faces of codes."""


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


def greedy(away: Float64[np.ndarray, "n n"], k: int) -> list[Group]:
    """Return groups of k faces, the last one of k to 2k - 1; each face is in one.

    The first remaining face and the k - 1 nearest to it form a group, while at least 2k faces remain; the
    rest is the last group. Source: Newton, Sweeney & Malin 2005, with the gallery's order for "any face".
    """
    left, found = np.arange(len(away)), []
    while len(left) >= 2 * k:
        taken = _group_around(away, left, left[0], k)
        found.append(Group(taken, taken))
        left = np.setdiff1d(left, taken)
    return [*found, Group(left, left)]


def exchange_pairs(away: Float64[np.ndarray, "n n"], k: int) -> list[Group]:
    """Return pairs of distant groups of at least k faces, each shown as the mean of the other.

    The first remaining face with the k - 1 nearest is one group; the face farthest from it, with the k - 1
    nearest of the rest, is the other. Below 4k faces the last pair takes all, halved.
    """
    left, found = np.arange(len(away)), []
    while len(left):
        last = len(left) < 4 * k
        one = _group_around(away, left, left[0], len(left) // 2 if last else k)
        rest = np.setdiff1d(left, one)
        farthest = rest[np.argmax(away[left[0], rest])]
        other = rest if last else _group_around(away, rest, farthest, k)
        found += [Group(one, other), Group(other, one)]
        left = np.setdiff1d(rest, other)
    return found


def _group_around(away: Float64[np.ndarray, "n n"], left: Members, face: int, k: int) -> Members:
    taken: Members = np.sort(left[np.argsort(away[face, left], kind="stable")[:k]])
    return taken


def group_indices(groups: list[Group]) -> Int64[np.ndarray, " n"]:
    numbers = np.empty(sum(len(group.members) for group in groups), np.int64)
    for number, group in enumerate(groups):
        numbers[group.members] = number
    return numbers


def grouped(features: Features, k: int, grouping: Grouping = greedy) -> list[Group]:
    """Return the groups of faces with these features; raises `InvalidParameter` for too few."""
    fewest = 2 * k if grouping is exchange_pairs else k
    if len(features) < fewest:
        raise InvalidParameter(
            "k", k, f"needs {fewest} faces, not {len(features)}", hint="lower k, or add faces"
        )
    return grouping(squared_distances(features), k)


def group_means(codes: Codes, groups: list[Group]) -> Float64[np.ndarray, "groups m"]:
    """Return what every group is shown as."""
    return np.stack([codes[group.averaged].mean(axis=0) for group in groups])


def average_codes(
    codes: Codes, k: int, decode: Callable[[Codes], Faces], grouping: Grouping = greedy
) -> Shared:
    """Return for every face the decoded mean code of its group. Raises `InvalidParameter` for too few."""
    groups = grouped(codes, k, grouping)
    return Shared(decode(group_means(codes, groups))[group_indices(groups)], groups)


@dataclass(frozen=True)
class KSamePixel:
    """Every face becomes the mean picture of at least `k` similar faces; unaligned ones leave contours.

    >>> faces = np.array([10, 90, 12, 80], np.uint8).reshape(4, 1, 1, 1)
    >>> KSamePixel(2).release(faces).faces.ravel().tolist()
    [11, 85, 11, 85]
    """

    k: int
    name = "k-same-pixel"

    def release(self, faces: Faces) -> Shared:
        """Return the mean pictures, rounded to levels, of different people's faces."""
        rows = faces.reshape(len(faces), -1)
        groups = grouped(rows, self.k)
        means = np.rint(group_means(rows, groups)).astype(np.uint8)
        return Shared(means[group_indices(groups)].reshape(faces.shape), groups)


@dataclass(frozen=True)
class KSameM:
    """Every face becomes the decoded mean code of the at least `k` faces with the most similar codes.

    Similarity is by squared differences of codes, unweighted as published.
    """

    k: int
    space: FaceSpace
    name = "k-same-m"

    def release(self, faces: Faces) -> Shared:
        """Return the decoded means of different people's faces."""
        return average_codes(self.space.encode(faces), self.k, self.space.decode)


@dataclass(frozen=True)
class KSameFurthest:
    """Every face becomes the decoded mean code of at least `k` faces of a distant group; needs 2k faces.

    Who looks for the most similar face is misled; who knows the method looks for the least.
    """

    k: int
    space: FaceSpace
    name = "k-same-furthest"

    def release(self, faces: Faces) -> Shared:
        """Return the decoded means of different people's faces."""
        return average_codes(self.space.encode(faces), self.k, self.space.decode, exchange_pairs)
