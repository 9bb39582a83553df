"""`dpveil train attributes`: learn what a face looks like."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from dpveil.cli import exits, say
from dpveil.training.landmarks import PACKAGE
from dpveil.errors import InvalidParameter


def train_attributes(
    paths: tuple[Path, ...],
    out: Path,
    seed: int,
    words: Mapping[str, str],
    landmarks_68: str | None,
    force: bool,
    json: bool,
) -> int:
    """Train, and tell what came of it; `words` are data and terms of the model card."""
    from dpveil.training.attribute_models import AttributeOrder, attributes_trained

    if landmarks_68 not in (None, PACKAGE):
        hint = f"{PACKAGE}, or leave it out"
        raise InvalidParameter("--landmarks-68", landmarks_68, "is not taken for attributes", hint=hint)
    landmarks = 5 if landmarks_68 is None else 68
    order = AttributeOrder(paths, out, seed, words["data"], words["terms"], landmarks, force)
    made = attributes_trained(order)
    for error in made.failed[:10]:
        say.note(f"left out: {say.one_line(error)}")
    if len(made.failed) > 10:
        say.note(f"left out: {len(made.failed) - 10} more")
    if json:
        say.document(made.to_json(order))
    else:
        say.answer(f"{out}  attributes, {', '.join(made.model.values)}, {made.images} images")
        for name in made.model.values:
            share = made.model.card.metrics.get(name)
            say.answer(f"held out: {name} {share}") if share else say.note(f"{name} was not measured")
        say.answer(f"sha256 {made.digest}")
    return exits.INCOMPLETE if made.failed else exits.DONE
