"""k-same: what it keeps in one release, what it refuses, and what it is known to lose."""

from __future__ import annotations

from dataclasses import dataclass, fields
from itertools import combinations
from typing import Any, ClassVar

import numpy as np
import pytest

from dpveil.assets import Card
from dpveil.errors import InvalidParameter
from dpveil.noise.bits import SeededBits
from dpveil_research.ksame_methods import TABLE, KSameM, KSamePixel, KSameResult, squared_distances
from dpveil_train import train_pca

COUNT, CANVAS = 31, (9, 7, 3)


def gallery(count: int = COUNT, stream: str = "") -> np.ndarray:
    """Faces that vary in a few directions, so that some are more alike than others."""
    words = SeededBits(3, stream).words(count * 5 + 5 * int(np.prod(CANVAS))) / 2.0**64 - 0.5
    codes, parts = words[: count * 5].reshape(count, 5), words[count * 5 :].reshape(5, -1)
    levels = 127 + 140 * codes @ parts
    return np.clip(np.rint(levels), 0, 255).astype(np.uint8).reshape(count, *CANVAS)


def named(count: int = COUNT) -> list[str]:
    return [f"person {number}" for number in range(count)]


def classes(count: int = COUNT) -> list[str]:
    return ["even" if number % 2 else "odd" for number in range(count)]


@dataclass(frozen=True)
class Levels:
    """A codec that loses nothing but rounding: the code is the levels themselves."""

    in_the_clear: ClassVar[tuple[str, ...]] = ("where the face is",)

    def encode(self, crops: np.ndarray) -> np.ndarray:
        return crops.reshape(len(crops), -1).astype(np.float64)

    def decode(self, codes: np.ndarray) -> np.ndarray:
        return np.rint(codes).astype(np.uint8).reshape(-1, *CANVAS)

    def rows_of(self, crops: np.ndarray) -> np.ndarray:
        return self.encode(crops)

    def codes_of(self, rows: np.ndarray) -> np.ndarray:
        return rows


def made(name: str, k: int, **more: Any) -> Any:
    kind = TABLE[name]
    space = {"space": Levels()} if "space" in {field.name for field in fields(kind)} else {}
    return kind(k=k, **space, **more)


def released(name: str, k: int, faces: np.ndarray) -> KSameResult:
    names = named(len(faces))
    return made(name, k).release(faces, people=names, classes=classes(len(faces)))


def eigenfaces(faces: np.ndarray, shown: np.ndarray, components: int = 12) -> np.ndarray:
    """The published recogniser: which face of the original gallery is nearest among its eigenfaces."""
    rows, other = (f.reshape(len(f), -1).astype(float) for f in (faces, shown))
    mean = rows.mean(axis=0)
    _, _, axes = np.linalg.svd(rows - mean, full_matrices=False)
    known, probes = ((part - mean) @ axes[:components].T for part in (rows, other))
    nearest: np.ndarray = np.linalg.norm(probes[:, None] - known[None], axis=2).argmin(axis=1)
    return nearest


def breaches(faces: np.ndarray, shown: KSameResult, k: int) -> list[str]:
    """What of the method's own words does not hold of a release."""
    found, own = [], np.concatenate([group.members for group in shown.groups])
    if sorted(own) != list(range(len(faces))):
        found.append("a face is in no group or in two")
    for group in shown.groups:
        if len(group.members) < k or len(group.averaged) < k:
            found.append("a group is smaller than k")
        mean = np.rint(faces[group.averaged].mean(axis=0))
        if any(not np.array_equal(shown.faces[number], mean) for number in group.members):
            found.append("a face is not shown as the mean of its group")
    distinct, copies = np.unique(shown.faces.reshape(len(shown.faces), -1), axis=0, return_counts=True)
    if copies.min() < k or len(distinct) > len(faces) // k:
        found.append("fewer than k share a picture")
    if np.mean(eigenfaces(faces, shown.faces) == np.arange(len(faces))) > 1 / k:
        found.append("the recogniser names more than one in k")
    return found


# What holds of one release


@pytest.mark.parametrize("k", [2, 3, 5, 7])
@pytest.mark.parametrize("name", sorted(TABLE))
def test_every_face_shares_its_picture_with_k(name: str, k: int) -> None:
    faces = gallery()
    shown = released(name, k, faces)
    assert breaches(faces, shown, k) == []
    assert np.array_equal(shown.group_of[shown.groups[1].members], [1] * len(shown.groups[1].members))
    assert shown.faces.dtype == np.uint8
    assert shown.faces.shape == faces.shape


@pytest.mark.parametrize("count", [6, 7, 8, 11, 12, 13])
@pytest.mark.parametrize("name", sorted(TABLE))
def test_no_group_is_small_whatever_the_gallery(name: str, count: int) -> None:
    faces = gallery(2 * count)
    assert breaches(faces, released(name, 3, faces), 3) == []


@pytest.mark.parametrize("name", sorted(set(TABLE) - {"k-same-furthest"}))
def test_the_first_face_is_with_the_nearest(name: str) -> None:
    faces = gallery()
    shown = made(name, 4).release(faces, people=named(), classes=["all"] * COUNT)
    rows = faces.reshape(COUNT, -1).astype(int)
    nearest = np.argsort(((rows - rows[0]) ** 2).sum(axis=1), kind="stable")[:4]
    assert sorted(nearest) == shown.groups[0].members.tolist()


def test_furthest_is_shown_as_others_that_lie_far_away() -> None:
    faces = gallery()
    near, far = (released(name, 4, faces) for name in ("k-same-m", "k-same-furthest"))
    for group in far.groups:
        assert not set(group.members) & set(group.averaged)
    moved = [np.linalg.norm(shown.faces.astype(float) - faces) for shown in (near, far)]
    assert moved[1] > 1.5 * moved[0]
    assert not np.any(eigenfaces(faces, far.faces) == np.arange(COUNT))


@pytest.mark.parametrize("name", sorted(TABLE))
def test_classes_do_not_mix(name: str) -> None:
    labels = np.array(classes())
    for group in released(name, 3, gallery()).groups:
        assert len(set(labels[group.members]) | set(labels[group.averaged])) == 1


def test_distances_are_exact() -> None:
    rows = gallery().reshape(COUNT, -1)
    whole = ((rows[:, None].astype(np.int64) - rows[None]) ** 2).sum(axis=2)
    assert np.array_equal(squared_distances(rows), whole)
    wide = np.tile(rows, (1, 60))  # more columns than are multiplied at a time
    assert np.array_equal(squared_distances(wide), 60 * whole)
    codes = rows / 7 + 1e6
    assert np.allclose(squared_distances(codes), whole / 49, atol=1e-6)


# What breaks it


def test_who_knows_the_others_of_a_group_has_the_last_face() -> None:
    """Background knowledge: k times the mean without k - 1 known faces is the other, but for rounding."""
    faces, k = gallery(), 5
    shown = KSamePixel(k=k).release(faces, people=named())
    for group in shown.groups:
        size = len(group.members)
        victim, known = group.members[0], group.members[1:]
        left = size * shown.faces[victim].astype(int) - faces[known].astype(int).sum(axis=0)
        assert np.abs(left - faces[victim]).max() <= size / 2
    assert {"composition", "background knowledge"} <= {
        words.partition(":")[0] for words in KSamePixel(k=k).broken_by
    }


def test_two_releases_leave_fewer_than_k() -> None:
    """Composition: the 21 faces of both galleries, each of which holds 10 others too."""
    every, k = gallery(41), 5
    both = np.arange(21)
    sets = []
    for others in (np.arange(21, 31), np.arange(31, 41)):
        own = np.concatenate([both, others])
        shown = KSamePixel(k=k).release(every[own], people=[str(n) for n in own])
        sets.append({int(own[m]): set(own[g.members].tolist()) for g in shown.groups for m in g.members})
    left = [len(sets[0][face] & sets[1][face]) for face in both.tolist()]
    assert np.mean([1 / size for size in left]) > 1.5 / k


# What is refused


@pytest.mark.parametrize("name", sorted(TABLE))
def test_people_who_appear_twice_are_refused_unless_told(name: str) -> None:
    faces, twice = gallery(), ["Ann", "Ann", *named()[2:]]
    with pytest.raises(InvalidParameter, match="appear more than once: 1 of 30"):
        made(name, 3).release(faces, people=twice, classes=classes())
    shown = made(name, 3, repeats=True).release(faces, people=twice, classes=classes())
    assert breaches(faces, shown, 3) == []


@pytest.mark.parametrize("name", sorted(TABLE))
def test_small_galleries_are_refused(name: str) -> None:
    method = made(name, 4)
    least = method.fewest * 4
    some = gallery(least)
    assert method.release(some, people=named(least), classes=["all"] * least).faces.shape == some.shape
    with pytest.raises(InvalidParameter, match=f"k = 4 needs {least} faces"):
        method.release(some[1:], people=named(least - 1), classes=["all"] * (least - 1))
    with pytest.raises(InvalidParameter, match="are not uint8"):
        method.release(some[:0], people=[], classes=[])
    with pytest.raises(InvalidParameter, match="of class 'b'"):
        method.release(gallery(), people=named(), classes=["a"] * (COUNT - 1) + ["b"])


@pytest.mark.parametrize("name", sorted(TABLE))
def test_other_input_is_refused(name: str) -> None:
    faces, method = gallery(), made(name, 3)
    with pytest.raises(InvalidParameter, match="do not name 31 faces"):
        method.release(faces, people=named()[1:], classes=classes())
    with pytest.raises(InvalidParameter, match="do not name 31 faces"):
        method.release(faces, people="x" * COUNT, classes=classes())
    with pytest.raises(InvalidParameter, match="are not 31"):
        method.release(faces, people=named(), classes=["a"])
    for k in (0, 1, 2.5, True):
        with pytest.raises(InvalidParameter, match="k ="):
            made(name, k)
    for wrong in (faces.astype(float), faces[0]):
        with pytest.raises(InvalidParameter, match="are not uint8"):
            method.release(wrong, people=named(), classes=classes())
    with pytest.raises(InvalidParameter, match="faces is a masked array"):
        method.release(np.ma.MaskedArray(faces), people=named(), classes=classes())


# What it says of itself


@pytest.mark.parametrize("name", sorted(TABLE))
def test_nothing_is_promised(name: str) -> None:
    guarantee = made(name, 3).guarantee(faces=30)
    assert not guarantee.formal
    assert guarantee.broken_by
    assert "30 faces" in guarantee.scope.covers
    shown = " ".join(guarantee.scope.in_the_clear)
    assert ("class of every face" in shown) == (name == "k-same-select")
    assert ("where the face is" in shown) == hasattr(made(name, 3), "space")


# With a codec of the project


def test_k_same_m_in_the_space_of_eigenfaces() -> None:
    faces = gallery(40)
    card = Card("pca", data="made faces", terms="none", seed=1)
    codec = train_pca(lambda: iter([gallery(60, "train")]), card=card, seed=1, length=4)
    shown = KSameM(k=5, space=codec).release(faces, people=named(40))
    codes = codec.encode(faces)
    for group in shown.groups:
        mean = codec.decode(codes[group.members].mean(axis=0, keepdims=True))[0]
        assert all(np.array_equal(shown.faces[number], mean) for number in group.members)
    within = [np.sum((codes[a] - codes[b]) ** 2) for g in shown.groups for a, b in combinations(g.members, 2)]
    anywhere = [np.sum((codes[a] - codes[b]) ** 2) for a, b in combinations(range(40), 2)]
    assert np.mean(within) < 0.6 * np.mean(anywhere)
