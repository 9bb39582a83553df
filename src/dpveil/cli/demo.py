"""`dpveil demo`: one photograph at several budgets, and one sheet that shows them all."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Annotated, Final

import numpy as np
import typer

from dpveil.catalogue import build
from dpveil.cli import say
from dpveil.cli.sheet import SIDE, Row, Sheet, Tile, draw_sheet, loud, noise_line
from dpveil.core.arrays import UInt8
from dpveil.core.photo import Photo
from dpveil.core.region import Box
from dpveil.errors import InvalidParameter, OutputError, UsageError
from dpveil.io import encode, make_folder, write_together
from dpveil.io.names import show_path
from dpveil.mechanisms.method import Method
from dpveil.mechanisms.pixel import DPPix
from dpveil.release.plan import plan
from dpveil.release.saving import Release
from dpveil.release.words import worth

FACE: Final = Box(168, 56, 112, 144)
"""The astronaut's face."""
WHOLE: Final = Box(0, 0, 512, 512)
BLOCK: Final = 16
BUDGETS: Final = (5, 2, 1)
NEIGHBOURHOODS: Final = (16, 64, None)
SHEET: Final = "sheet.png"
RELEASES: Final = "releases"
"""The folder of the releases alone: the sheet shows the original, too."""
SECTIONS: Final = ("The face", "The whole photo")
WORDS: Final = (
    "Left: only the face, the rest stays as it is. Right: the whole photo. The small one is the original.",
    "Odds between two neighbouring photos change by at most a factor of e to the power of epsilon: strong at"
    " 1, moderate at 2, weak at 5.",
    "attributes shows a synthetic face: what its row names is kept with that budget, and nothing else. Any"
    " two faces are neighbours.",
    "dp-pix shows noisy means of 16 by 16 pixels. With m = 16, neighbours differ in at most 16 pixels: the"
    " face itself is not hidden. Hiding it takes any-image, whose noise (in red) leaves nothing to see.",
)


def make_demo(out: Path, gallery: str) -> tuple[Path, Path, int]:
    """Write the sheet into `out` and all releases into a folder there; return both, and how many they are.

    Replaces the files of an earlier demonstration. `gallery` holds the faces of nobody. Raises `UsageError`
    without scikit-image, which has the photograph, `ModelError` for another gallery, and `OutputError`.
    """
    photo, choices, releases = _photograph(), list(_choices(gallery)), out / RELEASES
    _check_own(out)
    make_folder(releases)
    rows = tuple(_row(photo, title, words, methods, releases) for title, words, methods in choices)
    count = sum(len(row.tiles) for row in rows)
    sheet = Sheet(
        title=f"One photograph, {count} private releases",
        lines=WORDS,
        original=photo.image,
        boxes=(FACE,),
        columns=tuple((title, f"epsilon = {e}") for title in SECTIONS for e in BUDGETS),
        rows=rows,
    )
    write_together([(out / SHEET, encode(draw_sheet(sheet), "png"))], replace=True)
    return out / SHEET, releases, count


def _choices(gallery: str) -> Iterator[tuple[str, tuple[str, str], list[Method]]]:
    """Yield title, words and methods (one for each budget) of every row."""
    try:
        kept, faces = "gender and age kept", _faces(gallery, ("gender", "age"))
    except InvalidParameter:
        raise
    except UsageError:  # no model reads gender and age
        kept, faces = "its tone kept", _faces(gallery, ("tone",), protect="head")
    yield "attributes", ("a synthetic face,", kept), faces
    for m in NEIGHBOURHOODS:
        words = ("neighbours differ", "in any way") if m is None else ("neighbours differ in", f"{m} pixels")
        methods: list[Method] = [DPPix(epsilon=e, block=BLOCK, neighbourhood=m) for e in BUDGETS]
        yield f"dp-pix, {'any' if m is None else f'm = {m}'}", words, methods


def _faces(gallery: str, names: Sequence[str], protect: str = "face") -> list[Method]:
    """Return the methods that keep these attributes, each with an equal share of a budget."""
    shares = [",".join(f"{name}={Fraction(e, len(names))}" for name in names) for e in BUDGETS]
    settings = {"gallery": gallery, "protect": protect}
    return [build("attributes", {"attributes": share, **settings}) for share in shares]


def _photograph() -> Photo:
    try:
        from skimage.data import astronaut
    except ImportError as error:
        raise UsageError(
            "the demonstration shows a photograph that comes with scikit-image, which is not installed",
            hint="pip install 'dpveil[demo]', or run make demo",
        ) from error
    return Photo(astronaut())  # type: ignore[no-untyped-call]


def _check_own(out: Path) -> None:
    """Raise `OutputError` for a sheet that is not of an earlier demonstration, which has releases."""
    if (out / SHEET).exists() and not any((out / RELEASES).glob("*-epsilon-*.png")):
        problem = f"cannot write {show_path(out / SHEET)}: it exists and is not of an earlier demonstration"
        raise OutputError(problem, hint="choose another {out}", arguments={"out": "out"})


def _row(photo: Photo, title: str, words: tuple[str, str], methods: list[Method], out: Path) -> Row:
    """Write the releases of a row, and return the row for the sheet."""
    tiles = []
    for name, box in (("face", FACE), ("whole", WHOLE)):
        for epsilon, method in zip(BUDGETS, methods, strict=True):
            made = plan(photo, method, regions="whole" if box == WHOLE else box)
            release = made.release()
            wide = title.replace(", ", "-").replace(" = ", "-")
            release.save(out / f"{name}-epsilon-{epsilon}-{wide}.png", replace=True)
            tiles.append(_tile(release, method, box))
    return Row(title, words, tuple(tiles))


def _tile(release: Release, method: Method, box: Box) -> Tile:
    stated = release.certificate
    total, grade = stated.composition, str(stated.strength)
    told = grade if total is None else worth(total, grade)
    scale = method.noise_scale(height=box.h, width=box.w, channels=release.image.shape[2])
    noise = noise_line(scale) if scale is not None else "a synthetic face"
    lines = (str(total), noise, told)
    return Tile(_square_around(release.image, box), lines, loud=loud(stated.strength, scale))


def _square_around(image: UInt8[np.ndarray, "h w c"], focus: Box) -> UInt8[np.ndarray, "h w c"]:
    """Return a square of the image around `focus`, at least as large as a tile, within the image."""
    height, width = image.shape[:2]
    side = max(SIDE, focus.w, focus.h)
    left = min(max(0, focus.x + focus.w // 2 - side // 2), max(0, width - side))
    top = min(max(0, focus.y + focus.h // 2 - side // 2), max(0, height - side))
    return image[top : top + side, left : left + side]


def demo_command(
    out: Annotated[Path, typer.Option(metavar="FOLDER", help="Where to write.")] = Path("demo"),
    gallery: Annotated[
        str, typer.Option(metavar="FILE", help="The heads that are shown: a file, or default.")
    ] = "default",
) -> int:
    """Release a public photograph at several budgets, with another face or noisy pixels, side by side.

    \b
    Example:
      dpveil demo --out demo
    """
    sheet, releases, count = make_demo(out, gallery)
    say.answer(f"wrote {count} releases with their certificates to {releases}")
    say.answer(f"check them with: dpveil verify {releases}")
    say.answer(f"look at {sheet}: every tile states its guarantee, its strength and its noise")
    return 0
