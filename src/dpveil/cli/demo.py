"""`dpveil demo`: one photograph at several budgets, and one sheet that shows them all."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Annotated, Final

import typer

from dpveil.catalogue import build
from dpveil.cli import say
from dpveil.cli.compare import Compared, Line, bounding_view, sheet_row
from dpveil.cli.sheet import PICTURE_SIDE, Sheet, draw_sheet
from dpveil.core.photo import Photo
from dpveil.core.region import Box
from dpveil.errors import InvalidParameter, OutputError, UsageError
from dpveil.io.names import show_path
from dpveil.io.writing import encode, make_folder, write_together
from dpveil.mechanisms.method import Method
from dpveil.mechanisms.pixel import DPPix
from dpveil.regions.detectors.centerface import network_path
from dpveil.release.plan import plan

FACE: Final = Box(168, 56, 112, 144)  # the astronaut's face
BUDGETS: Final = (5, 2, 1)
NEIGHBOURHOODS: Final = (16, 64, None)
SHEET: Final = "sheet.png"
RELEASES: Final = "releases"  # the folder of the releases alone: the sheet shows the original, too
WORDS: Final = (
    "Only the face is replaced, the rest stays as it is. The small one is the original.",
    "Odds between two neighbouring photos change by at most a factor of e to the power of epsilon: strong at"
    " 1, moderate at 2, weak at 5.",
    "attributes shows a synthetic face: what its row names is kept with that budget, and nothing else. Any"
    " two faces are neighbours.",
    "dp-pix shows noisy means of 16 by 16 pixels. With m = 16, neighbours differ in at most 16 pixels: the"
    " face itself is not hidden. Hiding it takes any-image, whose noise (in red) leaves nothing to see.",
)


def make_demo(out: Path, gallery: str) -> tuple[Path, Path, int]:
    """Write the sheet into `out` and all releases into a folder there; return both, and how many they are.

    Replaces the files of an earlier demonstration. `gallery` holds the faces of nobody.
    """
    try:
        from skimage.data import astronaut
    except ImportError as error:
        raise UsageError(
            "the demonstration shows a photograph that comes with scikit-image, which is not installed",
            hint="pip install 'dpveil[demo]', or run make demo",
        ) from error
    photo, releases = Photo(astronaut()), out / RELEASES  # type: ignore[no-untyped-call]
    lines = [*_lines(gallery)]
    if (out / SHEET).exists() and not any(releases.glob("*-epsilon-*.png")):
        problem = f"cannot write {show_path(out / SHEET)}: it exists and is not of an earlier demonstration"
        raise OutputError(problem, hint="choose another {out}", arguments={"out": "out"})
    make_folder(releases)
    rows = []
    for line in lines:
        made = []
        for epsilon, method in zip(BUDGETS, line.methods, strict=True):
            # a face that is found is at its place in the head, which a box alone does not tell
            place = "faces" if line.name == "attributes" and network_path() is not None else FACE
            planned = plan(photo, method, regions=place)
            release = planned.release()
            m = "" if line.name != "dp-pix" else f"-m-{line.neighbourhood or 'any'}"
            release.save(releases / f"{line.name}{m}-epsilon-{epsilon}.png", replace=True)
            made.append(
                Compared.of(planned, release, bounding_view([FACE], photo), (PICTURE_SIDE, PICTURE_SIDE))
            )
        rows.append(sheet_row(line, made))
    count = sum(len(row.tiles) for row in rows)
    sheet = Sheet(
        title=f"One photograph, {count} private releases",
        lines=WORDS,
        original=photo.image,
        boxes=(FACE,),
        columns=tuple(("The face", f"epsilon = {e}") for e in BUDGETS),
        rows=tuple(rows),
    )
    write_together([(out / SHEET, encode(draw_sheet(sheet), "png"))], replace=True)
    return out / SHEET, releases, count


def _lines(gallery: str) -> Iterator[Line]:
    try:
        yield Line("attributes", None, _faces(gallery, ("gender", "age")))
    except InvalidParameter:
        raise
    except UsageError:  # no model reads gender and age
        yield Line("attributes", None, _faces(gallery, ("tone",), protect="head"))
    for m in NEIGHBOURHOODS:
        yield Line("dp-pix", m, tuple(DPPix(epsilon=e, block=16, neighbourhood=m) for e in BUDGETS))


def _faces(gallery: str, names: Sequence[str], protect: str = "face") -> tuple[Method, ...]:
    """Return the methods that keep these attributes, each with an equal share of a budget."""
    shares = [",".join(f"{name}={Fraction(e, len(names))}" for name in names) for e in BUDGETS]
    settings = {"gallery": gallery, "protect": protect}
    return tuple(build("attributes", {"attributes": share, **settings}) for share in shares)


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
