"""`dpveil train gallery`: make faces of nobody."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from dpveil.cli import say
from dpveil.cli.progress import bar
from dpveil.cli.train_common import Common, document, failed
from dpveil.errors import InvalidParameter
from dpveil.faces.attribute_model import AttributeModel
from dpveil.training.by_hand import HandLabels
from dpveil.training.galleries import GalleryOrder, train_gallery
from dpveil.training.labelled import NO_MORE
from dpveil.training.landmarks import PACKAGE


@dataclass(frozen=True)
class GalleryOptions:
    """Options of the command that are for galleries."""

    faces: int
    landmarks_68: str | None
    model: Path | None
    labels: Path | None


def gallery(common: Common, options: GalleryOptions, json: bool) -> int:
    """Make a gallery, print the result, and return the exit code."""
    landmarks_68, faces = options.landmarks_68, options.faces
    if landmarks_68 != PACKAGE:
        hint = f"say --landmarks-68 {PACKAGE} if you may use dlib's file, whose terms exclude commercial use"
        problem = "is missing" if landmarks_68 is None else "is not accepted for a gallery"
        raise InvalidParameter("--landmarks-68", landmarks_68, problem, hint=hint)
    model = None if options.model is None else AttributeModel.load(options.model)
    by_hand = NO_MORE if options.labels is None else HandLabels.read(options.labels)
    order = GalleryOrder(faces=faces, model=model, labels=by_hand, **common)
    made = train_gallery(order, bar)
    code, gallery = failed(made), made.model
    if len(gallery) < faces:
        say.note(f"only {len(gallery)} of {faces} faces: give more pictures of each label")
    if json:
        document(made, order.out, codec="gallery", faces=len(gallery))
        return code
    measured = gallery.card.metrics
    say.answer(f"{order.out}  gallery, {len(gallery)} faces of nobody, {made.images} images")
    nearest = measured["smallest_distance_to_a_contributor"]
    say.answer(f"{measured['contributors']} people in averages, the nearest at {nearest} of its face")
    say.answer(f"sha256 {made.digest}")
    return code
