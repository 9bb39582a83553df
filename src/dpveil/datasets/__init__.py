"""Releases of photos in data sets of PyTorch, WebDataset and Hugging Face, none of which has to be there."""

from typing import TYPE_CHECKING

from dpveil.core.lazy import lazy

if TYPE_CHECKING:
    from dpveil.datasets.cache import Cache, Stored
    from dpveil.datasets.releaser import Releaser
    from dpveil.datasets.transform import DPVeil, release, released_samples

__all__ = [
    "Cache",
    "DPVeil",
    "Releaser",
    "Stored",
    "release",
    "released_samples",
]

__getattr__, __dir__ = lazy(
    __name__,
    {
        "cache": "Cache Stored",
        "releaser": "Releaser",
        "transform": "release released_samples DPVeil",
    },
)
