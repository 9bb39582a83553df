"""`dpveil train gallery`: make faces of nobody."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from dpveil.cli import exits, say
from dpveil.training.landmarks import PACKAGE
from dpveil.errors import InvalidParameter


def train_gallery(
    paths: tuple[Path, ...],
    out: Path,
    faces: int,
    seed: int,
    words: Mapping[str, str],
    landmarks_68: str | None,
    force: bool,
    json: bool,
) -> int:
    """Make a gallery, and tell what came of it; `words` are data and terms of its card."""
    from dpveil.training.galleries import GalleryOrder, gallery_trained

    if landmarks_68 != PACKAGE:
        hint = f"say --landmarks-68 {PACKAGE} if you may use dlib's file, whose terms exclude commercial use"
        problem = "is missing" if landmarks_68 is None else "is not taken for a gallery"
        raise InvalidParameter("--landmarks-68", landmarks_68, problem, hint=hint)
    order = GalleryOrder(paths, out, faces, seed, words["data"], words["terms"], force)
    made = gallery_trained(order)
    for error in made.failed[:10]:
        say.note(f"left out: {say.one_line(error)}")
    if len(made.failed) > 10:
        say.note(f"left out: {len(made.failed) - 10} more")
    if len(made.gallery) < faces:
        say.note(f"only {len(made.gallery)} of {faces} faces: give more pictures of each label")
    if json:
        say.document(made.to_json(order))
        return exits.INCOMPLETE if made.failed else exits.DONE
    measured = made.gallery.card.metrics
    say.answer(f"{out}  gallery, {len(made.gallery)} faces of nobody, {made.images} images")
    nearest = measured["smallest_distance_to_a_contributor"]
    say.answer(f"{measured['contributors']} people in averages, the nearest at {nearest} of its face")
    say.answer(f"sha256 {made.digest}")
    return exits.INCOMPLETE if made.failed else exits.DONE
