"""The pages on faces of nobody: sheets of galleries, releases of a public photograph, and measurements."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import reproduced
from PIL import Image
from skimage import data

import dpveil
from dpveil.assets.trained_files import default_path
from dpveil.faces.drawn_face import HeadFace, portrait
from dpveil.faces.face_gallery import FaceGallery
from dpveil.faces.head_gallery import default_heads

VIEW = (slice(10, 230), slice(110, 330))
SIDE, DRAWS = 128, 4
CHOICES = (
    ("none", "nothing kept\nepsilon 0"),
    ("gender=4,age=4", "gender 4, age 4\nepsilon 8"),
    ("gender=2,age=1.5,smile=1.5,pose=1.5,glasses=1.5", "five attributes\nepsilon 8"),
)

Tile = tuple[np.ndarray, str]


def heads_sheet() -> bytes:
    gallery = default_heads()
    every = [portrait(HeadFace(gallery, np.array([n % len(gallery)]), n), SIDE, SIDE) for n in range(60)]
    return _grid(np.array(every), 5, 12)


def gallery_sheet() -> bytes:
    """Return 84 faces of the gallery of dpveil-faces, in its order, as PNG."""
    return _grid(FaceGallery.load(default_path("gallery")).faces[:84], 6, 14)


def heads() -> list[list[Tile]]:
    """Return the photograph, and four releases with inner faces and with whole heads, of both galleries."""
    return [
        _row("attributes", f"{gallery}\nprotect {protect}", 77, protect=protect, gallery=gallery)
        for protect in ("face", "head")
        for gallery in ("research", "heads")
    ]


def gallery() -> list[list[Tile]]:
    return [
        _row("gallery", f"gallery\nepsilon {epsilon}", 10 * epsilon, epsilon=epsilon) for epsilon in (2, 8)
    ]


def attributes() -> list[list[Tile]]:
    return [
        _row("attributes", words, 10 * row, attributes=choice) for row, (choice, words) in enumerate(CHOICES)
    ]


def _grid(faces: np.ndarray, rows: int, columns: int) -> bytes:
    grid = faces.reshape(rows, columns, SIDE, SIDE, 3).transpose(0, 2, 1, 3, 4)
    buffer = io.BytesIO()
    Image.fromarray(grid.reshape(rows * SIDE, columns * SIDE, 3)).save(buffer, "PNG")
    return buffer.getvalue()


def _row(method: str, words: str, seed: int, **settings: Any) -> list[Tile]:
    photo = dpveil.Photo(data.astronaut())
    drawn = (
        dpveil.obfuscate(photo, method, bits=dpveil.SeededBits(seed + draw), **settings)
        for draw in range(DRAWS)
    )
    return [(photo.image[VIEW], "original\nnot protected"), *((one.image[VIEW], words) for one in drawn)]


def attribute_results() -> str:
    """Return re-identification and classifier agreement at every setting, in per cent."""
    found = reproduced.rows("attributes", "results")
    cells = {(row["data"], row["setting"], row["measure"]): row for row in found}
    measures = [("LFW", "strongest"), ("LFW", "told the attributes"), ("LFW", "strongest minus told")]
    measures += [("LFW", "gender agrees"), ("UTKFace", "gender agrees")]
    heads = "kept, with ε | strongest attacker | who is told them | difference | gender agrees, LFW | UTK"
    lines = []
    for setting in _settings(found):
        name = "*the photos themselves*" if setting == "clean" else f"`{setting}`"
        row = [cells.get((of, setting, measure)) for of, measure in measures]
        if setting == "clean":
            row[0] = cells["LFW", "clean", "embedding"]
        lines.append([name, *map(reproduced.percent, row)])
    return _table(heads, lines)


def gallery_results() -> str:
    """Return re-identification, and agreement of the released face's attributes, in per cent."""
    found = reproduced.rows("gallery", "results")
    cells = {(row["setting"], row["measure"]): row for row in found}
    measures = ("strongest", "embedding", "gender agrees", "perceived-race agrees", "age agrees")
    heads = "setting | strongest attacker | embedding alone | gender | race label | age band"
    lines = []
    for setting in _settings(found):
        name = "*the photos themselves*" if setting == "clean" else setting.replace("epsilon", "ε")
        row = [cells.get((setting, measure)) for measure in measures]
        row[0] = cells["clean", "embedding"] if setting == "clean" else row[0]
        lines.append([name, *map(reproduced.percent, row)])
    return _table(heads, lines)


def _settings(found: list[reproduced.Row]) -> list[str]:
    return list(dict.fromkeys(["clean", *(row["setting"] for row in found if row["measure"] == "strongest")]))


def _table(heads: str, lines: list[list[str]]) -> str:
    rule = "|".join(["---"] * len(heads.split("|")))
    return "\n".join([f"| {heads} |", f"|{rule}|", *(f"| {' | '.join(line)} |" for line in lines)])
