"""Releases of photos while a model is trained, by PyTorch or anything else."""

from typing import TYPE_CHECKING

from dpveil.core.lazy import lazy

if TYPE_CHECKING:
    from dpveil.datasets.training_releases import Cache, DPVeil, Releaser, Stored

__all__ = [
    "Cache",
    "DPVeil",
    "Releaser",
    "Stored",
]

__getattr__, __dir__ = lazy(
    __name__,
    {
        "training_releases": "Cache DPVeil Releaser Stored",
    },
)
