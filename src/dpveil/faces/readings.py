"""What the default model of attributes reads in the default gallery, kept in a file beside both.

Reading a gallery means decoding every face of it, which takes longer than a release. The file names both by
their hashes, so it counts for these two and no others. Nothing in it comes from an input: all is public.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Final

import numpy as np
from jaxtyping import Int64

from dpveil.assets.defaults import default_path
from dpveil.assets.store import FORMAT, opened, sealed
from dpveil.errors import ModelError, UsageError
from dpveil.io.names import shown

NAME: Final = "readings"
HINT: Final = "install dpveil-faces again"
KEPT: Final = "34d913016469e77d5d00739adb40964072e9900ca8fd9fad98ca2b78cff4b04e"
"""The hash of the readings in use: they influence which face is shown, and no certificate names them."""
Answer = Int64[np.ndarray, " n"]
"""The place of each face's value among an attribute's values."""


@dataclass(frozen=True, eq=False)
class Readings:
    """What a model reads in each face of a gallery, by attribute, and the hashes of both files.

    They are made of a gallery whose faces were all decoded, so whoever finds its hash here need not do so.
    """

    gallery: str
    model: str
    answers: Mapping[str, Answer]

    def pack(self) -> tuple[bytes, str]:
        """Return the file and its hash."""
        about = {"format": FORMAT, "codec": NAME, "gallery": self.gallery, "model": self.model}
        return sealed(about, {name: read.astype(np.int16) for name, read in self.answers.items()})

    @classmethod
    def load(cls, path: Path) -> Readings:
        """Return what a file holds; raises `ModelError` for one that is damaged or of another kind."""
        about, tensors, _ = opened(path)
        gallery, model = about.get("gallery"), about.get("model")
        if about.get("codec") != NAME or not isinstance(gallery, str) or not isinstance(model, str):
            raise ModelError(f"{shown(path)} holds no readings of a gallery", hint=HINT)
        return cls(gallery, model, {name: read.astype(np.int64) for name, read in tensors.items()})

    def checked(self, values: Mapping[str, tuple[str, ...]], faces: int) -> dict[str, Answer]:
        """Return a value of each of these attributes for each face; raises `ModelError` without them."""
        for name, words in values.items():
            read = self.answers.get(name, np.empty(0, np.int64))
            if read.shape != (faces,) or not ((read >= 0) & (read < len(words))).all():
                raise ModelError(f"the default readings of {name} do not fit the gallery", hint=HINT)
        return {name: self.answers[name] for name in values}


@lru_cache(maxsize=1)
def kept() -> Readings | None:
    """Return the readings that come with the side package; raises `ModelError` for a damaged file.

    None without them, and for any but `KEPT`: what these say is then read anew in the files of certificates.
    """
    try:
        found = Readings.load(default_path(NAME))
    except UsageError:
        return None
    return found if found.pack()[1] == KEPT else None
