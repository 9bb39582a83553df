"""`dpveil train gallery`: make faces of nobody."""

from __future__ import annotations

from dpveil.cli import say
from dpveil.cli.progress import bar
from dpveil.cli.train_common import Common, document, failed
from dpveil.errors import InvalidParameter
from dpveil.training.galleries import GalleryOrder, train_gallery
from dpveil.training.landmarks import PACKAGE


def gallery(common: Common, faces: int, landmarks_68: str | None, json: bool) -> int:
    """Make a gallery, print the result, and return the exit code."""
    if landmarks_68 != PACKAGE:
        hint = f"say --landmarks-68 {PACKAGE} if you may use dlib's file, whose terms exclude commercial use"
        problem = "is missing" if landmarks_68 is None else "is not accepted for a gallery"
        raise InvalidParameter("--landmarks-68", landmarks_68, problem, hint=hint)
    order = GalleryOrder(faces=faces, **common)
    made = train_gallery(order, bar)
    code, model = failed(made), made.model
    if len(model) < faces:
        say.note(f"only {len(model)} of {faces} faces: give more pictures of each label")
    if json:
        document(made, order.out, codec="gallery", faces=len(model))
        return code
    measured = model.card.metrics
    say.answer(f"{order.out}  gallery, {len(model)} faces of nobody, {made.images} images")
    nearest = measured["smallest_distance_to_a_contributor"]
    say.answer(f"{measured['contributors']} people in averages, the nearest at {nearest} of its face")
    say.answer(f"sha256 {made.digest}")
    return code
