"""The page on the gallery: a part of it, releases of a public photograph, and measurements."""

from __future__ import annotations

import io

import numpy as np
import reproduced
from PIL import Image
from skimage import data

import dpveil
from dpveil.assets.store import default_path
from dpveil.faces.face_gallery import FaceGallery
from dpveil.noise.bits import SeededBits

VIEW = (slice(10, 230), slice(110, 330))
EPSILONS = (2, 8)
DRAWS = 4
ROWS, COLUMNS = 6, 14

Tile = tuple[np.ndarray, str]


def contact_sheet() -> bytes:
    """Return 84 faces of the default gallery, in its order, as PNG."""
    faces = FaceGallery.load(default_path("gallery")).faces[: ROWS * COLUMNS]
    grid = faces.reshape(ROWS, COLUMNS, 128, 128, 3).transpose(0, 2, 1, 3, 4)
    buffer = io.BytesIO()
    Image.fromarray(grid.reshape(ROWS * 128, COLUMNS * 128, 3)).save(buffer, "PNG")
    return buffer.getvalue()


def rows() -> list[list[Tile]]:
    """Return the photograph and four releases, at two budgets."""
    photo = dpveil.Photo(data.astronaut())
    return [
        [
            (photo.image[VIEW], "original\nnot protected"),
            *(
                (_released(photo, epsilon, 10 * epsilon + draw), f"gallery\nepsilon {epsilon}")
                for draw in range(DRAWS)
            ),
        ]
        for epsilon in EPSILONS
    ]


def _released(photo: dpveil.Photo, epsilon: int, seed: int) -> np.ndarray:
    return dpveil.obfuscate(photo, "gallery", epsilon=epsilon, bits=SeededBits(seed)).image[VIEW]


def results() -> str:
    """Return re-identification at every setting, and agreement of the released face's attributes, in per
    cent.
    """
    found = reproduced.rows("gallery", "results")
    cells = {(row["setting"], row["measure"]): row for row in found}
    measures = (
        "strongest",
        "embedding",
        "gender agrees",
        "perceived-race agrees",
        "age agrees",
    )
    lines = [
        "| setting | strongest attacker | embedding alone | gender | race label | age band |",
        "|---|---|---|---|---|---|",
    ]
    settings = list(dict.fromkeys(row["setting"] for row in found if row["measure"] == "strongest"))
    for setting in ("clean", *settings):
        name = "*the photos themselves*" if setting == "clean" else setting.replace("epsilon", "ε")
        row = [cells.get((setting, measure)) for measure in measures]
        row[0] = cells["clean", "embedding"] if setting == "clean" else row[0]
        lines.append("| " + " | ".join([name, *(reproduced.percent(one) for one in row)]) + " |")
    return "\n".join(lines)
