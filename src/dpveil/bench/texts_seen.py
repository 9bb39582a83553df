"""What is read in a picture."""

from __future__ import annotations

import numpy as np
from jaxtyping import UInt8

from dpveil.attacks.text import read, similarity

Image = UInt8[np.ndarray, "h w c"]


def agrees(photo: Image, release: Image) -> float | None:
    """Return how much of a photo's text is read in its release; None if the photo has none."""
    text = read(photo)
    return similarity(text, read(release)) if text else None
