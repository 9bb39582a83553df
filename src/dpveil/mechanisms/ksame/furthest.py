"""k-same-furthest: groups that lie far apart swap their means (Meng & Sun 2014)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from dpveil.mechanisms.ksame.base import Codes, Faces, FaceSpace, Hidden, KSame, check_codes, check_faces
from dpveil.mechanisms.ksame.groups import exchanged
from dpveil.mechanisms.ksame.model import decoded


@dataclass(frozen=True, kw_only=True)
class KSameFurthest(KSame):
    """Every face becomes the picture of the mean code of `k` or more that are least like its own group.

    No face is shown by a mean that it is part of, so a recogniser that looks for the most alike is led away;
    one that knows the method looks for the least alike. `space` is any codec; the paper's is an active
    appearance model. `repeats` as in `KSame`. Takes 2k faces or more. Nothing is promised. Raises
    `InvalidParameter`. Source: Meng & Sun 2014.
    """

    name: ClassVar[str] = "k-same-furthest"
    summary: ClassVar[str] = "means of k or more codes of a group that lies far away, decoded"
    source: ClassVar[str] = "Meng & Sun 2014"
    fewest: ClassVar[int] = 2

    space: FaceSpace

    def _in_the_clear(self) -> tuple[str, ...]:
        return self.space.in_the_clear

    def release(self, faces: Faces, *, people: Sequence[str], classes: Sequence[str] | None = None) -> Hidden:
        """Return the decoded means of the other groups; see `KSame.release`."""
        return self.release_codes(self.space.encode(check_faces(faces)), people=people, classes=classes)

    def release_codes(
        self, codes: Codes, *, people: Sequence[str], classes: Sequence[str] | None = None
    ) -> Hidden:
        """Return the decoded means for faces whose codes, n × m, are known."""
        codes = check_codes(codes)
        return decoded(codes, self._grouped(codes, people, classes, exchanged), self.space)
