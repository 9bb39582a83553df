"""k-same-select: k-same within classes, which preserves the class (Gross, Airoldi, Malin & Sweeney 2005)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from dpveil.errors import InvalidParameter
from dpveil.mechanisms.ksame.base import Faces, KSame, KSameResult, check_faces
from dpveil.mechanisms.ksame.groups import greedy
from dpveil.mechanisms.ksame.pixels import averaged


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
