"""`dpveil faces`: finds and numbers the faces in a photo."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from dpveil.cli import exits, say
from dpveil.cli.options import (
    NO_REGIONS,
    AsJson,
    Chosen,
    Force,
    MaxPixels,
    is_default,
    takes_method,
    takes_regions,
)
from dpveil.cli.review import Shown, check_apart_from, draw_preview
from dpveil.core.region import Region
from dpveil.errors import DPVeilError
from dpveil.io import encode, read, write_together
from dpveil.io.names import show_path
from dpveil.release.plan import doubtful_places, plan
from dpveil.release.words import not_searched

if TYPE_CHECKING:
    from dpveil.core.photo import Photo
    from dpveil.mechanisms.method import Method
    from dpveil.regions import Faces


OTHERWISE: Final = (
    "these are the numbers of methods that replace heads; a method of pixels, such as dp-pix, numbers these"
    " faces in another order: name it with --method to see its numbers"
)
BOXES: Final = (
    "the boxes are those that were detected; to see what dpveil obfuscate replaces by default, add"
    " --method attributes"
)


@partial(takes_regions, faces_only=True)
@partial(takes_method, free=True)
def faces_command(
    context: typer.Context,
    photo: Annotated[Path, typer.Argument(metavar="PHOTO", help="A photo.")],
    method: Method,
    preview: Annotated[
        Path | None,
        typer.Option(metavar="OUT.png", help="Draw the numbered boxes into a copy. Keep it private."),
    ] = None,
    regions: Chosen = NO_REGIONS,
    force: Force = False,
    json: AsJson = False,
    max_pixels: MaxPixels = 100_000_000,
) -> int:
    """Find the faces of a photo, and number them for --only and --except of dpveil obfuscate.

    \b
    Examples:
      dpveil faces group.jpg --preview numbered.png
      dpveil faces group.jpg --method attributes --preview planned.png

    With --method, or one of its options, the boxes are what would be replaced; without, they are those that
    were detected, with their margin. Faces that --only or --except leaves are told apart. No budget is
    needed. Scores are between 0 and 1. A face without a box would stay visible: lower --threshold or
    --smallest, or give its box yourself. Exit code 1: no face was found.
    """
    finder = regions.faces()
    finder.prepare()
    check_apart_from([photo], {"--preview": preview}, replace=force)
    detected = is_default(context)  # no method is named of which regions could be shown
    picture = read(photo, max_pixels=max_pixels)
    look = _Look.at(picture, finder, method, detected=detected)
    if preview is not None:
        drawn = draw_preview(picture, [*look.doubtful, *look.kept, *look.found])
        write_together([(preview, encode(drawn, "png"))], replace=force)
        say.note(f"wrote {show_path(preview)}: it shows the original photo, so keep it as private")
    if json:
        say.document(look.to_json())
    for face in sorted((*look.found, *look.kept), key=lambda one: one.number or 0):
        line = f"face {face.number}: {_place(face)}{', stays as it is' * face.kept}"
        (say.note if json else say.answer)(line)
    for text in finder.notes:
        say.note(f"warning: {text}")
    if detected and preview is not None and look.found:
        say.note(BOXES)
    say.note(not_searched(finder.kind, look.smallest))
    if look.otherwise:
        say.note(OTHERWISE)
    if not look.found:
        say.note("no face was found: lower --threshold or --smallest, and check yourself")
    for place in look.doubtful:
        say.note(f"may be a face, and is not hidden: {_place(place)}")
    return exits.DONE if look.found else exits.INCOMPLETE


@dataclass(frozen=True)
class _Look:
    """What is found in one photo: its faces, those that are chosen to stay, and the places that may be faces
    and stay in the clear.

    `smallest` is the height in pixels below which no face was looked for. `otherwise` says that methods of
    pixels number the faces in another order.
    """

    found: list[Shown]
    doubtful: list[Shown]
    smallest: int
    otherwise: bool
    kept: Sequence[Shown] = ()

    @classmethod
    def at(cls, photo: Photo, finder: Faces, method: Method, *, detected: bool) -> _Look:
        """Return what is found: the regions that a method replaces, or the boxes that the detector gave.

        The faces have the method's numbers.
        """
        boxes = finder.detect(photo, method.order)
        found = [Shown(n, face.box, face.score) for n, face in enumerate(boxes, 1)]
        kept: list[Shown] = []
        chosen = not detected or finder.only or finder.exclude or finder.likeness
        try:
            placed = plan(photo, method, regions=finder).regions if found else ()
        except DPVeilError:
            if chosen:
                raise
            placed = tuple(Region(face.box, score=face.score) for face in boxes)
        if found and chosen:
            numbers = {region.origin.number for region in placed}
            stay = {one.origin.number: one.box for region in placed for one in region.kept}
            kept = [replace(face, kept=True) for face in found if face.number not in numbers]
            found = [face for face in found if face.number in numbers]
            if not detected:
                kept = [replace(face, box=stay.get(face.number, face.box)) for face in kept]
                found = [Shown(r.origin.number or 1, r.box, r.score, r.mask) for r in placed]
        places = [Shown(None, r.box, r.score) for r in doubtful_places(photo, [finder], placed)]
        other = detected and finder.detect(photo) != boxes
        return cls(found, places, finder.smallest_in(photo), other, kept)

    def to_json(self) -> dict[str, Any]:
        faces, kept = ([{"number": f.number, **_json(f)} for f in some] for some in (self.found, self.kept))
        more = {"kept": kept} if kept else {}
        return {"faces": faces, **more, "smallest": self.smallest, "doubtful": [*map(_json, self.doubtful)]}


def _place(face: Shown) -> str:
    box = face.box
    return f"{box.w}×{box.h} pixels at {box.x},{box.y}, score {face.score or 0:.2f}"


def _json(face: Shown) -> dict[str, Any]:
    return {"box": [face.box.x, face.box.y, face.box.w, face.box.h], "score": face.score}
