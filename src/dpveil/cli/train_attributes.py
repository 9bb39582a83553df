"""`dpveil train attributes`: trains a model that predicts attributes such as gender and age from a face."""

from __future__ import annotations

from pathlib import Path

from dpveil.cli import say
from dpveil.cli.progress import bar
from dpveil.cli.train_common import Common, document, failed
from dpveil.errors import InvalidParameter
from dpveil.training.attribute_models import AttributeOrder, train_attributes
from dpveil.training.by_hand import HandLabels
from dpveil.training.labelled import NO_MORE
from dpveil.training.landmarks import PACKAGE


def attributes(common: Common, landmarks_68: str | None, labels: Path | None, json: bool) -> int:
    """Train the model, print the result, and return the exit code."""
    if landmarks_68 not in (None, PACKAGE):
        hint = f"{PACKAGE}, or leave it out"
        raise InvalidParameter("--landmarks-68", landmarks_68, "is not accepted for attributes", hint=hint)
    by_hand = NO_MORE if labels is None else HandLabels.read(labels)
    order = AttributeOrder(landmarks=5 if landmarks_68 is None else 68, labels=by_hand, **common)
    made = train_attributes(order, bar)
    code, model = failed(made), made.model
    if json:
        document(made, order.out, values={name: list(words) for name, words in model.values.items()})
        return code
    say.answer(f"{order.out}  attributes, {', '.join(model.values)}, {made.images} images")
    for name in model.values:
        share = model.card.metrics.get(name)
        say.answer(f"held out: {name} {share}") if share else say.note(f"{name} was not measured")
    say.answer(f"sha256 {made.digest}")
    return code
