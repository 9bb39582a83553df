"""k-same-m: k-same in the space of a face model (Gross, Sweeney, De la Torre & Baker 2006)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from dpveil.mechanisms.ksame.base import (
    Codes,
    Faces,
    FaceSpace,
    KSame,
    KSameResult,
    check_codes,
    check_faces,
    numbered,
)
from dpveil.mechanisms.ksame.groups import Group, Grouping, greedy


def decoded(codes: Codes, groups: Sequence[Group], space: FaceSpace) -> KSameResult:
    """Return for every face the decoded mean code of its group."""
    means = np.stack([codes[group.averaged].mean(axis=0) for group in groups])
    return KSameResult(space.decode(means)[numbered(groups)], tuple(groups))


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
        return decoded(codes, self._grouped(codes, people, classes, type(self).grouping), self.space)


@dataclass(frozen=True, kw_only=True)
class KSameM(InSpace):
    """Every face is replaced by the decoded mean code of the at least `k` faces with the most similar codes.

    `space` is any codec; the paper uses an active appearance model, and with eigenfaces this is k-same-eigen.
    Similarity is by squared differences of codes, unweighted as published. `repeats` as in `KSame`. Nothing
    is promised. Raises `InvalidParameter`. Source: Gross, Sweeney, De la Torre & Baker 2006; Croft 2022 §6.
    """

    name: ClassVar[str] = "k-same-m"
    summary: ClassVar[str] = "means of k or more like codes of any codec, decoded"
    source: ClassVar[str] = "Gross, Sweeney, De la Torre & Baker 2006"
    grouping: ClassVar[Grouping] = greedy
