"""Readings: the default attribute model's predictions for the default gallery, stored in a file beside both.

Computing them means decoding every face of the gallery, which takes longer than a release. The file has the
hashes of both files and is used for no others. It depends on public data only.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Final

import numpy as np

from dpveil.assets.store import FORMAT, default_path, encode_tensors, load_tensors
from dpveil.core.arrays import Int64
from dpveil.errors import ModelError, UsageError
from dpveil.io.names import show_path

NAME: Final = "readings"
HINT: Final = "install dpveil-faces again"
KEPT: Final = "d8290e1dbf2d3b3cee4860bedcca3950a4610b452afddd634634965cb2057c20"
"""The hash of the only readings that are used: they influence which face is shown, but no certificate names
them."""
Answer = Int64[np.ndarray, " n"]
"""The index of each face's value among an attribute's values."""


@dataclass(frozen=True, eq=False)
class Readings:
    """An attribute model's predictions for each face of a gallery, by attribute, and the hashes of both
    files.

    All faces of a gallery were decoded to compute them, so a gallery with this hash is known to be intact.
    """

    gallery: str
    model: str
    answers: Mapping[str, Answer]

    def pack(self) -> tuple[bytes, str]:
        """Return the file's bytes and their hash."""
        about = {"format": FORMAT, "codec": NAME, "gallery": self.gallery, "model": self.model}
        return encode_tensors(about, {name: read.astype(np.int16) for name, read in self.answers.items()})

    @classmethod
    def load(cls, path: Path) -> Readings:
        """Return the readings in a file; raises `ModelError` for one that is damaged or of another kind."""
        about, tensors, _ = load_tensors(path)
        gallery, model = about.get("gallery"), about.get("model")
        if about.get("codec") != NAME or not isinstance(gallery, str) or not isinstance(model, str):
            raise ModelError(f"{show_path(path)} holds no readings of a gallery", hint=HINT)
        return cls(gallery, model, {name: read.astype(np.int64) for name, read in tensors.items()})

    def checked(self, values: Mapping[str, tuple[str, ...]], faces: int) -> dict[str, Answer]:
        """Return the predictions of these attributes; raises `ModelError` if some do not fit `faces`
        faces.
        """
        for name, words in values.items():
            read = self.answers.get(name, np.empty(0, np.int64))
            if read.shape != (faces,) or not ((read >= 0) & (read < len(words))).all():
                raise ModelError(f"the default readings of {name} do not fit the gallery", hint=HINT)
        return {name: self.answers[name] for name in values}


@lru_cache(maxsize=1)
def kept() -> Readings | None:
    """Return the readings of dpveil-faces; raises `ModelError` for a damaged file.

    None if they are not installed, or if their hash is not `KEPT`; predictions are then computed when needed.
    """
    try:
        found = Readings.load(default_path(NAME))
    except UsageError:
        return None
    return found if found.pack()[1] == KEPT else None
