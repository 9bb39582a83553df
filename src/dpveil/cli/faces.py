"""`dpveil faces`: finds and numbers the faces in a photo."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from dpveil.cli import exits, say
from dpveil.cli.clips import is_video_input, plan_document, tell_plan, tell_private
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
from dpveil.cli.progress import frames_bar
from dpveil.cli.review import Shown, check_apart_from, draw_preview
from dpveil.core.region import Region
from dpveil.errors import DPVeilError
from dpveil.io.names import show_path
from dpveil.io.reading import read
from dpveil.io.writing import encode, write_together
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


@partial(takes_regions, faces_only=True)
@partial(takes_method, free=True)
def faces_command(
    context: typer.Context,
    photo: Annotated[Path, typer.Argument(metavar="PHOTO", help="A photo or clip.")],
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
    """Find the faces of a photo or clip, and number them for --only and --except of dpveil obfuscate.

    \b
    Examples:
      dpveil faces group.jpg --preview numbered.png
      dpveil faces group.jpg --method dp-pix --preview planned.png
      dpveil faces clip.mp4 --preview people.png

    The boxes are what would be replaced. Faces that --only or --except leaves are told apart. No budget is
    needed. Scores are between 0 and 1. A face without a box would stay visible: lower --threshold or
    --smallest, or give its box yourself. Exit code 1: no face was found.
    """
    finder = regions.faces()
    finder.prepare()
    check_apart_from([photo], {"--preview": preview}, replace=force)
    if is_video_input(photo):
        return _tell_tracks(photo, finder, method, preview, force=force, json=json)
    picture = read(photo, max_pixels=max_pixels)
    look = _Look.at(picture, finder, method, named=not is_default(context))
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
    say.note(not_searched(finder.kind, look.smallest))
    if look.otherwise:
        say.note(OTHERWISE)
    if not look.found:
        say.note("no face was found: lower --threshold or --smallest, and check yourself")
    for place in look.doubtful:
        say.note(f"may be a face, and is not hidden: {_place(place)}")
    return exits.DONE if look.found else exits.INCOMPLETE


def _tell_tracks(
    clip: Path, finder: Faces, method: Method, preview: Path | None, *, force: bool, json: bool
) -> int:
    # The numbers are those of tracks, each one person from where they are found to where they are lost.
    from dpveil.video.make_plan import analyze
    from dpveil.video.reading import open_clip
    from dpveil.video.sheets import track_sheet, write_sheet

    with frames_bar(quiet=json) as progress:
        made = analyze(clip, method, regions=[finder], progress=progress)
        if preview is not None:
            write_sheet(preview, track_sheet(made, open_clip(clip)), replace=force)
    if json:
        say.document(plan_document(made, None, preview))
    tell_plan(made, say.note if json else say.answer)
    if preview is not None:
        tell_private(preview)
    return exits.DONE


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
    def at(cls, photo: Photo, finder: Faces, method: Method, *, named: bool) -> _Look:
        """Return what a method would replace, with its numbers; the detected boxes where it cannot replace
        them, unless it was `named` or faces were chosen, which raises.
        """
        boxes = finder.detect(photo, method.order)
        found = [Shown(n, face.box, face.score) for n, face in enumerate(boxes, 1)]
        kept: list[Shown] = []
        placed: Sequence[Region] = [Region(face.box, score=face.score) for face in boxes]
        try:
            planned = plan(photo, method, regions=finder).regions if found else ()
        except DPVeilError:
            if named or finder.only or finder.exclude or finder.likeness:
                raise
        else:
            placed, numbers = planned, {region.origin.number for region in planned}
            stay = {one.origin.number: one.box for region in planned for one in region.kept}
            left = [face for face in found if face.number not in numbers]
            kept = [replace(face, box=stay.get(face.number, face.box), kept=True) for face in left]
            found = [Shown(r.origin.number or 1, r.box, r.score, r.mask) for r in planned]
        places = [Shown(None, r.box, r.score) for r in doubtful_places(photo, [finder], placed)]
        other = not named and finder.detect(photo) != boxes
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
