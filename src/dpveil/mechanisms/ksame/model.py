"""k-same-m: k-same in the space of a face model (Gross, Sweeney, De la Torre & Baker 2006)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Final, Protocol

import numpy as np

from dpveil.core.arrays import Float64
from dpveil.core.parameters import Flag
from dpveil.errors import InvalidParameter
from dpveil.mechanisms.ksame.base import (
    Codes,
    Faces,
    FaceSpace,
    Group,
    Grouping,
    KSame,
    KSameResult,
    check_codes,
    check_faces,
    exchange_pairs,
    greedy,
    group_indices,
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
