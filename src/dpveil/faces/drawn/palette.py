"""The colours of drawn heads."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np

from dpveil.faces.drawn.canvas import Colour
from dpveil.faces.drawn.traits import Person

SKIN: Final[Mapping[str, tuple[str, str]]] = {
    "1": ("fbdcc6", "f6cfb2"),
    "2": ("efc09a", "e6b088"),
    "3": ("d79d70", "c98b5c"),
    "4": ("aa7047", "915b38"),
    "5": ("75482e", "5a3725"),
}
"""Each group of tones with its lighter and its deeper shade."""
HAIR: Final = {
    "black": "2b2523", "dark brown": "4a3228", "brown": "74492e", "auburn": "9a4f2c", "blond": "d9b169"
}  # fmt: skip
GREYS: Final = {"none": 0.0, "some": 0.45, "all": 0.85, "white": 1.0}
GREY: Final = {"none": "9a9694", "some": "9a9694", "all": "a8a5a3", "white": "e2dfdb"}
IRIS: Final = {
    "black": "2c201b", "brown": "5f3c23", "hazel": "8a6a34", "green": "5d7f4e", "blue": "4d7ea8"
}  # fmt: skip
CLOTHES: Final = ("3f5f8a", "8a4b5a", "4f7a6b", "d08c5b", "5c5a7d", "394150", "b9545a", "7f9bb3")
BACKDROPS: Final = ("cfe0ee", "f3d9c7", "d5e6d5", "e6d8ea", "f4e6bf", "d7dbe0", "f2cfd0", "cfe5e3")
"""Behind a portrait: one colour for a whole picture."""
FRAMES: Final = {"round": "6b4a34", "square": "26262b", "thin": "8d8f96", "none": "26262b"}
SCARVES: Final = ("5a6fa8", "a8576f", "4f8478", "7a5c94", "c98a4b", "3d4658", "b5666a", "8aa0b8")
SHADE: Final = np.array([0.885, 0.80, 0.765])
"""What shade leaves of the skin's levels."""
DARK: Final = np.array([30.0, 20, 22])
LIGHT: Final = np.array([255.0, 250, 244])
ROUGE: Final = np.array([196.0, 74, 82])
BLUSH: Final = np.array([226.0, 96, 88])
FIXED: Final = {
    "white": np.array([250.0, 247, 243]),
    "teeth": np.array([252.0, 250, 247]),
    "pupil": np.array([24.0, 18, 18]),
    "lash": np.array([38.0, 26, 24]),
    "mouth": np.array([110.0, 34, 38]),
    "tongue": np.array([205.0, 96, 98]),
    "metal": np.array([222.0, 184, 96]),
}


def rgb(text: str) -> np.ndarray:
    """Return levels of a colour in hexadecimal digits."""
    return np.array([int(text[n : n + 2], 16) for n in (0, 2, 4)], np.float64)


def mixed(one: np.ndarray, other: np.ndarray, share: float) -> np.ndarray:
    """Return a colour between two, `share` of the other."""
    between: np.ndarray = one + share * (other - one)
    return between


def colours(person: Person, cloth: Colour | None = None) -> dict[str, Colour]:
    """Return the colour of every label for a person; `cloth` is the garment's, if it is known."""
    skin = rgb(SKIN[person.tone][person.shade == "deep"])
    worn = rgb(CLOTHES[int(person.backdrop)]) if cloth is None else np.array(cloth, np.float64)
    found = {
        **FIXED,
        **_of_skin(skin, person),
        **_of_hair(skin, person),
        "iris": rgb(IRIS[person.eyes]),
        "frame": rgb(FRAMES[person.glasses]),
        "cloth": worn,
        "cloth-dark": mixed(worn, DARK, 0.22),
        "cloth-light": mixed(worn, LIGHT, 0.20),
    }
    return {name: _whole(levels) for name, levels in found.items()}


def _of_skin(skin: np.ndarray, person: Person) -> dict[str, np.ndarray]:
    lip = mixed(skin * [0.93, 0.66, 0.64], ROUGE, 0.42 if person.gender == "female" else 0.12)
    return {
        "skin": skin,
        "shade": skin * SHADE,
        "crease": skin * SHADE**1.45,
        "deep": skin * SHADE**2.1,
        "blush": mixed(skin, BLUSH, 0.17),
        "glass": mixed(skin, LIGHT, 0.14),
        "shine": mixed(skin, LIGHT, 0.30),
        "lip": lip,
        "lip-dark": lip * [0.80, 0.72, 0.74],
    }


def _of_hair(skin: np.ndarray, person: Person) -> dict[str, np.ndarray]:
    own, grey, share = rgb(HAIR[person.colour]), rgb(GREY[person.grey]), GREYS[person.grey]
    grown = mixed(own, grey, share)
    shown = rgb(SCARVES[int(person.backdrop)]) if person.hair == "scarf" else grown
    return {
        "hair": shown,
        "hair-light": mixed(shown, LIGHT, 0.13),
        "hair-dark": mixed(shown, DARK, 0.26),
        "beard": grown,
        "beard-light": mixed(grown, LIGHT, 0.10),
        "beard-dark": mixed(grown, DARK, 0.22),
        "stubble": mixed(skin * SHADE**0.4, mixed(grown, DARK, 0.2), 0.27),
        "brow": mixed(mixed(own, grey, 0.8 * share), DARK, 0.22),
    }


def _whole(levels: np.ndarray) -> Colour:
    r, g, b = np.clip(np.rint(levels), 0, 255).astype(int).tolist()
    return r, g, b


def backdrop(person: Person) -> Colour:
    """Return the colour behind a portrait."""
    return _whole(rgb(BACKDROPS[int(person.backdrop)]))
