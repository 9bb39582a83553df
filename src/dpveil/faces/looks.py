"""What the faces of a gallery look like, and which of them have the attributes that are asked for."""

from __future__ import annotations

from functools import lru_cache
from itertools import product
from typing import Final

import numpy as np
from jaxtyping import Int64

from dpveil.faces import readings
from dpveil.faces.attribute_model import TONE, VALUES, AttributeModel
from dpveil.faces.face_gallery import FaceGallery

Numbers = Int64[np.ndarray, " n"]
Digests = tuple[str, str]
"""SHA-256 of the files of a gallery and of an attribute model."""
ORDERED: Final = ("age", "pose", TONE)
"""Attributes with ordered values."""


def looks_of(
    model: AttributeModel | None, gallery: FaceGallery, digests: Digests, name: str
) -> list[Numbers]:
    """Return an attribute's value for each face of the gallery: the model's prediction, and the label if any.

    Both are public, and both are used: labels describe the contributors, but averages look younger than
    these, and predictions may be wrong. A label is used if its name and values are those of the model. The
    tone is measured.
    """
    if name == TONE or model is None:
        return [_tones(gallery, digests)]
    found, known = [_read(model, gallery, digests)[name]], model.values[name]
    for own, words in gallery.values.items():
        if own == name and set(words) == set(known):
            places = np.array([known.index(word) for word in words], np.int64)
            found.append(places[gallery.labels[own].astype(np.int64)])
    return found


@lru_cache(maxsize=4)
def _read(model: AttributeModel, gallery: FaceGallery, digests: Digests) -> dict[str, Numbers]:
    """Return the model's predictions for the gallery, which are stored for the default files."""
    known = readings.kept()
    if known is not None and (known.gallery, known.model) == digests:
        return known.checked(model.values, len(gallery))
    return model.read(gallery.faces)


def _tones(gallery: FaceGallery, digests: Digests) -> Numbers:
    """Return the tones of the gallery, which are stored for the default file."""
    known = readings.kept()
    if known is not None and known.gallery == digests[0]:
        return known.checked({TONE: VALUES[TONE]}, len(gallery))[TONE]
    return gallery.tones


@lru_cache(maxsize=8)
def faces_for(
    model: AttributeModel | None,
    gallery: FaceGallery,
    digests: Digests,
    wanted: tuple[tuple[str, str | None], ...],
    order: tuple[str, ...],
) -> dict[tuple[int, ...], Numbers]:
    """Return, for every combination of responses, the faces that have it, or else the nearest ones.

    `wanted` has the attributes, and the value of those whose value was chosen. The nearest faces are those
    whose prediction and label together differ least in the first attribute of `order`, then in the second,
    and so on. Glasses are drawn over any face, so they are not in `order`. The table depends on the gallery
    only, not on any input.
    """
    looks = [looks_of(model, gallery, digests, name) for name in order]
    names = [name for name, _ in wanted]
    spans = [range(len(VALUES[n])) if own is None else (VALUES[n].index(own),) for n, own in wanted]
    places = [names.index(name) for name in order]
    found: dict[tuple[int, ...], Numbers] = {}
    for values in product(*(spans[place] for place in places)):
        left = np.arange(len(gallery))
        for rows, name, value in zip(looks, order, values, strict=True):
            away = np.sum([_away(row[left], value, name) for row in rows], axis=0)
            left = left[away == away.min()]
        found[values] = left
    return {answer: found[tuple(answer[place] for place in places)] for answer in product(*spans)}


def _away(looks: Numbers, wanted: int, name: str) -> Numbers:
    """Return the distances of values from `wanted`: of their indices for ordered attributes, else 0 or 1."""
    away: Numbers = np.abs(looks - wanted)
    return away if name in ORDERED else np.minimum(away, 1)
