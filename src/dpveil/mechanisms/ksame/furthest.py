"""k-same-furthest: pairs of distant groups exchange their means (Meng & Sun 2014)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from dpveil.mechanisms.ksame.groups import Grouping, exchanged
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
