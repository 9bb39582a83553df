"""`dpveil faces`: finds and numbers the faces in photos."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from dpveil.cli import exits, say
from dpveil.cli.options import (
    NOTHING,
    AsJson,
    Chosen,
    Force,
    MaxPixels,
    is_default,
    takes_method,
    takes_regions,
)
from dpveil.cli.review import Shown, check_apart_from, draw_preview
from dpveil.core.guarantee import count_noun
from dpveil.core.region import Region
from dpveil.errors import DPVeilError, PhotoError, RegionError, UsageError
from dpveil.io import encode, read, write_together
from dpveil.io.folders import is_folder
from dpveil.io.names import show_path
from dpveil.release.plan import doubtful_places
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
    photos: Annotated[list[Path], typer.Argument(metavar="PHOTO", help="Photos, and folders of them.")],
    method: Method,
    preview: Annotated[
        Path | None,
        typer.Option(metavar="OUT.png", help="Draw the numbered boxes into a copy. Keep it private."),
    ] = None,
    regions: Chosen = NOTHING,
    force: Force = False,
    json: AsJson = False,
    max_pixels: MaxPixels = 100_000_000,
) -> int:
    """Find the faces of photos, and number them for --only and --except of dpveil obfuscate.

    \b
    Examples:
      dpveil faces group.jpg --preview numbered.png
      dpveil faces group.jpg --method attributes --preview planned.png
      dpveil faces photos

    With --method, or one of its options, the boxes are what would be replaced; without, they are those that
    were detected, with their margin. Faces that --only or --except leaves are told apart. No budget is
    needed. Scores are between 0 and 1. A face without a box would stay visible: lower --threshold or
    --smallest, or give its box yourself. Exit code 1: in a photo no face was found.
    """
    from dpveil.batch.tasks import photos_in

    finder = regions.faces()
    finder.prepare()
    several = len(photos) > 1 or is_folder(photos[0])
    if preview is not None and several:
        hint = "name one photo, or use --review of dpveil obfuscate, which shows all of them"
        raise UsageError("--preview is for one photo, and there may be several", hint=hint)
    check_apart_from(photos, {"--preview": preview}, replace=force)
    detected = is_default(context)  # no method is named of which regions could be shown
    looks, failed = list[_Look](), list[tuple[Path, DPVeilError]]()
    found = photos_in(photos) if several else photos
    if not found:
        raise PhotoError("there are no photos", hint="name image files, or folders that contain some")
    for path in found:
        try:
            picture = read(path, max_pixels=max_pixels)
            looks.append(_Look.at(path, picture, finder, method, detected=detected))
        except (PhotoError, RegionError) as error:
            if not several:
                raise
            failed.append((path, error))
    if preview is not None:
        drawn = draw_preview(picture, [*looks[0].doubtful, *looks[0].kept, *looks[0].found])
        write_together([(preview, encode(drawn, "png"))], replace=force)
        say.note(f"wrote {show_path(preview)}: it shows the original photo, so keep it as private")
    if json:
        wrong = [{"photo": str(path), "error": e.message, "hint": e.hint} for path, e in failed]
        every = [{"photo": str(look.path), **look.to_json()} for look in looks]
        say.document({"photos": every, "failed": wrong} if several else looks[0].to_json())
    for look in looks:
        for line in look.lines():
            (say.note if json else say.answer)(f"{show_path(look.path)}: {line}" if several else line)
    _tell(looks, failed, finder, several=several, boxes=detected and preview is not None)
    if not looks and all(isinstance(error, PhotoError) for _, error in failed):
        return exits.IMPOSSIBLE
    return exits.INCOMPLETE if failed or not all(look.found for look in looks) else exits.DONE


@dataclass(frozen=True)
class _Look:
    """What is found in one photo: its faces, those that are chosen to stay, and the places that may be faces
    and stay in the clear.

    `smallest` is the height in pixels below which no face was looked for. `otherwise` says that methods of
    pixels number the faces in another order.
    """

    path: Path
    found: list[Shown]
    doubtful: list[Shown]
    smallest: int
    otherwise: bool
    kept: Sequence[Shown] = ()

    @classmethod
    def at(cls, path: Path, photo: Photo, finder: Faces, method: Method, *, detected: bool) -> _Look:
        """Return what is found: the regions that a method replaces, or the boxes that the detector gave.

        The faces have the method's numbers.
        """
        from dpveil.release.plan import plan

        boxes = finder.detect(photo, method.order)
        regions = [Region(face.box, score=face.score) for face in boxes]
        found = [Shown(n, face.box, face.score) for n, face in enumerate(boxes, 1)]
        kept: list[Shown] = []
        if found and (not detected or finder.only or finder.exclude or finder.likeness):
            placed = plan(photo, method, regions=finder).regions
            numbers = {region.origin.number for region in placed}
            stay = {one.origin.number: one.box for region in placed for one in region.kept}
            kept = [replace(face, kept=True) for face in found if face.number not in numbers]
            found = [face for face in found if face.number in numbers]
            if not detected:
                regions = list(placed)
                kept = [replace(face, box=stay.get(face.number, face.box)) for face in kept]
                found = [Shown(r.origin.number or 1, r.box, r.score, r.mask) for r in placed]
        places = [Shown(None, r.box, r.score) for r in doubtful_places(photo, [finder], regions)]
        other = detected and finder.detect(photo) != boxes
        return cls(path, found, places, finder.smallest_in(photo), other, kept)

    def lines(self) -> Iterator[str]:
        """Yield a line about every face."""
        for face in sorted((*self.found, *self.kept), key=lambda one: one.number or 0):
            yield f"face {face.number}: {_place(face)}{', stays as it is' * face.kept}"

    def to_json(self) -> dict[str, Any]:
        faces, kept = ([{"number": f.number, **_json(f)} for f in some] for some in (self.found, self.kept))
        more = {"kept": kept} if kept else {}
        return {"faces": faces, **more, "smallest": self.smallest, "doubtful": [*map(_json, self.doubtful)]}


def _tell(
    looks: Sequence[_Look],
    failed: Sequence[tuple[Path, DPVeilError]],
    finder: Faces,
    *,
    several: bool,
    boxes: bool,
) -> None:
    """Print everything but the faces to stderr; what concerns several photos is said once."""
    for text in finder.notes:
        say.note(f"warning: {text}")
    if boxes and looks[0].found:
        say.note(BOXES)
    sizes: dict[int, list[str]] = {}
    for look in looks:
        sizes.setdefault(look.smallest, []).append(show_path(look.path))
    for size, paths in sizes.items():
        text = not_searched(finder.kind, size)
        say.note(text if len(sizes) == 1 else f"{say.first_and_count(paths)}: {text}")
    if any(look.otherwise for look in looks):
        say.note(OTHERWISE)
    for look in looks:
        texts = [f"may be a face, and is not hidden: {_place(place)}" for place in look.doubtful]
        if not look.found:
            texts.insert(0, "no face was found: lower --threshold or --smallest, and check yourself")
        for text in texts:
            say.note(f"{show_path(look.path)}: {text}")
    for path, error in failed:
        say.note(f"{show_path(path)}: {say.one_line(error)}")
    if several:
        faces = count_noun(sum(len(look.found) for look in looks), "face")
        wrong = f", {len(failed)} failed" * bool(failed)
        say.note(f"{faces} in {count_noun(len(looks), 'photo')}{wrong}")


def _place(face: Shown) -> str:
    box = face.box
    return f"{box.w}×{box.h} pixels at {box.x},{box.y}, score {face.score or 0:.2f}"


def _json(face: Shown) -> dict[str, Any]:
    return {"box": [face.box.x, face.box.y, face.box.w, face.box.h], "score": face.score}
