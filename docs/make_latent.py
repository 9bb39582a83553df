"""Pictures of the page on the method `latent`, from the public photograph of an astronaut."""

from __future__ import annotations

import numpy as np
from skimage import data

import dpveil
from dpveil.assets.trained_files import default_path
from dpveil.codecs import load
from dpveil.mechanisms.latent import BoxTruncatedLaplace
from dpveil.mechanisms.latent.posterior import likely

VIEW = (slice(0, 300), slice(80, 380))
EPSILONS = (30, 100, 300, 1000)
PURE = (1, 10, 100, 1000)

Tile = tuple[np.ndarray, str]


def rows() -> list[list[Tile]]:
    """Return the photo with its face released at several budgets, and whole-photo portraits at the same."""
    photo = data.astronaut()
    codec = load(default_path("pca"))
    given = {"codec": codec, "clip": 10}
    first, second = [(photo[VIEW], "original")], [(photo[VIEW], "original")]
    for seed, epsilon in enumerate(EPSILONS):
        bits = dpveil.SeededBits(seed)
        face = dpveil.obfuscate(photo, "latent", epsilon=epsilon, bits=bits, **given)
        first.append((face.image[VIEW], f"epsilon {epsilon}\nface"))
        bits = dpveil.SeededBits(seed)
        whole = dpveil.obfuscate(photo, "latent", epsilon=epsilon, regions="whole", bits=bits, **given)
        second.append((resized(whole.image), f"epsilon {epsilon}\nwhole photo"))
    return [first, second]


def networks() -> list[list[Tile]]:
    """Return the photo with its face released by the codec of networks, twice at each budget, and one code
    of nobody in other poses and genders.
    """
    import cv2

    photo, codec = data.astronaut(), load(default_path("gan"))
    first: list[Tile] = [(photo[VIEW], "original")]
    second: list[Tile] = [(photo[VIEW], "original")]
    for epsilon in PURE:
        for seed, row in ((5, first), (6, second)):
            bits = dpveil.SeededBits(seed)
            release = dpveil.obfuscate(photo, "latent", epsilon=epsilon, codec=codec, bits=bits)
            row.append((release.image[VIEW], f"epsilon {epsilon}"))
    space, bits = codec.statistics, dpveil.SeededBits(3)
    mechanism = BoxTruncatedLaplace(epsilon="0.001")
    nobody = likely(np.zeros((1, codec.length)), mechanism, space, bits=bits)
    third: list[Tile] = []
    for given in ({"yaw": -0.5}, {}, {"yaw": 0.5}, {"gender": -1.0}, {"gender": 1.0}):
        shown = cv2.resize(codec.render(nobody, **given)[0], (300, 300), interpolation=cv2.INTER_CUBIC)
        words = ", ".join(f"{name} {value:g}" for name, value in given.items())
        third.append((np.asarray(shown), f"nobody\n{words or 'neutral'}"))
    return [first, second, third]


def resized(image: np.ndarray) -> np.ndarray:
    import cv2

    return np.asarray(cv2.resize(image, (300, 300), interpolation=cv2.INTER_AREA))
