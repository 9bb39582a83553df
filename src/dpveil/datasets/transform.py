"""Releases while a model is trained: a transform of images, of which each is drawn and paid for once."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import numpy as np

from dpveil.core.arrays import UInt8
from dpveil.datasets.cache import Cache
from dpveil.datasets.releaser import Releaser
from dpveil.io import Source
from dpveil.mechanisms.method import Method


class DPVeil:
    """A transform as those of albumentations: `veil(image=photo)["image"]` is a release of `photo`.

    `cache` names a folder, and each photo is drawn and spent once, whatever the number of epochs. `cache`,
    `ledger`, `subject`, `regions` and all other settings are those of `Releaser.of`. Nothing random may come
    before it: a photo that was cropped or flipped is another photo, which is drawn and spent anew. Raises
    errors of `dpveil.errors`, and then returns no image at all.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     DPVeil("fill", cache=folder)(image=np.full((4, 4), 9, np.uint8), label=7)["label"]
    7
    """

    available_keys: Final = frozenset({"image"})
    """The targets that it changes, for `albumentations.Compose`."""

    def __init__(
        self, method: str | Method | None = None, *, cache: Cache | str | Path, **settings: Any
    ) -> None:
        self.releaser = Releaser.of(method, cache=cache, **settings)

    def __call__(self, *, image: Source, **others: Any) -> dict[str, Any]:
        """Return the other targets unchanged, and `image` released: uint8, levels 0..255.

        It has the shape of a given array, and else height × width × channels (1 or 3).
        """
        return {**others, "image": self.image(image)}

    def image(self, photo: Source, **_: Any) -> UInt8[np.ndarray, ...]:
        """Return the levels of a release of `photo`, which is anything that `dpveil.read` accepts.

        It is a loader for `torchvision.datasets.ImageFolder`, and a function for `albumentations.Lambda`.
        """
        levels = self.releaser.release(photo).photo().image
        return np.array(levels.reshape(photo.shape) if isinstance(photo, np.ndarray) else levels)
