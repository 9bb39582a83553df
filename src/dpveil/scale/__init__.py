"""Releases of data sets on several machines: by Ray Data, or by a mapper of columns for other engines."""

from typing import TYPE_CHECKING

from dpveil.core.lazy import lazy

if TYPE_CHECKING:
    from dpveil.scale.files import release, release_files
    from dpveil.scale.worker import Mapper, Outcomes, Row, Setup, Worker

__all__ = ["Mapper", "Outcomes", "Row", "Setup", "Worker", "release", "release_files"]

__getattr__, __dir__ = lazy(
    __name__,
    {
        "files": "release release_files",
        "worker": "Mapper Outcomes Row Setup Worker",
    },
)
