"""Training of a model that reads around a face who suits it: gender and age, of what stays in a photo."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np
from jaxtyping import Int64, UInt8

from dpveil.assets.cards import Card
from dpveil.assets.store import save
from dpveil.core.numbers import Json
from dpveil.core.photo import Photo
from dpveil.errors import DPVeilError, PhotoError
from dpveil.faces.attribute_model import READ, SIDE, AttributeModel, features
from dpveil.faces.geometry import Frame, place
from dpveil.faces.geometry.around import Around
from dpveil.faces.geometry.colour_match import AS_IT_IS
from dpveil.faces.geometry.head_frame import HeadFrame, between
from dpveil.faces.geometry.place import Placed
from dpveil.faces.released import SUITING
from dpveil.regions import Faces
from dpveil_train.attributes import EPOCHS, HELD_OUT, UNITS, fit_attributes, shares
from dpveil_train.crops import photos
from dpveil_train.order import Order, Progress, Trained, silent

PROTECTED: Final = ("face", "head")
"""What is hidden in the pictures from which a model learns."""
LEAST: Final = 40
"""Least shorter side of a face, in pixels."""


@dataclass(frozen=True, kw_only=True)
class OutsideOrder(Order):
    """An order for a model of what stays around faces; `model` labels the largest face of every photo."""

    model: AttributeModel

    def settings(self) -> dict[str, Json]:
        """Return the settings that determine the model together with the images and the seed."""
        own: dict[str, Json] = {"units": UNITS, "epochs": EPOCHS, "labels": self.model.digest}
        return {**own, **super().settings()}


@dataclass
class Seen:
    """Features around every face, straight and mirrored, its crop, and the images that failed."""

    features: list[np.ndarray] = field(default_factory=list)
    crops: list[UInt8[np.ndarray, "s s 3"]] = field(default_factory=list)
    failed: list[DPVeilError] = field(default_factory=list)


def train_outside(order: OutsideOrder, progress: Progress = silent) -> Trained[AttributeModel]:
    """Train a model on photos of people, evaluate it on the last fifth, and write it with its card.

    Labels are what `order.model` reads of the faces themselves. Raises `PhotoError` if there is no face, and
    the errors of `Order.check` and of writing.
    """
    order.check()
    seen, finder = Seen(), Faces(margin=0)
    with progress(len(order.paths), "reading") as step:
        for photo in photos(order.paths, step):
            if not isinstance(photo, Photo):
                seen.failed.append(photo)
                continue
            placed = _largest(photo, finder)
            if placed:
                seen.crops.append(placed[0].crop(photo))
                pictures = np.stack(
                    [one for each in placed for one in _with_mirror(_surroundings(photo, each))]
                )
                seen.features.append(features(pictures).astype(np.float16))
    count = len(seen.crops)
    if not count:
        raise seen.failed[0] if seen.failed else PhotoError("the images show no face", hint="give photos")
    values = {name: READ[name] for name in SUITING}
    truth = {name: read for name, read in order.model.read(np.stack(seen.crops)).items() if name in values}
    kept, each = count - count // HELD_OUT, 2 * len(PROTECTED)
    card = Card("attributes", order.data, order.terms, order.seed, {**order.settings(), "images": kept})
    rows = np.concatenate(seen.features[:kept])
    labels = {name: np.repeat(read[:kept], each) for name, read in truth.items()}
    with progress(EPOCHS, "learning") as step:
        model = fit_attributes(rows, labels, values, card=card, seed=order.seed, epochs=EPOCHS, step=step)
    metrics = _metrics(model, np.array(seen.features[kept:]), {n: read[kept:] for n, read in truth.items()})
    model = replace(model, card=replace(card, metrics=metrics))
    return Trained(model, save(model, order.out, replace=order.replace), count, seen.failed)


def _largest(photo: Photo, finder: Faces) -> list[Placed]:
    """Return the place of the largest face by everything that is hidden; none if it is not sure."""
    boxes = [found.box for found in finder.detect(photo)]
    box = max(boxes, key=lambda one: one.w * one.h, default=None)
    if box is None or min(box.w, box.h) < LEAST:
        return []
    try:
        return [place(photo, box, frame=Frame(SIDE), protect=protect) for protect in PROTECTED]
    except DPVeilError:
        return []


def _surroundings(photo: Photo, placed: Placed) -> UInt8[np.ndarray, "s s 3"]:
    hidden = np.zeros(photo.image.shape[:2], np.bool_)
    view = hidden[placed.region.box.slices]
    view |= True if placed.region.mask is None else placed.region.mask
    there = between(placed.pose, placed.frame, HeadFrame(1))
    return Around(there, photo.image * ~hidden[..., None], hidden, placed.protect, AS_IT_IS).picture


def _with_mirror(picture: UInt8[np.ndarray, "s s 3"]) -> Iterator[UInt8[np.ndarray, "s s 3"]]:
    yield picture
    yield np.ascontiguousarray(picture[:, ::-1])


def _metrics(
    model: AttributeModel, seen: np.ndarray, truth: dict[str, Int64[np.ndarray, " n"]]
) -> dict[str, Json]:
    """Return the accuracy on held-out photos, by what is hidden, in total and by the value itself."""
    metrics: dict[str, Json] = {"images": len(seen)}
    for at, protect in enumerate(PROTECTED if len(seen) else ()):
        own = seen[:, 2 * at].astype(np.float32)
        scores = np.maximum(own @ model.hidden + model.hidden_bias, 0) @ model.out + model.out_bias
        for name, columns in model.columns.items():
            right = scores[:, columns].argmax(axis=1) == truth[name]
            metrics[f"{name}, {protect} hidden"] = shares(right)
            parts = {word: right[truth[name] == value] for value, word in enumerate(READ[name])}
            metrics[f"{name}, {protect} hidden, by value"] = ", ".join(
                f"{word} {shares(hits)}" for word, hits in parts.items() if len(hits)
            )
    return metrics
