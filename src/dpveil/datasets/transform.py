"""Releases while a model is trained: a transform of images, and a data set whose images are released."""

from __future__ import annotations

import hashlib
import warnings
from collections import Counter
from pathlib import Path
from typing import Any, Final, Protocol

import numpy as np
from jaxtyping import UInt8

from dpveil.accounting.compose import compose
from dpveil.core.guarantee import Guarantee
from dpveil.core.parameters import check_count
from dpveil.core.photo import Photo
from dpveil.datasets.cache import Cache
from dpveil.datasets.releaser import Releaser
from dpveil.errors import BudgetRefused, InvalidParameter
from dpveil.io import Source, read
from dpveil.mechanisms.method import Method

SPENT: Final = (
    "without a cache every epoch draws and spends anew: {epochs} epochs cost a photo {total} in all,"
    " where one costs {one}; cache='FOLDER' draws once"
)
HOW_OFTEN: Final = "give cache='FOLDER', which draws each photo once, or epochs=N, which spends N times"
MOST_EPOCHS: Final = 100_000


class RepeatedSpend(UserWarning):
    """Each photo is released, and spends its budget, once for every epoch."""


class DPVeil:
    """A transform as those of albumentations: `veil(image=photo)["image"]` is a release of `photo`.

    Either `cache` names a folder, and each photo is drawn and spent once, whatever the number of epochs; or
    `epochs` says how often each photo is drawn at most. Then the first release warns of the total
    (`RepeatedSpend`), and a photo that this object is to draw more often is refused with `BudgetRefused`.
    Each worker of a data loader has an object of its own, with counts of its own: what bounds all of them is
    a `ledger`. `cache`, `ledger`, `subject`, `regions` and all other settings are those of `Releaser.of`.
    Nothing random may come before it: a photo that was cropped or flipped is another photo, which is drawn
    and spent anew. Raises errors of `dpveil.errors`, and then returns no image at all.

    >>> veil = DPVeil("fill", epochs=1)
    >>> veil(image=np.full((4, 4), 9, np.uint8), label=7)["label"]
    7
    """

    available_keys: Final = frozenset({"image"})
    """The targets that it changes, for `albumentations.Compose`."""

    def __init__(
        self,
        method: str | Method | None = None,
        *,
        cache: Cache | str | Path | None = None,
        epochs: int | None = None,
        **settings: Any,
    ) -> None:
        if (cache is None) == (epochs is None):
            problem = "is missing" if epochs is None else "is given with a cache, which draws once"
            raise InvalidParameter("epochs", epochs, problem, hint=HOW_OFTEN)
        self.releaser = Releaser.of(method, cache=cache, **settings)
        self.epochs = None if epochs is None else _checked(epochs)
        self._drawn: Counter[bytes] = Counter()
        self._warned = False

    def __call__(self, *, image: Source, **others: Any) -> dict[str, Any]:
        """Return the other targets unchanged, and `image` released: uint8, levels 0..255.

        It has the shape of a given array, and else height × width × channels (1 or 3).
        """
        return {**others, "image": self.image(image)}

    def image(self, photo: Source, **_: Any) -> UInt8[np.ndarray, ...]:
        """Return the levels of a release of `photo`, which is anything that `dpveil.read` accepts.

        It is a loader for `torchvision.datasets.ImageFolder`, and a function for `albumentations.Lambda`.
        """
        given = read(photo, max_pixels=self.releaser.max_pixels)
        if self.epochs is not None:
            self._count(given, self.epochs)
        stored = self.releaser.release(given)
        if self.epochs is not None and not self._warned:
            self._warned = True
            self._warn(stored.certificate.composition, self.epochs)
        levels = stored.photo().image
        return np.array(levels.reshape(photo.shape) if isinstance(photo, np.ndarray) else levels)

    def _count(self, photo: Photo, epochs: int) -> None:
        """Count a draw of a photo before it is made; raises `BudgetRefused` for one too many."""
        digest = hashlib.sha256(f"{photo.image.shape}\n".encode() + photo.image.tobytes()).digest()
        if self._drawn[digest] >= epochs:
            problem = f"a photo was drawn {epochs} times, which are all that epochs={epochs} allows"
            raise BudgetRefused(problem, hint=HOW_OFTEN)
        self._drawn[digest] += 1

    @staticmethod
    def _warn(one: Guarantee | None, epochs: int) -> None:
        """Warn of what all epochs cost a photo like the first one."""
        if one is not None and epochs > 1:
            words = SPENT.format(epochs=epochs, total=compose([one] * epochs), one=one)
            warnings.warn(words, RepeatedSpend, stacklevel=4)


def _checked(epochs: object) -> int:
    count = check_count(epochs, "epochs")
    if count > MOST_EPOCHS:
        raise InvalidParameter("epochs", count, "is out of range", hint=f"choose at most {MOST_EPOCHS:,}")
    return count


class MapStyle(Protocol):
    """A map-style data set, as those of PyTorch."""

    def __len__(self) -> int: ...

    def __getitem__(self, index: int, /) -> Any: ...


class ReleasedDataset:
    """A map-style data set for `torch.utils.data.DataLoader`: items of `dataset` with their image released.

    An item is a mapping, or a tuple or list, whose entry `image` is the photo, as bytes or a path where it is
    a file; its other entries, such as labels, are passed on as they are. Raises errors of `dpveil.errors`,
    which end an epoch: a photo that cannot be released is never replaced by its original.
    """

    def __init__(self, dataset: MapStyle, veil: DPVeil, *, image: str | int = 0) -> None:
        if not isinstance(veil, DPVeil):
            raise InvalidParameter("veil", type(veil).__name__, "is no transform", hint="give a DPVeil")
        self._dataset, self._veil, self._image = dataset, veil, image

    def __len__(self) -> int:
        return len(self._dataset)

    def __getitem__(self, index: int) -> Any:
        """Return item `index` with its image released."""
        item = self._dataset[index]
        if isinstance(item, dict) and self._image in item:
            return {**item, self._image: self._veil.image(item[self._image])}
        place = self._image
        if isinstance(item, tuple | list) and isinstance(place, int) and 0 <= place < len(item):
            return (*item[:place], self._veil.image(item[place]), *item[place + 1 :])
        problem = f"is not in an item, which is a {type(item).__name__}"
        raise InvalidParameter("image", self._image, problem, hint="name the key, or the place, of the photo")
