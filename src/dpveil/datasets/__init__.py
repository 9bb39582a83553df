"""Releases of photos while a model is trained, by PyTorch or anything else."""

from typing import TYPE_CHECKING

from dpveil.core.lazy import lazy

if TYPE_CHECKING:
    from dpveil.datasets.cache import Cache, Stored
    from dpveil.datasets.releaser import Releaser
    from dpveil.datasets.transform import DPVeil

__all__ = [
    "Cache",
    "DPVeil",
    "Releaser",
    "Stored",
]

__getattr__, __dir__ = lazy(
    __name__,
    {
        "cache": "Cache Stored",
        "releaser": "Releaser",
        "transform": "DPVeil",
    },
)
