"""A face of nobody that keeps a few attributes of the face, each by randomised response."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property, lru_cache, partial
from itertools import product
from typing import TYPE_CHECKING, Any, ClassVar, Final, Self

import numpy as np

from dpveil.assets.file_reference import DEFAULT, AssetField, Reference
from dpveil.assets.trained_files import FILES, default_path, installed_path
from dpveil.core.array_types import Int64
from dpveil.core.guarantee import Guarantee, Relation, Scope
from dpveil.core.parameters import Flag, OptionalPositive
from dpveil.core.photo import Photo
from dpveil.core.rationals import Json, to_json
from dpveil.core.region import Region
from dpveil.core.region_origin import LINKED
from dpveil.errors import InvalidParameter, UsageError
from dpveil.faces.attribute_budgets import (
    NONE,
    AttributeBudgets,
    budget_of_each,
    budgets_text,
    chosen_values,
    large_budget_notes,
)
from dpveil.faces.attribute_model import ATTRIBUTES, TONE, VALUES, AttributeModel
from dpveil.faces.base import Crops, FaceMethod
from dpveil.faces.face_gallery import GALLERY, FaceGallery
from dpveil.faces.geometry.align import Frame
from dpveil.faces.geometry.cell import YAW
from dpveil.faces.geometry.protection import PROTECT_FACE
from dpveil.faces.head_gallery import HeadGallery
from dpveil.faces.surroundings_network import SURROUNDINGS
from dpveil.mechanisms.method import DRAWN, TRAINED, Placement
from dpveil.noise.bits import BitSource, check_bits

if TYPE_CHECKING:
    from dpveil.faces.drawn_face import Released
    from dpveil.faces.likeness import Links
    from dpveil.mechanisms.rank_choice import RandomisedResponse

Numbers = Int64[np.ndarray, " n"]
RESEARCH: Final = "research"  # the word for the galleries of dpveil-faces
LINK_NOTE: Final = "linked: which faces of this run are of one person is not hidden"
PEOPLE: Final = "people"  # its rendered heads with faces that are averages of photos
POSE: Final = "pose"
ORDERED: Final = ("age", POSE, TONE)  # attributes with ordered values


def looks_of(gallery: HeadGallery | FaceGallery, name: str) -> list[Numbers]:
    """Return an attribute's value for each face of the gallery: of heads that by which they were made.

    Of averages, these are the label, if any, and what a model reads in them. Both are public, and both are
    used: labels describe the contributors, but averages look younger than these, and readings may be wrong.
    """
    if isinstance(gallery, HeadGallery):
        label = gallery.looks(name)
        found = [] if label is None else [label]
    else:
        found = gallery.labels_and_readings(name)
    if not found:
        named = ", ".join(one for one in VALUES if gallery.looks(one) is not None)
        hint = f"it has {named}{' and pose' * isinstance(gallery, HeadGallery)}; or choose another gallery"
        problem = "is nothing that faces of the gallery differ by"
        raise InvalidParameter("attributes", name, problem, hint=hint)
    return found


@lru_cache(maxsize=8)
def faces_for(
    gallery: HeadGallery | FaceGallery,
    wanted: tuple[tuple[str, str | None], ...],
    order: tuple[str, ...],
) -> dict[tuple[int, ...], Numbers]:
    """Return, for every combination of responses, the faces that have it, or else the nearest ones.

    `wanted` has the attributes, and the value of those whose value was chosen. The nearest faces are those
    whose reading and label together differ least in the first attribute of `order`, then in the second,
    and so on. Heads have every pose, so it is not in their `order`. The table depends on the gallery only,
    not on any input.
    """
    looks = [looks_of(gallery, name) for name in order]
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


HEADS: Final = replace(
    GALLERY,
    written="heads sha256:…",
    hint=f"name a file, {HeadGallery.name}, {RESEARCH} or {DEFAULT}",
    kinds={HeadGallery.name: HeadGallery, **GALLERY.kinds},
    holds=HeadGallery | FaceGallery,
    default=HeadGallery.name,
    others=(PEOPLE,),
)
"""Galleries of this method: rendered heads, or faces alone."""


class GalleryField(AssetField):
    """The gallery that is shown; `RESEARCH` is that of dpveil-faces."""

    def check(self, value: object) -> Reference:
        """Return the reference to the file; a word stays one, for it depends on what is replaced."""
        if value in (DEFAULT, RESEARCH):
            return Reference(str(value), "", None, HEADS)
        return super().check(value)


READER: Final = replace(ATTRIBUTES, built_in=NONE, build=partial(default_path, ATTRIBUTES.default))
"""Attribute models of this method: files, or none if no attribute is kept."""


@dataclass(frozen=True, kw_only=True)
class Attributes(FaceMethod):
    """A face of nobody whose attributes are those of the original, each after randomised response.

    `attributes` names the attributes to keep and their budgets: "gender=4,age=2", or "gender,age" with a
    total `epsilon` shared equally, or "none", which costs nothing. A value for a budget, "tone=medium", is
    shown whatever the photo shows, and costs nothing either. The output is drawn uniformly from the heads or
    faces of `gallery` with the attribute values that were drawn; of heads, rather those that suit what stays
    in the photo: the tone of skin, and what the network `outside` reads there, if that is not
    "none". This costs nothing: neighbours do not differ there. One whose tone is kept is shown in it.
    `gallery` is "heads", rendered heads of nobody; "research", of dpveil-faces: averages of photos where
    `protect` is "face", else rendered heads with such faces; "default", the second if it is installed, else
    the first; or a file. `model`, which reads the face, is "default" or a file; certificates contain kind and
    hash. The model is needed only if an attribute other than the tone is read. With `link` the faces of one
    person, by their embeddings, are shown as the same face in all photos that this object replaces: the
    guarantee then compares photos of which the same faces are of one person. Pure ε-DP for any two crops,
    where ε is the sum: each attribute is a function of the crop followed by independent randomised response,
    so log-ratios add, and the face depends on the responses alone. `protect` and `placing` as in
    `FaceMethod`. Raises `InvalidParameter`, `UnknownName` for an attribute, `ModelError`, and `UsageError`
    if attributes are kept and the default `model` is not installed. Source: Warner 1965; docs, "Attributes".

    >>> none = {"gallery": "gallery sha256:" + 64 * "0", "model": "attributes sha256:" + 64 * "0"}
    >>> method = Attributes(attributes="gender=4,age=2", **none)
    >>> str(method.guarantee(height=100, width=80, channels=3))
    '6-DP, any-image'
    """

    name: ClassVar[str] = "attributes"
    kinds: ClassVar[tuple[str, ...]] = ("pure",)
    summary: ClassVar[str] = "a synthetic face with a few attributes, each by randomised response"
    source: ClassVar[str] = "Warner 1965; Kairouz, Oh & Viswanath 2016"
    typical: ClassVar[Mapping[str, Json]] = {"attributes": "gender,age"}
    help: ClassVar[Mapping[str, str]] = {
        "attributes": f"What is kept, of {', '.join(VALUES)}: gender=4,age=2 with budgets, or none; "
        "tone=dark is shown whatever the photo shows.",
        "epsilon": "What all that is kept costs together, where it has no budgets of its own.",
        "gallery": "Who is shown: heads (rendered, CC0), research (like photos, non-commercial), a file, or "
        "default: research where dpveil-faces is installed, else heads.",
        "model": "The model of dpveil train attributes that reads faces, or default: that of dpveil-faces.",
        "link": "Show one person as the same new face in all photos of this run. Who is one person is in the"
        " clear then.",
        "outside": "The network that reads from what stays who suits it, or none; default: of dpveil-faces.",
    }
    budgets: ClassVar[tuple[tuple[str, ...], ...]] = ((),)

    attributes: AttributeBudgets = AttributeBudgets(default=NONE)
    epsilon: OptionalPositive = OptionalPositive(optional=True)
    gallery: GalleryField = GalleryField(HEADS)
    model: AssetField = AssetField(READER)
    outside: AssetField = AssetField(SURROUNDINGS)
    link: Flag = Flag(default=False)

    def __getstate__(self) -> dict[str, Any]:
        """Return the method for another process; raises `UsageError` if it links faces, as this one knows."""
        if self.link:
            raise UsageError("faces are linked in one process alone")
        return self.__dict__

    def __post_init__(self) -> None:
        if self.gallery.name in (DEFAULT, RESEARCH):
            name = FaceGallery.name if self.protect == PROTECT_FACE else PEOPLE
            if self.gallery.name == DEFAULT and not installed_path(name):
                name = HeadGallery.name
            self.__dict__["gallery"] = Reference.of(default_path(name), HEADS)
        self._check_protect()
        if self.costs:
            self.__dict__["epsilon"] = sum((budget for _, budget in self.costs), Fraction(0))
        if self.modelled and self.model.name == NONE:
            kept = " and ".join(self.modelled)
            raise UsageError(f"no model that reads faces is installed, to keep {kept}", hint=FILES)
        if not self.modelled:  # this file is not used then, installed or not
            self.__dict__["model"] = Reference.built_in(READER)

    def _check_protect(self) -> None:
        super()._check_protect()
        if self.protect != PROTECT_FACE:
            return
        if self.toned:
            problem = (
                f"cannot be shown with {{protect}} {PROTECT_FACE}: a face gets the tone of the skin around it"
            )
            hint, names = "leave it out, or protect head or box", {"protect": "protect"}
            raise InvalidParameter("attributes", TONE, problem, hint=hint, arguments=names)

    def with_budget(self, **budget: Any) -> Self:
        """Return the method with another total `epsilon`, divided among the attributes in the same ratio."""
        parts = {name: own * budget["epsilon"] / Fraction(self.epsilon or 1) for name, own in self.costs}
        return replace(self, attributes=parts | self.chosen, epsilon=None)

    @cached_property
    def costs(self) -> tuple[tuple[str, Fraction], ...]:
        """The attributes that are read, each with its ε."""
        return budget_of_each(self.attributes, self.epsilon)

    @cached_property
    def chosen(self) -> dict[str, str]:
        """The attributes whose value the user chose, and that value."""
        return chosen_values(self.attributes)

    @property
    def set_by_user(self) -> tuple[str, ...]:
        """The chosen values, as they are written on the command line."""
        return tuple(f"{name}={value}" for name, value in self.chosen.items())

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes on budgets that are so large that they may not be meant as budgets, and on linked faces."""
        return (*large_budget_notes(self.costs), *(LINK_NOTE,) * self.link)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The attributes of answers, in their order: those that are read, and those that were chosen."""
        return tuple(name for name, _ in self.attributes)

    @cached_property
    def modelled(self) -> tuple[str, ...]:
        """The attributes that the attribute model reads."""
        return tuple(name for name, _ in self.costs if name != TONE)

    @property
    def responses(self) -> dict[str, RandomisedResponse]:
        if not self.costs:
            return {}
        from dpveil.mechanisms.rank_choice import RandomisedResponse

        return {
            name: RandomisedResponse(epsilon=budget, values=len(VALUES[name])) for name, budget in self.costs
        }

    def guarantee(self, *, height: int, width: int, channels: int) -> Guarantee:
        """Return pure ε-DP with the sum of the attributes' ε, for any two crops."""
        total = sum((budget for _, budget in self.costs), Fraction(0))
        scope = Scope("the canonical crop of the face", (LINKED,) * self.link)
        return Guarantee(kind="pure", epsilon=total, relation=Relation("any-image"), scope=scope)

    def parameters(self) -> dict[str, Json]:
        total = sum((budget for _, budget in self.costs), Fraction(0))
        own = dict(self.costs) | self.chosen
        told: dict[str, Json] = {"attributes": budgets_text((name, own[name]) for name in self.names)}
        return {**super().parameters(), **told, "epsilon": to_json(total) if self.costs else None}

    @property
    def frame(self) -> Frame:
        return Frame(128)

    @property
    def heads(self) -> bool:
        return self.gallery.name == HeadGallery.name

    @property
    def reads(self) -> bool:
        return bool(self.costs)

    @property
    def made(self) -> str:
        """How what is shown came to be: rendered and so CC0, or from photos of people."""
        return DRAWN if self.heads and self.gallery.terms.startswith("CC0") else TRAINED

    def prepare(self, *, height: int, width: int, channels: int) -> None:
        """Load both files; raises any error that would prevent drawing a face."""
        super().prepare(height=height, width=width, channels=channels)
        _ = self._reader, self._chosen, self.outside.held

    @property
    def toned(self) -> bool:
        """Whether the tone of a released crop says something, so that it is to be shown as it is."""
        return TONE in self.names

    @property
    def turned(self) -> bool:
        """Whether faces are turned as their cells state: not if a pose is shown that was drawn or chosen."""
        return POSE not in self.names

    @cached_property
    def _reader(self) -> AttributeModel | None:
        """The attribute model, or None if nothing is asked of it."""
        if not self.modelled:
            return None
        model: AttributeModel = self.model.held
        for name in self.modelled:
            if model.values.get(name) != VALUES[name]:
                known = model.values.get(name)
                former = f"{name} as {', '.join(known or ())}: train it anew"
                hint = f"the model reads {former if known else ', '.join(model.values)}"
                raise InvalidParameter("attributes", name, "is not what the model reads", hint=hint)
        return model

    @cached_property
    def _chosen(self) -> tuple[HeadGallery | FaceGallery, dict[tuple[int, ...], Numbers]]:
        gallery = self.gallery.held
        if not self.names:
            return gallery, {(): np.arange(len(gallery))}
        costs, first = dict(self.costs), Fraction(1 << 64)
        order = tuple(sorted(self.names, key=lambda n: -costs.get(n, first)))
        if self.heads:
            order = tuple(name for name in order if name != POSE)
        wanted = tuple((n, self.chosen.get(n)) for n in self.names)
        return gallery, faces_for(gallery, wanted, order)

    @property
    def table(self) -> dict[tuple[int, ...], Numbers]:
        """The heads or faces of the gallery, by index, for every combination of responses; public."""
        return self._chosen[1]

    def _answers(self, crops: Crops, bits: BitSource) -> list[list[int]]:
        """Return the randomised responses for every crop: all that a release depends on."""
        true = {} if not self.costs or self._reader is None else self._reader.read(crops)
        if TONE in self.responses:
            from dpveil.faces.geometry.tone import tones

            true[TONE] = tones(crops)
        drawn = {name: response.draw(true[name], bits) for name, response in self.responses.items()}
        for name, word in self.chosen.items():
            drawn[name] = np.full(len(crops), VALUES[name].index(word), np.int64)
        answers: list[list[int]] = [
            [int(drawn[name][row]) for name in self.names] for row in range(len(crops))
        ]
        return answers

    def _draw(self, crops: Crops, bits: BitSource) -> Crops:
        faces = [face.crop(self.frame) for face in self.shown(crops, bits=bits)]
        return np.stack(faces) if faces else crops[:0]

    def shown(self, crops: Crops, *, bits: BitSource) -> Sequence[Released]:
        """Return a head or a face of the gallery for every crop."""
        from dpveil.faces.drawn_face import CropFace, HeadFace

        answers = self._answers(self._checked(crops), check_bits(bits))
        gallery, found = self._chosen
        if isinstance(gallery, FaceGallery) and self.toned:  # of portraits: shown as it is
            faces = [evenly(found[tuple(answer)], bits) for answer in answers]
            tones = [answer[self.names.index(TONE)] for answer in answers]
            return [CropFace(face, self.frame) for face in gallery.decoded(faces, tones)]
        numbers = [int(word) for word in bits.words(len(answers))]
        heads = [
            HeadFace(gallery, found[tuple(answer)], number, self._own_yaw(answer), self.outside.held)
            for answer, number in zip(answers, numbers, strict=True)
        ]
        rows = self.__dict__.get("rows")
        if rows is None:
            return heads
        from dpveil.faces.likeness import LinkedHead

        links = self._links
        pairs = zip(heads, map(links.person, rows), strict=True)
        return [LinkedHead(**vars(face), links=links, own=own) for face, own in pairs]

    def place(self, photo: Photo, regions: Sequence[Region]) -> Placement:
        """Return the faces' places, and with `link` read who they are."""
        from dpveil.faces.objects_beside_faces import hidden, is_object

        faces = [region for region in regions if not is_object(region)]
        if not self.link or any(region.covers(photo) for region in faces):
            return super().place(photo, regions)
        from dpveil.faces.likeness import embedding

        seen, own = hidden(photo, regions), replace(self)
        rows = [embedding(seen, region.box) for region in faces]
        vars(own).update({"_links": self._links, "rows": rows})
        return FaceMethod.place(own, photo, regions)

    @cached_property
    def _links(self) -> Links:
        from dpveil.faces.likeness import Links

        return Links()

    def _own_yaw(self, answer: Sequence[int]) -> int | None:
        """Return the yaw in degrees that an answer states, or None."""
        if self.turned or not self.heads:
            return None
        return YAW * (answer[self.names.index(POSE)] - VALUES[POSE].index("frontal"))


def evenly(faces: Numbers, bits: BitSource) -> int:
    """Return one of `faces`, exactly uniformly (by rejection sampling)."""
    count = len(faces)
    most = (1 << 64) // count * count
    while (word := int(bits.words(1)[0])) >= most:
        pass
    return int(faces[word % count])
