"""The demonstration's releases: one photograph, two regions, three budgets, three neighbourhoods."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import numpy as np
from jaxtyping import UInt8

from dpveil.cli.sheet import SIDE, Row, Section, Sheet, Tile, draw_sheet, loud, noise_line
from dpveil.core.photo import Photo
from dpveil.core.region import Box
from dpveil.errors import UsageError
from dpveil.io import encode, make_folder, write_together
from dpveil.mechanisms.pixel import DPPix
from dpveil.release.pipeline import obfuscate
from dpveil.release.saving import Release

FACE: Final = Box(168, 56, 112, 144)
WHOLE: Final = Box(0, 0, 512, 512)
BLOCK: Final = 16
BUDGETS: Final = (20, 5, 1)
NEIGHBOURHOODS: Final = (16, 256, None)
SHEET: Final = "sheet.png"
SECTIONS: Final = ("The face box, 112 by 144 pixels", "The whole photo, 512 by 512 pixels")
WORDS: Final = (
    "dp-pix, blocks of 16 by 16 pixels. Left: only the face box. Right: the whole photo. The small one is"
    " the original.",
    "These promises are pure: an observer who sees a release can tell two neighbouring photos apart with odds"
    " of at most e to the power of epsilon.",
    "Neighbours differ in at most m pixels, or, under any-image, in any way. What looks useful promises"
    " little: a face has thousands of pixels.",
    "Red: a noise scale above 128 grey levels, where 255 is white. That is what hiding a whole face,"
    " or a whole photo, takes.",
)


def make_gallery(out: Path) -> tuple[Path, int]:
    """Write all releases and the sheet into `out`; return the sheet's path and the number of releases.

    Replaces what an earlier demonstration wrote. Raises `UsageError` without scikit-image, whose photograph
    it shows, and `OutputError`.
    """
    photo = _photograph()
    make_folder(out)
    rows = tuple(_row(photo, m, out) for m in NEIGHBOURHOODS)
    sheet = Sheet(
        title="One photograph, eighteen private releases",
        lines=WORDS,
        original=photo.image,
        boxes=(FACE,),
        sections=tuple(Section(title, tuple(f"epsilon = {e}" for e in BUDGETS)) for title in SECTIONS),
        rows=rows,
    )
    write_together([(out / SHEET, encode(draw_sheet(sheet), "png"))], replace=True)
    return out / SHEET, sum(len(row.tiles) for row in rows)


def _photograph() -> Photo:
    try:
        from skimage.data import astronaut
    except ImportError as error:
        raise UsageError(
            "the demonstration shows a photograph that comes with scikit-image, which is not installed",
            hint="pip install 'dpveil[demo]', or run make demo",
        ) from error
    return Photo(astronaut())  # type: ignore[no-untyped-call]


def _row(photo: Photo, m: int | None, out: Path) -> Row:
    """Write the releases with neighbourhood `m`, and return what the sheet shows of them."""
    tiles = []
    for name, box in (("face", FACE), ("whole", WHOLE)):
        for epsilon in BUDGETS:
            method = DPPix(epsilon=epsilon, block=BLOCK, neighbourhood=m)
            release = obfuscate(photo, method, regions="whole" if box == WHOLE else box)
            wide = "any-image" if m is None else f"m-{m}"
            release.save(out / f"{name}-epsilon-{epsilon}-{wide}.png", replace=True)
            tiles.append(_tile(release, method, box))
    if m is None:
        return Row("any-image", ("neighbours differ", "in any way"), tuple(tiles))
    return Row(f"m = {m}", ("neighbours differ in", f"at most {m} pixels"), tuple(tiles))


def _tile(release: Release, method: DPPix, box: Box) -> Tile:
    scale = float(method.noise_scale(height=box.h, width=box.w, channels=release.image.shape[2]))
    lines = (str(release.certificate.guarantees[0]), noise_line(scale))
    return Tile(_shown(release.image, box), lines, loud=loud(release.certificate.strength, scale))


def _shown(image: UInt8[np.ndarray, "h w c"], focus: Box) -> UInt8[np.ndarray, "h w c"]:
    """Return the square around the focus, as large as a tile, or all of a photo whose focus is larger."""
    height, width = image.shape[:2]
    side = max(SIDE, focus.w, focus.h)
    left = min(max(0, focus.x + focus.w // 2 - side // 2), max(0, width - side))
    top = min(max(0, focus.y + focus.h // 2 - side // 2), max(0, height - side))
    return image[top : top + side, left : left + side]
