"""k-same: pictures that groups of at least k faces of a gallery share. It promises nothing.

Sources: Newton, Sweeney & Malin 2005; in face models Gross, Sweeney, De la Torre & Baker 2006.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar, Final, Protocol

import numpy as np

from dpveil.core.arrays import Float64, Int64, Num, UInt8
from dpveil.core.guarantee import Guarantee, Relation, Scope
from dpveil.core.parameters import Count, Flag, check_count
from dpveil.core.photo import check_unmasked
from dpveil.errors import InvalidParameter

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
    """Return `face` and the k - 1 nearest to it of those left; `face` is the first of its duplicates."""
    taken: Members = left[nearest(away[face, left], k)]
    return taken


def group_within_classes(
    features: Features, classes: Sequence[str], k: int, grouping: Grouping
) -> list[Group]:
    """Return the groups within each class; none mixes two classes."""
    labels, found = np.asarray(classes), []
    for label in sorted(set(classes)):
        places = np.flatnonzero(labels == label)
        own = grouping(squared_distances(features[places]), k)
        found += [Group(places[group.members], places[group.averaged]) for group in own]
    return found


Faces = UInt8[np.ndarray, "n h w c"]
Codes = Float64[np.ndarray, "n m"]
MOST: Final = 10_000
"""Largest gallery: all pairwise distances are held in memory, 8 bytes each."""
BROKEN_BY: Final = (
    "composition: two releases of a face in two galleries, whose groups have fewer than k people in common"
    " (Croft 2022 §3.2)",
    "background knowledge: whoever knows the other faces of a group subtracts them from the mean, and whoever"
    " knows where some of them were strikes them off (Croft 2022 §3.1)",
    "a person who is in the gallery twice, and a gallery that is not the whole of who it could be",
    "everything outside the faces",
)


class FaceSpace(Protocol):
    """The part of a codec that k-same uses."""

    in_the_clear: ClassVar[tuple[str, ...]]

    def encode(self, crops: Faces) -> Codes:
        """Return the codes of faces, n × m."""

    def decode(self, codes: Codes) -> Faces:
        """Return the faces of codes."""


@dataclass(frozen=True, eq=False)
class KSameResult:
    """The result of k-same: `faces` to release, in the order of the gallery, and the groups.

    `groups` lists who shares a picture, which the pictures reveal as well.
    """

    faces: Faces
    groups: tuple[Group, ...]

    @property
    def group_of(self) -> Int64[np.ndarray, " n"]:
        """The index of every face's group."""
        return group_indices(self.groups)


@dataclass(frozen=True, kw_only=True)
class KSame(ABC):
    """Every face is replaced by the mean of a group of at least `k`; nothing is random or guaranteed.

    An attacker who sees one release and knows only the faces of the gallery names at most one of k people
    correctly. Everything in `broken_by` breaks that, so the kind is heuristic: the method exists to be
    compared with and attacked. `repeats` allows galleries in which a person appears twice, which the papers
    exclude. Concrete methods are frozen dataclasses and never subclassed. Deterministic: the order of the
    gallery determines the groups.
    """

    name: ClassVar[str]
    kind: ClassVar[str] = "heuristic"
    summary: ClassVar[str]
    source: ClassVar[str]
    fewest: ClassVar[int] = 1
    """The smallest number of groups."""

    k: Count = Count(low=2, high=MOST)
    repeats: Flag = Flag(default=False)

    @property
    def broken_by(self) -> tuple[str, ...]:
        """Known attacks."""
        return BROKEN_BY

    @abstractmethod
    def release(
        self, faces: Faces, *, people: Sequence[str], classes: Sequence[str] | None = None
    ) -> KSameResult:
        """Return a picture for every face, uint8 n × h × w × c, shared by a group of at least k.

        `people` names the person on each face. `classes`, such as gender, are preserved: groups are formed
        within a class. Raises `InvalidParameter` for fewer than k faces, overall or in a class, for people
        who appear twice, and for other arrays.
        """

    def guarantee(self, *, faces: int) -> Guarantee:
        """Return the heuristic guarantee for a gallery of this many faces, with the known attacks."""
        check_count(faces, "faces")
        shown = ("which faces of the gallery share a picture", *self._in_the_clear())
        scope = Scope(f"{faces} faces, of which {self.k} or more share each picture", shown)
        relation = Relation("any-image")
        return Guarantee(kind=self.kind, relation=relation, scope=scope, broken_by=self.broken_by)

    def _in_the_clear(self) -> tuple[str, ...]:
        return ()

    def _group_faces(
        self,
        features: Features,
        people: Sequence[str],
        classes: Sequence[str] | None,
        grouping: Grouping,
    ) -> tuple[Group, ...]:
        """Check people and classes, and return the groups of the faces with these features."""
        count = len(features)
        _check_people(people, count, self.repeats)
        labels = ["all"] * count if classes is None else list(classes)
        if len(labels) != count:
            raise InvalidParameter("classes", len(labels), f"are not {count}, one for each face")
        least = self.fewest * self.k
        for label, held in sorted(Counter(labels).items()):
            if held < least:
                where = "" if classes is None else f" of class {label!r}"
                raise InvalidParameter(
                    "k", self.k, f"needs {least} faces{where}, not {held}", hint="lower k, or add faces"
                )
        if count > MOST:
            raise InvalidParameter("faces", count, f"are more than {MOST}", hint="divide the gallery")
        return tuple(group_within_classes(features, labels, self.k, grouping))


def group_indices(groups: Sequence[Group]) -> Int64[np.ndarray, " n"]:
    """Return the index of every face's group."""
    numbers = np.empty(sum(len(group.members) for group in groups), np.int64)
    for number, group in enumerate(groups):
        numbers[group.members] = number
    return numbers


def check_faces(faces: Faces) -> Faces:
    """Return `faces`. Raises `InvalidParameter` unless they are uint8 n × h × w × c, with n > 0."""
    check_unmasked(faces, "faces")
    if faces.dtype != np.uint8 or faces.ndim != 4 or not faces.size:
        raise InvalidParameter("faces", f"{faces.dtype} {faces.shape}", "are not uint8 n × h × w × c, n > 0")
    return faces


def check_codes(codes: Codes) -> Codes:
    """Return `codes` as floats. Raises `InvalidParameter` unless they are finite, n × m, with n > 0."""
    if codes.ndim != 2 or not codes.size or not np.isfinite(codes).all():
        raise InvalidParameter("codes", str(codes.shape), "are not finite numbers, n × m, n > 0")
    return codes.astype(np.float64)


def _check_people(people: Sequence[str], count: int, repeats: bool) -> None:
    if isinstance(people, str) or len(people) != count:
        raise InvalidParameter("people", None, f"do not name {count} faces", hint="one name for each face")
    often = sum(times > 1 for times in Counter(people).values())
    if often and not repeats:
        raise InvalidParameter(
            "people",
            None,
            f"appear more than once: {often} of {len(set(people))}",
            hint="keep one face of each, or say repeats=True: a group may then hold fewer than k people",
        )


GENDERS: Final = {"male": -1.0, "female": 1.0}
"""The classes that a generator may be given."""


class Generator(FaceSpace, Protocol):
    """The part of the codec `upconv` that k-same-net uses."""

    def rows_of(self, crops: Faces) -> Codes:
        """Return what the identity layer is given for faces: rows of people, or mixtures of them."""

    def codes_of(self, rows: Codes) -> Codes:
        """Return the identity layer's outputs."""

    def render(self, codes: Codes, *, gender: float = 0.0) -> Faces:
        """Return the faces of codes, with a gender from -1 (male) to 1 (female)."""


@dataclass(frozen=True, kw_only=True)
class KSameNet(KSame):
    """Every face is replaced by what a generator makes of the mean of at least `k` people's identities.

    `space` is a codec `upconv`. Means are taken before its identity layer, in contrast to k-same-m, and
    groups formed as there, by squared differences of codes. There is no proxy gallery, as in Croft 2022. With
    `genders`, classes are "male" and "female", and the generator is given them: gender-preserving.
    Expressions are neutral. `repeats` as in `KSame`. Nothing is promised. Raises `InvalidParameter`. Source:
    Meden, Emersic, Struc & Peer 2017; Croft 2022 §6.1.
    """

    name: ClassVar[str] = "k-same-net"
    summary: ClassVar[str] = "means of k or more people in a generator"
    source: ClassVar[str] = "Meden, Emersic, Struc & Peer 2017"

    space: Generator
    genders: Flag = Flag(default=False)

    def _in_the_clear(self) -> tuple[str, ...]:
        return (*self.space.in_the_clear, *(("the class of every face",) if self.genders else ()))

    def release(
        self, faces: Faces, *, people: Sequence[str], classes: Sequence[str] | None = None
    ) -> KSameResult:
        """Return the generated means; see `KSame.release`."""
        return self.release_rows(self.space.rows_of(check_faces(faces)), people=people, classes=classes)

    def release_rows(
        self, rows: Codes, *, people: Sequence[str], classes: Sequence[str] | None = None
    ) -> KSameResult:
        """Return the generated means for faces given as inputs of the identity layer, n × r."""
        rows = check_codes(rows)
        if self.genders and (classes is None or not set(classes) <= set(GENDERS)):
            hint = f"{' or '.join(GENDERS)} for each face"
            raise InvalidParameter("classes", None, "are not genders", hint=hint)
        groups = self._group_faces(self.space.codes_of(rows), people, classes, greedy)
        shown = [self._render_group(rows, group, classes) for group in groups]
        return KSameResult(np.concatenate(shown)[group_indices(groups)], groups)

    def _render_group(self, rows: Codes, group: Group, classes: Sequence[str] | None) -> Faces:
        codes = self.space.codes_of(rows[group.averaged].mean(axis=0)[None])
        if not self.genders or classes is None:
            return self.space.decode(codes)
        return self.space.render(codes, gender=GENDERS[classes[int(group.members[0])]])


def decode_means(codes: Codes, groups: Sequence[Group], space: FaceSpace) -> KSameResult:
    """Return for every face the decoded mean code of its group."""
    means = np.stack([codes[group.averaged].mean(axis=0) for group in groups])
    return KSameResult(space.decode(means)[group_indices(groups)], tuple(groups))


@dataclass(frozen=True, kw_only=True)
class InSpace(KSame):
    """k-same on codes: `space` encodes and decodes, `grouping` chooses whose mean each face becomes."""

    grouping: ClassVar[Grouping]

    space: FaceSpace

    def _in_the_clear(self) -> tuple[str, ...]:
        return self.space.in_the_clear

    def release(
        self, faces: Faces, *, people: Sequence[str], classes: Sequence[str] | None = None
    ) -> KSameResult:
        """Return the decoded means; see `KSame.release`."""
        return self.release_codes(self.space.encode(check_faces(faces)), people=people, classes=classes)

    def release_codes(
        self, codes: Codes, *, people: Sequence[str], classes: Sequence[str] | None = None
    ) -> KSameResult:
        """Return the decoded means for faces given as codes, n × m."""
        codes = check_codes(codes)
        return decode_means(codes, self._group_faces(codes, people, classes, type(self).grouping), self.space)


@dataclass(frozen=True, kw_only=True)
class KSameM(InSpace):
    """Every face is replaced by the decoded mean code of the at least `k` faces with the most similar codes.

    `space` is any codec; the paper uses an active appearance model, and with eigenfaces this is k-same-eigen.
    Similarity is by squared differences of codes, unweighted as published. Nothing is promised. `repeats` as
    in `KSame`. Raises `InvalidParameter`. Source: Gross, Sweeney, De la Torre & Baker 2006; Croft 2022 §6.
    """

    name: ClassVar[str] = "k-same-m"
    summary: ClassVar[str] = "means of k or more like codes of any codec, decoded"
    source: ClassVar[str] = "Gross, Sweeney, De la Torre & Baker 2006"
    grouping: ClassVar[Grouping] = greedy


@dataclass(frozen=True, kw_only=True)
class KSameFurthest(InSpace):
    """Every face is replaced by the decoded mean code of at least `k` faces of a distant group.

    No face contributes to its own picture, so a recogniser that looks for the most similar face is misled;
    one that knows the method looks for the least similar. `space` is any codec; the paper uses an active
    appearance model. `repeats` as in `KSame`. Needs at least 2k faces. Nothing is promised. Raises
    `InvalidParameter`. Source: Meng & Sun 2014.
    """

    name: ClassVar[str] = "k-same-furthest"
    summary: ClassVar[str] = "means of k or more codes of a group that lies far away, decoded"
    source: ClassVar[str] = "Meng & Sun 2014"
    fewest: ClassVar[int] = 2
    grouping: ClassVar[Grouping] = exchange_pairs


def average_pictures(faces: Faces, groups: Sequence[Group]) -> Faces:
    """Return for every face the mean picture of its group, rounded to levels."""
    out = np.empty_like(faces)
    for group in groups:
        mean: Float64[np.ndarray, "h w c"] = faces[group.averaged].mean(axis=0)
        out[group.members] = np.rint(mean).astype(np.uint8)
    return out


@dataclass(frozen=True, kw_only=True)
class KSamePixel(KSame):
    """Every face is replaced by the mean picture of at least `k` similar faces, by squared differences.

    `repeats` as in `KSame`. Nothing is promised. Misaligned faces leave double contours. Raises
    `InvalidParameter`. Source: Newton, Sweeney & Malin 2005, k-same-pixel.

    >>> import numpy as np
    >>> faces = np.array([10, 90, 12, 80], np.uint8).reshape(4, 1, 1, 1)
    >>> KSamePixel(k=2).release(faces, people=list("abcd")).faces.ravel().tolist()
    [11, 85, 11, 85]
    """

    name: ClassVar[str] = "k-same-pixel"
    summary: ClassVar[str] = "means of k or more like faces, pixel by pixel"
    source: ClassVar[str] = "Newton, Sweeney & Malin 2005"

    def release(
        self, faces: Faces, *, people: Sequence[str], classes: Sequence[str] | None = None
    ) -> KSameResult:
        """Return the mean pictures; see `KSame.release`."""
        rows = check_faces(faces).reshape(len(faces), -1)
        groups = self._group_faces(rows, people, classes, greedy)
        return KSameResult(average_pictures(faces, groups), groups)


@dataclass(frozen=True, kw_only=True)
class KSameSelect(KSame):
    """Every face is replaced by the mean picture of at least `k` similar faces of its own class.

    `repeats` as in `KSame`. The class of every face is released. Nothing is promised. Raises
    `InvalidParameter`, also if classes are missing. Source: Gross, Airoldi, Malin & Sweeney 2005.

    >>> import numpy as np
    >>> faces = np.array([10, 90, 12, 80], np.uint8).reshape(4, 1, 1, 1)
    >>> KSameSelect(k=2).release(faces, people=list("abcd"), classes=list("xxyy")).faces.ravel().tolist()
    [50, 50, 46, 46]
    """

    name: ClassVar[str] = "k-same-select"
    summary: ClassVar[str] = "means of k or more like faces of one class, pixel by pixel"
    source: ClassVar[str] = "Gross, Airoldi, Malin & Sweeney 2005"

    def _in_the_clear(self) -> tuple[str, ...]:
        return ("the class of every face",)

    def release(
        self, faces: Faces, *, people: Sequence[str], classes: Sequence[str] | None = None
    ) -> KSameResult:
        """Return the mean pictures within `classes`; see `KSame.release`."""
        if classes is None:
            raise InvalidParameter("classes", None, "are missing", hint="one label for each face")
        rows = check_faces(faces).reshape(len(faces), -1)
        groups = self._group_faces(rows, people, classes, greedy)
        return KSameResult(average_pictures(faces, groups), groups)


TABLE: Final[dict[str, type[KSame]]] = {
    method.name: method for method in (KSamePixel, KSameSelect, KSameM, KSameFurthest, KSameNet)
}
