"""The page on attributes: its picture of a public photograph, and the table of measurements."""

from __future__ import annotations

import numpy as np
import reproduced
from skimage import data

import dpveil
from dpveil.noise.bits import SeededBits

VIEW = (slice(10, 230), slice(110, 330))
CHOICES = (
    ("none", "nothing kept\nepsilon 0"),
    ("gender=4,age=4", "gender 4, age 4\nepsilon 8"),
    ("gender=2,age=1.5,smile=1.5,pose=1.5,glasses=1.5", "five attributes\nepsilon 8"),
)
DRAWS = 4

Tile = tuple[np.ndarray, str]


def rows() -> list[list[Tile]]:
    """Return the photograph and four releases, for every choice."""
    photo = dpveil.Photo(data.astronaut())
    return [
        [
            (photo.image[VIEW], "original\nnot protected"),
            *((_released(photo, choice, 10 * row + draw), words) for draw in range(DRAWS)),
        ]
        for row, (choice, words) in enumerate(CHOICES)
    ]


def _released(photo: dpveil.Photo, choice: str, seed: int) -> np.ndarray:
    release = dpveil.obfuscate(photo, "attributes", attributes=choice, bits=SeededBits(seed))
    return release.image[VIEW]


def results() -> str:
    """Return re-identification and classifier agreement at every setting, in per cent."""
    found = reproduced.rows("attributes", "results")
    cells = {(row["data"], row["setting"], row["measure"]): row for row in found}
    lines = [
        "| kept, with ε | strongest attacker | who is told them | difference | gender agrees, LFW | UTK |",
        "|---|---|---|---|---|---|",
    ]
    measures = [("LFW", "strongest"), ("LFW", "told the attributes"), ("LFW", "strongest minus told")]
    measures += [("LFW", "gender agrees"), ("UTKFace", "gender agrees")]
    settings = list(dict.fromkeys(row["setting"] for row in found if row["measure"] == "strongest"))
    for setting in ("clean", *settings):
        name = "*the photos themselves*" if setting == "clean" else f"`{setting}`"
        row = [cells.get((of, setting, measure)) for of, measure in measures]
        if setting == "clean":
            row[0] = cells["LFW", "clean", "embedding"]
        lines.append("| " + " | ".join([name, *(reproduced.percent(one) for one in row)]) + " |")
    return "\n".join(lines)
