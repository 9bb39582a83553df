"""k-same on pixels: the original method (Newton, Sweeney & Malin 2005)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from jaxtyping import Float64

from dpveil.mechanisms.ksame.base import Faces, KSame, KSameResult, check_faces
from dpveil.mechanisms.ksame.groups import Group, greedy


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
