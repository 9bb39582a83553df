"""Face-space methods: a face goes in as a canonical crop, and another face comes out."""

from typing import Final

from dpveil.facespace.base import FaceMethod

TABLE: Final[dict[str, type[FaceMethod]]] = {}

__all__ = ["TABLE", "FaceMethod"]
