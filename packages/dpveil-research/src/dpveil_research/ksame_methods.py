"""k-same: pictures that groups of at least k faces of a gallery share. It promises nothing.

An attacker who sees one release and knows only the faces of the gallery names at most one of k people. A
second release, other knowledge, a person who is there twice and all outside of the faces break that (Croft
2022 §3). Nothing is random: the order of the gallery determines the groups.

Sources: Newton, Sweeney & Malin 2005 (k-same-pixel); Gross, Sweeney, De la Torre & Baker 2006 (k-same-m:
means of codes of any codec).
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
"""Faces that share one picture, as indices into the gallery in rising order."""
Faces = UInt8[np.ndarray, "n h w c"]
Codes = Float64[np.ndarray, "n m"]
PART: Final = 4096  # columns multiplied at a time, which bounds memory


@dataclass(frozen=True, eq=False)
class Shared:
    """The pictures to release, in the order of the gallery, and the groups, which the pictures reveal."""

    faces: Faces
    groups: list[Members]

    @property
    def group_of(self) -> Int64[np.ndarray, " n"]:
        numbers = np.empty(sum(map(len, self.groups)), np.int64)
        for number, members in enumerate(self.groups):
            numbers[members] = number
        return numbers


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


def grouped(features: Features, k: int) -> list[Members]:
    """Return groups of k faces, the last one of k to 2k - 1; each face is in one.

    The first remaining face and the k - 1 nearest to it form a group, while at least 2k faces remain; the
    rest is the last group. Raises `InvalidParameter` for fewer than k. Source: Newton, Sweeney & Malin 2005,
    with the gallery's order for "any face".
    """
    if len(features) < k:
        raise InvalidParameter("k", k, f"needs {k} faces, not {len(features)}", hint="lower k, or add faces")
    away, left, found = squared_distances(features), np.arange(len(features)), []
    while len(left) >= 2 * k:
        found.append(np.sort(left[np.argsort(away[left[0], left], kind="stable")[:k]]))
        left = np.setdiff1d(left, found[-1])
    return [*found, left]


def group_means(features: Features, groups: list[Members]) -> Float64[np.ndarray, "n d"]:
    means = np.empty(features.shape)
    for members in groups:
        means[members] = features[members].mean(axis=0)
    return means


def average_codes(codes: Codes, k: int, decode: Callable[[Codes], Faces]) -> Shared:
    """Return for every face the decoded mean code of its group. Raises `InvalidParameter` for too few."""
    groups = grouped(codes, k)
    return Shared(decode(group_means(codes, groups)), groups)


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
        return Shared(means.reshape(faces.shape), groups)


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
