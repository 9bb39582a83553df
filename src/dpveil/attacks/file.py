"""What tells without a look at the picture: the size of its file, and what its certificate states."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from dpveil.attacks.base import SEES, View
from dpveil.attacks.vectors import VectorAttack, Vectors


@dataclass(frozen=True)
class FileFacts(VectorAttack):
    """Knows files by their size in bytes, the photo's size, and the regions that the certificate counts.

    The bytes of a file depend on all that the photo shows.
    """

    name: ClassVar[str] = "file"
    summary: ClassVar[str] = (
        "size of the file and of the photo, number and size of regions in the certificate"
    )
    sees: ClassVar[tuple[str, ...]] = SEES

    def vectors(self, views: Sequence[View]) -> Vectors:
        """Return six numbers of each file."""
        return np.array([_facts(view) for view in views], np.float64).reshape(len(views), -1)


def _facts(view: View) -> list[float]:
    regions: Any = (view.certificate or {}).get("regions") or ()
    masked = [float(one.get("masked") or one["box"][2] * one["box"][3]) for one in regions]
    height, width = view.image.shape[:2]
    size = float(np.log1p(view.size))
    return [size, height, width, len(masked), max(masked, default=0.0), sum(masked)]
