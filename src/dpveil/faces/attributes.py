"""A face of nobody that keeps a few attributes of the face, each by randomised response."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property, lru_cache
from itertools import product
from typing import Any, ClassVar, Final, Self

import numpy as np
from jaxtyping import Int64

from dpveil.assets.defaults import FILES, default_path
from dpveil.assets.reference import AssetField, Reference
from dpveil.core.guarantee import Guarantee, Relation, Scope
from dpveil.core.numbers import Json, to_json
from dpveil.core.parameters import OptionalPositive
from dpveil.errors import InvalidParameter, UsageError
from dpveil.faces import readings
from dpveil.faces.attribute_model import ATTRIBUTES, VALUES, AttributeModel
from dpveil.faces.base import Crops, FaceMethod
from dpveil.faces.drawn.figure import DrawnHead
from dpveil.faces.drawn.gallery import WORD, DrawnGallery
from dpveil.faces.face_gallery import GALLERY, FaceGallery
from dpveil.faces.geometry import Frame
from dpveil.faces.geometry.completion import Completion
from dpveil.faces.geometry.figure import Figure
from dpveil.faces.inpainting import INPAINTING
from dpveil.faces.kept import NONE, Kept, shared, written
from dpveil.mechanisms.choice.randomised_response import RandomisedResponse
from dpveil.mechanisms.placement import Image
from dpveil.noise.bits import BitSource, check_bits

Numbers = Int64[np.ndarray, " n"]
Digests = tuple[str, str]
"""SHA-256 of the files of a gallery and of an attribute model."""
HEADS: Final = replace(
    GALLERY,
    kinds={**GALLERY.kinds, DrawnGallery.name: DrawnGallery},
    holds=FaceGallery | DrawnGallery,
    built_in=WORD,
    build=DrawnGallery,
    hashed=True,
)
"""Galleries of this method: files, or the built-in heads that are drawn."""
READER: Final = replace(ATTRIBUTES, built_in=NONE, build=lambda: default_path(ATTRIBUTES.default))
"""Attribute models of this method: files, or none if no attribute is kept."""


@dataclass(frozen=True, kw_only=True)
class Attributes(FaceMethod):
    """A face of nobody whose attributes are those of the original, each after randomised response.

    `attributes` names the attributes to keep and their budgets: "gender=4,age=2", or "gender,age" with a
    total `epsilon` shared equally, or "none", which costs nothing. The output is drawn uniformly from the
    faces of `gallery` with the attribute values that were drawn. `gallery` and `model`, which reads the face,
    are "default" or a file; certificates contain kind and hash. `gallery` may also be "drawn", heads that
    this package draws where they are shown: the default where dpveil-faces is not installed. They need no
    network to complete them, and no `model` (then "none") unless an attribute is kept. Pure ε-DP for any two
    crops, where ε is the sum: each attribute is a function of the crop followed by independent randomised
    response, so log-ratios add, and the face depends on the responses alone. `protect`, `placing` and
    `inpainting` as in `FaceMethod`. Raises `InvalidParameter`, `UnknownName` for an attribute, `ModelError`,
    and `UsageError` if attributes are kept and the default `model` is not installed. Source: Warner 1965;
    docs, "Attributes".

    >>> none = {"gallery": "gallery sha256:" + 64 * "0", "model": "attributes sha256:" + 64 * "0"}
    >>> method = Attributes(attributes="gender=4,age=2", **none)
    >>> str(method.guarantee(height=100, width=80, channels=3))
    '6-DP, any-image'
    """

    name: ClassVar[str] = "attributes"
    kinds: ClassVar[tuple[str, ...]] = ("pure",)
    summary: ClassVar[str] = "a face of nobody with a few attributes, each by randomised response"
    source: ClassVar[str] = "Warner 1965; Kairouz, Oh & Viswanath 2016"
    typical: ClassVar[Mapping[str, Json]] = {"attributes": "gender,age"}
    help: ClassVar[Mapping[str, str]] = {
        "attributes": "What is kept, such as gender=4,age=2 with their budgets, or none.",
        "epsilon": "What all that is kept costs together, where it has no budgets of its own.",
        "gallery": "The faces that are shown: a file, drawn, or default (dpveil-faces, or else drawn).",
        "model": "The model of dpveil train attributes that reads faces, or default: that of dpveil-faces.",
    }
    budgets: ClassVar[tuple[tuple[str, ...], ...]] = (("attributes",),)

    attributes: Kept = Kept()
    epsilon: OptionalPositive = OptionalPositive(optional=True)
    gallery: AssetField = AssetField(HEADS)
    model: AssetField = AssetField(READER)

    def __post_init__(self) -> None:
        if self.costs:
            self.__dict__["epsilon"] = sum((budget for _, budget in self.costs), Fraction(0))
            if self.model.name == NONE:
                kept = " and ".join(name for name, _ in self.costs)
                raise UsageError(f"no model that reads faces is installed, to keep {kept}", hint=FILES)
        if self.figures:  # these files are not used then, installed or not
            if not self.costs:
                self.__dict__["model"] = Reference.made(READER)
            if Reference.of(self.inpainting, INPAINTING).name == Completion.name:
                self.__dict__["inpainting"] = Reference.made(INPAINTING)

    def with_budget(self, **budget: Any) -> Self:
        """Return the method with another total `epsilon`, divided among the attributes in the same ratio."""
        parts = {name: own * budget["epsilon"] / Fraction(self.epsilon or 1) for name, own in self.costs}
        return replace(self, attributes=parts, epsilon=None)

    @cached_property
    def costs(self) -> tuple[tuple[str, Fraction], ...]:
        """The kept attributes, each with its ε."""
        return shared(self.attributes, self.epsilon)

    @property
    def responses(self) -> dict[str, RandomisedResponse]:
        """The randomised response of each kept attribute."""
        return {
            name: RandomisedResponse(epsilon=budget, values=len(VALUES[name])) for name, budget in self.costs
        }

    def guarantee(self, *, height: int, width: int, channels: int) -> Guarantee:
        """Return pure ε-DP with the sum of the attributes' ε, for any two crops."""
        total = sum((budget for _, budget in self.costs), Fraction(0))
        scope = Scope("the canonical crop of the face")
        return Guarantee(kind="pure", epsilon=total, relation=Relation("any-image"), scope=scope)

    def parameters(self) -> dict[str, Json]:
        """Return every parameter as JSON, with files as kind and hash."""
        total = sum((budget for _, budget in self.costs), Fraction(0))
        told: dict[str, Json] = {"attributes": written(self.costs)}
        return {**super().parameters(), **told, "epsilon": to_json(total) if self.costs else None}

    @property
    def frame(self) -> Frame:
        """The canonical crop of every gallery."""
        return Frame(128)

    @property
    def figures(self) -> bool:
        """Whether heads are drawn."""
        return self.gallery.name not in GALLERY.kinds

    def prepare(self, *, height: int, width: int, channels: int) -> None:
        """Load both files; raises any error that would prevent drawing a face."""
        super().prepare(height=height, width=width, channels=channels)
        _ = (self._reader, self.gallery.held) if self.figures else self._chosen

    @cached_property
    def _reader(self) -> AttributeModel | None:
        """The attribute model, or None if no attribute is kept."""
        if not self.costs:
            return None
        model: AttributeModel = self.model.held
        for name, _ in self.costs:
            if model.values.get(name) != VALUES[name]:
                hint = f"the model reads {', '.join(model.values)}"
                raise InvalidParameter("attributes", name, "is not what the model reads", hint=hint)
        return model

    @cached_property
    def _chosen(self) -> tuple[FaceGallery, dict[tuple[int, ...], Numbers]]:
        model, gallery = self._reader, self.gallery.held
        if model is None:
            return gallery, {(): np.arange(len(gallery))}
        names = tuple(name for name, _ in self.costs)
        order = tuple(sorted(names, key=lambda name: -dict(self.costs)[name]))
        digests = self.gallery.digest, self.model.digest
        return gallery, _sorted(model, gallery, digests, names, order)

    @property
    def table(self) -> dict[tuple[int, ...], Numbers]:
        """The faces of a gallery's file, by index, for every combination of responses; public."""
        return self._chosen[1]

    def _answers(self, crops: Crops, bits: BitSource) -> list[list[int]]:
        """Return the randomised responses for every crop: all that a release depends on."""
        if self._reader is None:
            return [[] for _ in crops]
        true = self._reader.read(crops)
        drawn = [response.draw(true[name], bits) for name, response in self.responses.items()]
        answers: list[list[int]] = np.stack(drawn, axis=1).tolist()
        return answers

    def _draw(self, crops: Crops, bits: BitSource) -> Crops:
        answers = self._answers(crops, bits)
        if self.figures:
            heads = [head.crop(self.frame) for head in self._heads(answers, bits)]
            return np.array(heads, np.uint8).reshape(crops.shape)
        gallery, faces = self._chosen
        return gallery.decoded([evenly(faces[tuple(answer)], bits) for answer in answers])

    def shown(self, crops: Crops, *, bits: BitSource) -> list[Image | Figure]:
        """Return a face of the gallery for every crop, or a figure if heads are drawn."""
        if not self.figures:
            return super().shown(crops, bits=bits)
        answers = self._answers(self._checked(crops), check_bits(bits))
        return [*self._heads(answers, bits)]

    def _heads(self, answers: list[list[int]], bits: BitSource) -> list[DrawnHead]:
        gallery: DrawnGallery = self.gallery.held
        names = [name for name, _ in self.costs]
        kept = [{n: VALUES[n][at] for n, at in zip(names, answer, strict=True)} for answer in answers]
        return [gallery.head(bits, each) for each in kept]


def evenly(faces: Numbers, bits: BitSource) -> int:
    """Return one of `faces`, exactly uniformly (by rejection sampling)."""
    count = len(faces)
    most = (1 << 64) // count * count
    while (word := int(bits.words(1)[0])) >= most:
        pass
    return int(faces[word % count])


def looks_of(model: AttributeModel, gallery: FaceGallery, digests: Digests, name: str) -> list[Numbers]:
    """Return an attribute's value for each face of the gallery: the model's prediction, and the label if any.

    Both are public, and both are used: labels describe the contributors, but averages look younger than
    these, and predictions may be wrong. A label is used if its name and values are those of the model.
    """
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


@lru_cache(maxsize=8)
def _sorted(
    model: AttributeModel,
    gallery: FaceGallery,
    digests: Digests,
    names: tuple[str, ...],
    order: tuple[str, ...],
) -> dict[tuple[int, ...], Numbers]:
    """Return, for every combination of responses, the faces that have it, or else the nearest ones.

    The nearest faces are those whose prediction and label together differ least in the first attribute of
    `order`, then in the second, and so on. The table depends on the gallery only, not on any input.
    """
    looks = [looks_of(model, gallery, digests, name) for name in order]
    counts = [len(model.values[name]) for name in names]
    table = {}
    for answer in product(*map(range, counts)):
        left = np.arange(len(gallery))
        for rows, name in zip(looks, order, strict=True):
            wanted = answer[names.index(name)]
            away = np.sum([_away(row[left], wanted, name) for row in rows], axis=0)
            left = left[away == away.min()]
        table[answer] = left
    return table


def _away(looks: Numbers, wanted: int, name: str) -> Numbers:
    """Return the distances of values from `wanted`: of their indices for ordered attributes, else 0 or 1."""
    away: Numbers = np.abs(looks - wanted)
    return away if name in ("age", "pose") else np.minimum(away, 1)
