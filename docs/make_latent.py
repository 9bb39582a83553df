"""Pictures of the page on the method `latent`, from the public photograph of an astronaut."""

from __future__ import annotations

import numpy as np
from skimage import data

import dpveil
from dpveil.assets.defaults import default_path
from dpveil.codecs import load

VIEW = (slice(0, 300), slice(80, 380))
EPSILONS = (30, 100, 300, 1000)

Tile = tuple[np.ndarray, str]


def rows() -> list[list[Tile]]:
    """Return the photo with its face released at several budgets, and whole-photo portraits at the same."""
    photo = data.astronaut()
    codec = load(default_path("pca"))
    given = {"codec": codec, "clip": 10}
    first, second = [(photo[VIEW], "original")], [(photo[VIEW], "original")]
    for seed, epsilon in enumerate(EPSILONS):
        protect = "box" if seed % 2 else "head"
        bits = dpveil.SeededBits(seed)
        face = dpveil.obfuscate(photo, "latent", epsilon=epsilon, protect=protect, bits=bits, **given)
        first.append((face.image[VIEW], f"epsilon {epsilon}\nprotect {protect}"))
        bits = dpveil.SeededBits(seed)
        whole = dpveil.obfuscate(photo, "latent", epsilon=epsilon, regions="whole", bits=bits, **given)
        second.append((resized(whole.image), f"epsilon {epsilon}\nwhole photo"))
    return [first, second]


def resized(image: np.ndarray) -> np.ndarray:
    """Return the whole picture in the size of the view."""
    import cv2

    return np.asarray(cv2.resize(image, (300, 300), interpolation=cv2.INTER_AREA))
