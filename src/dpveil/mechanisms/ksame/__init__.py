"""k-same methods: one file each, and this table is the only list to edit."""

from typing import Final

from dpveil.mechanisms.ksame.base import FaceSpace, Group, KSame, KSameResult
from dpveil.mechanisms.ksame.model import KSameFurthest, KSameM, KSameNet, KSamePixel, KSameSelect

TABLE: Final[dict[str, type[KSame]]] = {
    method.name: method for method in (KSamePixel, KSameSelect, KSameM, KSameFurthest, KSameNet)
}

__all__ = [
    "TABLE",
    "FaceSpace",
    "Group",
    "KSame",
    "KSameFurthest",
    "KSameM",
    "KSameNet",
    "KSamePixel",
    "KSameResult",
    "KSameSelect",
]
