"""k-same: what it keeps in one release, what it refuses, and what it is known to lose."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from dpveil.errors import InvalidParameter
from dpveil.noise.bits import SeededBits
from dpveil_research.ksame_methods import KSameM, KSamePixel, Shared, squared_distances

COUNT, CANVAS = 31, (9, 7, 3)


def gallery(count: int = COUNT, stream: str = "") -> np.ndarray:
    """Faces that vary in a few directions, so that some are more alike than others."""
    words = SeededBits(3, stream).words(count * 5 + 5 * int(np.prod(CANVAS))) / 2.0**64 - 0.5
    codes, parts = words[: count * 5].reshape(count, 5), words[count * 5 :].reshape(5, -1)
    levels = 127 + 140 * codes @ parts
    return np.clip(np.rint(levels), 0, 255).astype(np.uint8).reshape(count, *CANVAS)


class Levels:
    """A codec that loses nothing but rounding: the code is the levels themselves."""

    def encode(self, crops: np.ndarray) -> np.ndarray:
        return crops.reshape(len(crops), -1).astype(np.float64)

    def decode(self, codes: np.ndarray) -> np.ndarray:
        return np.rint(codes).astype(np.uint8).reshape(-1, *CANVAS)


METHODS: dict[str, Callable[[int], KSamePixel | KSameM]] = {
    KSamePixel.name: KSamePixel,
    KSameM.name: lambda k: KSameM(k, Levels()),
}


def eigenfaces(faces: np.ndarray, shown: np.ndarray, components: int = 12) -> np.ndarray:
    """The published recogniser: which face of the original gallery is nearest among its eigenfaces."""
    rows, other = (f.reshape(len(f), -1).astype(float) for f in (faces, shown))
    mean = rows.mean(axis=0)
    _, _, axes = np.linalg.svd(rows - mean, full_matrices=False)
    known, probes = ((part - mean) @ axes[:components].T for part in (rows, other))
    nearest: np.ndarray = np.linalg.norm(probes[:, None] - known[None], axis=2).argmin(axis=1)
    return nearest


def keeps_its_word(faces: np.ndarray, shown: Shared, k: int) -> None:
    """Everybody is in one group of k or more, shown as its mean; the recogniser names at most one in k."""
    assert sorted(np.concatenate(shown.groups)) == list(range(len(faces)))
    for number, members in enumerate(shown.groups):
        assert len(members) >= k
        mean = np.rint(faces[members].mean(axis=0))
        assert all(np.array_equal(shown.faces[face], mean) for face in members)
        assert set(shown.group_of[members]) == {number}
    assert np.mean(eigenfaces(faces, shown.faces) == np.arange(len(faces))) <= 1 / k


@pytest.mark.parametrize("name", METHODS)
def test_every_face_shares_its_picture_with_k_whatever_the_gallery(name: str) -> None:
    for k, count in [(2, 31), (5, 31), (7, 31), *((3, count) for count in (12, 14, 16, 22, 24, 26))]:
        faces = gallery(count)
        keeps_its_word(faces, METHODS[name](k).release(faces), k)
    METHODS[name](4).release(gallery(4))
    with pytest.raises(InvalidParameter):
        METHODS[name](4).release(gallery(3))


def test_groups_are_of_near_faces() -> None:
    faces = gallery()
    rows = faces.reshape(COUNT, -1).astype(int)
    nearest = np.argsort(((rows - rows[0]) ** 2).sum(axis=1), kind="stable")[:4]
    assert sorted(nearest) == METHODS["k-same-m"](4).release(faces).groups[0].tolist()


def test_distances_are_exact() -> None:
    rows = gallery().reshape(COUNT, -1)
    whole = ((rows[:, None].astype(np.int64) - rows[None]) ** 2).sum(axis=2)
    wide = np.tile(rows, (1, 60))  # more columns than are multiplied at a time
    assert np.array_equal(squared_distances(wide), 60 * whole)
    assert np.allclose(squared_distances(rows / 7 + 1e6), whole / 49, atol=1e-6)


def test_two_releases_leave_fewer_than_k() -> None:
    """Composition: the 21 faces of both galleries, each of which holds 10 others too."""
    every, k = gallery(41), 5
    both, sets = np.arange(21), []
    for others in (np.arange(21, 31), np.arange(31, 41)):
        own = np.concatenate([both, others])
        groups = KSamePixel(k).release(every[own]).groups
        sets.append({int(own[m]): set(own[members].tolist()) for members in groups for m in members})
    left = [len(sets[0][face] & sets[1][face]) for face in both.tolist()]
    assert np.mean([1 / size for size in left]) > 1.5 / k
