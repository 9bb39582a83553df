"""`dpveil faces`: finds and numbers the faces in a photo."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from dpveil.cli import exits, say
from dpveil.cli.options import AsJson, MaxPixels, is_default, takes_method
from dpveil.cli.region_options import NOTHING, Chosen, takes_regions

if TYPE_CHECKING:
    from dpveil.cli.preview import Shown
    from dpveil.mechanisms.method import Method


OTHERWISE: Final = (
    "these are the numbers of methods that replace heads; a method of pixels, such as dp-pix, numbers these"
    " faces in another order: name it with --method to see its numbers"
)

BOXES: Final = (
    "the boxes are those that were detected; to see what dpveil obfuscate replaces by default, add"
    " --method attributes"
)


@partial(takes_regions, search_only=True)
@takes_method
def faces_command(
    context: typer.Context,
    photo: Annotated[Path, typer.Argument(metavar="PHOTO", help="One photo.")],
    method: Method,
    preview: Annotated[
        Path | None,
        typer.Option(metavar="OUT.png", help="Draw the numbered boxes into a copy. Keep it private."),
    ] = None,
    regions: Chosen = NOTHING,
    force: Annotated[bool, typer.Option("--force", help="Replace an existing preview.")] = False,
    json: AsJson = False,
    max_pixels: MaxPixels = 100_000_000,
) -> int:
    """Find the faces of a photo, and number them for --only and --except of dpveil obfuscate.

    \b
    Examples:
      dpveil faces group.jpg --preview numbered.png
      dpveil faces group.jpg --method attributes --preview planned.png

    With --method or one of its options, the boxes are what it would replace; without, the detected boxes with
    their margin.
    Scores are between 0 and 1. A face without a box would stay in the clear: lower --threshold or --smallest,
    or give its box yourself. Exit code 1: no face was found.
    """
    from dpveil.cli.preview import Shown, check_name, draw_preview
    from dpveil.errors import OutputError
    from dpveil.io import encode, read, write_together
    from dpveil.release.plan import plan
    from dpveil.release.words import not_searched

    finder = regions.faces()
    finder.prepare()
    if preview is not None:
        check_name(preview)
        if preview.exists() and photo.exists() and preview.samefile(photo):
            raise OutputError(f"{preview} is the photo itself", hint="give the preview another name")
    picture = read(photo, max_pixels=max_pixels)
    alone, detected = is_default(context), finder.detect(picture, method.order)
    found = [Shown(n, face.box, face.score) for n, face in enumerate(detected, 1)]
    if found and not alone:
        planned = plan(picture, method, regions=finder)
        found = [Shown(r.origin.number or 1, r.box, r.score, r.mask) for r in planned.regions]
    if preview is not None:
        write_together([(preview, encode(draw_preview(picture, found), "png"))], replace=force)
        say.note(f"wrote {preview}: it shows the original photo, so keep it as private")
    if json:
        entries = [{"number": f.number, "box": _box(f), "score": f.score} for f in found]
        say.document({"faces": entries, "smallest": finder.smallest_in(picture)})
    for face in found:
        box = face.box
        line = f"face {face.number}: {box.w}×{box.h} pixels at {box.x},{box.y}, score {face.score or 0:.2f}"
        (say.note if json else say.answer)(line)
    for text in finder.notes:
        say.note(f"warning: {text}")
    if alone and found and preview is not None:
        say.note(BOXES)
    say.note(not_searched(finder.kind, finder.smallest_in(picture)))
    if alone and finder.detect(picture) != detected:
        say.note(OTHERWISE)
    if not found:
        say.note(f"{photo}: no face was found: lower --threshold or --smallest, and check yourself")
    return exits.DONE if found else exits.INCOMPLETE


def _box(face: Shown) -> list[int]:
    """Return a face's left, top, width and height in pixels."""
    return [face.box.x, face.box.y, face.box.w, face.box.h]
