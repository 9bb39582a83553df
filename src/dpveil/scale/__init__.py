"""Releases of files and objects on several machines, by Ray Data (docs, "Clusters")."""

from typing import TYPE_CHECKING

from dpveil.core.lazy import lazy

if TYPE_CHECKING:
    from dpveil.scale.files import release_files

__all__ = ["release_files"]

__getattr__, __dir__ = lazy(__name__, {"files": "release_files"})
