"""`dpveil faces`: which faces are found in a photo, with their numbers."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dpveil.cli import exits, faces_options, say


def faces_command(
    photo: Annotated[Path, typer.Argument(metavar="PHOTO", help="One photo.")],
    preview: Annotated[
        Path | None,
        typer.Option(metavar="OUT.png", help="Draw the numbered boxes into a copy. Keep it private."),
    ] = None,
    threshold: faces_options.Threshold = None,
    margin: faces_options.Margin = None,
    min_face: faces_options.MinFace = None,
    long_side: faces_options.LongSide = None,
    detector: faces_options.DetectorName = None,
    detector_model: faces_options.DetectorModel = None,
    force: Annotated[bool, typer.Option("--force", help="Replace a preview that exists.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
    max_pixels: Annotated[
        int, typer.Option(metavar="N", min=1, max=2**31, help="Refuse a photo that has more pixels.")
    ] = 100_000_000,
) -> int:
    """Find the faces of a photo, and number them for --only and --except of dpveil obfuscate.

    \b
    Example:
      dpveil faces group.jpg --preview numbered.png

    Boxes are those that would be protected, margin included; scores lie between 0 and 1. A face without a box
    would stay in the clear: lower --threshold, raise --long-side, or give its box yourself. Exit code 1: none
    was found.
    """
    from dpveil.cli.preview import check_name, draw_preview
    from dpveil.io import encode, read, write_together

    finder = faces_options.faces(
        {
            "threshold": threshold,
            "margin": margin,
            "min_face": min_face,
            "long_side": long_side,
            "detector": detector,
            "model": detector_model,
        }
    )
    finder.prepare()
    if preview is not None:
        check_name(preview)
    picture = read(photo, max_pixels=max_pixels)
    found = finder.detect(picture)
    if preview is not None:
        write_together([(preview, encode(draw_preview(picture, found), "png"))], replace=force)
        say.note(f"wrote {preview}: it shows the original photo, so keep it as private as that")
    if json:
        boxes = [[face.box.x, face.box.y, face.box.w, face.box.h] for face in found]
        say.document({"faces": [{"box": b, "score": f.score} for b, f in zip(boxes, found, strict=True)]})
    for number, face in enumerate(found, 1):
        box = face.box
        line = f"face {number}: {box.w}×{box.h} pixels at {box.x},{box.y}, score {face.score:.2f}"
        (say.note if json else say.answer)(line)
    for text in finder.notes:
        say.note(f"warning: {text}")
    if not found:
        say.note(f"{photo}: no face was found: lower --threshold or raise --long-side, and look for yourself")
    return exits.DONE if found else exits.INCOMPLETE
