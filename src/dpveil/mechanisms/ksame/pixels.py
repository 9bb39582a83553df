"""k-same on pixels: the original method (Newton, Sweeney & Malin 2005)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from jaxtyping import Float64

from dpveil.errors import InvalidParameter
from dpveil.mechanisms.ksame.base import (
    Faces,
    Group,
    Grouping,
    KSame,
    KSameResult,
    check_faces,
    exchanged,
    greedy,
)
from dpveil.mechanisms.ksame.model import InSpace


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
    grouping: ClassVar[Grouping] = exchanged


def averaged(faces: Faces, groups: Sequence[Group]) -> Faces:
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
        groups = self._grouped(rows, people, classes, greedy)
        return KSameResult(averaged(faces, groups), groups)


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
        groups = self._grouped(rows, people, classes, greedy)
        return KSameResult(averaged(faces, groups), groups)
