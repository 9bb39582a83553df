"""Audit entries of the methods that show a face from a gallery."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import Any, Final

import numpy as np

from dpveil.faces import Attributes, Gallery
from dpveil.faces.attribute_model import TONE, VALUES
from dpveil_audit.entry import Bits, Check, Entry, computed, drawn
from dpveil_audit.faces.case import (
    DistributionOf,
    FacesCase,
    FacesDrawn,
    FacesLevel,
    FacesVersion,
    MadeGallery,
    MadeModel,
    Row,
    reference,
)
from dpveil_audit.faces.distributions import own_answers, own_choice, written_answers, written_choice
from dpveil_audit.faces.gates import bound_gate, exact_gate, fit_gate, same_gate
from dpveil_audit.faces.mutants import ATTRIBUTES, GALLERY

DISTANCES: Final = (0, 1, 2, 5)
"""As many as faces, so that crops have every order and every tie."""
CROPS: Final = (0, 1, 2, 5), (1, 1, 1, 1), (2, 0, 0, 5), (0, 5, 5, 5), (5, 0, 0, 0)
SHADES: Final = (0, 200)
"""Other contents of a crop, on which nothing may depend."""
DRAWS: Final = 20_000
FEW_DRAWS: Final = 5_000
"""Draws of faces for answers, each of which takes a word of its own."""


@dataclass(frozen=True, kw_only=True)
class FacesAudit(Entry[FacesVersion, FacesLevel]):
    """The audit of one method; `definition` is its law, written independently of its code."""

    method: type[Gallery | Attributes]
    definition: DistributionOf

    def checks(self, level: FacesLevel, bits: Bits) -> Iterator[Check[FacesVersion]]:
        """Yield every gate with every setting."""
        right = self.definition
        yield from computed("same", partial(same_gate, definition=right), level.exact, self.intact)
        yield from computed("exact", exact_gate, level.exact)
        yield from drawn("fit", partial(fit_gate, definition=right), level.drawn, bits)
        yield from drawn("bound", bound_gate, level.drawn, bits)


def face_methods() -> dict[str, FacesAudit]:
    """Return the audits of all such methods, by name."""
    return AUDITS


def _ranked(count: int, epsilon: Any, law: str, near: int | None = None) -> FacesCase:
    """Return a choice by rank among `count` faces."""
    faces = MadeGallery(tuple((number,) for number in range(count)), {}, {})
    method = Gallery(epsilon=epsilon, law=law, near=near, gallery=reference("gallery", faces))
    return FacesCase(method, tuple(product(DISTANCES, repeat=count)))


def _answered(attributes: str, without: tuple[Row, ...] = (), *, each: int = 2) -> FacesCase:
    """Return the attributes method with a gallery of `each` faces per combination, except those in `without`.

    The first attribute has labels, in another order than the model's; for the last face they disagree with
    the reading. A tone has none: crops and faces are measured, and a face is shown in the tone of the answer.
    """
    names = [word.partition("=")[0] for word in attributes.split(",")]
    values = {name: VALUES[name] for name in VALUES if name in names}
    every = list(product(*(range(len(words)) for words in values.values())))
    looks = tuple((*row, 200 * n // each) for row in every if row not in without for n in range(1, each + 1))
    read = {name: words for name, words in values.items() if name != TONE}
    named, labels = {}, {}
    for first, words in [*read.items()][:1]:
        named[first] = words[::-1]
        labels[first] = np.array([len(words) - 1 - look[0] for look in looks], np.int8)
        labels[first][-1] = len(words) - 1
    faces = MadeGallery(looks, named, labels)
    model = reference("attributes", MadeModel(read))
    method = Attributes(attributes=attributes, gallery=reference("gallery", faces), model=model)
    inputs = tuple((*row, shade) for row in every for shade in SHADES)
    return FacesCase(method, inputs)


def _choices() -> FacesAudit:
    exact = (_ranked(4, 2, "two-level"), _ranked(3, 1, "exponential"), _ranked(3, 1, "permute-and-flip"))
    deep = (
        _ranked(4, "0.1", "two-level", 3),
        _ranked(4, 8, "two-level", 1),
        _ranked(4, 8, "exponential"),
        _ranked(4, 8, "permute-and-flip"),
    )
    settings = []
    for case in exact:
        rising, even, other, first, rest = (crop[: len(case.gallery)] for crop in CROPS)
        pairs = (rising, rising[::-1]), (rising, other), (first, rest)
        settings.append(FacesDrawn(case, DRAWS, (rising, even, other), pairs))
    level = FacesLevel(exact, tuple(settings))
    return FacesAudit(
        method=Gallery,
        intact=FacesVersion(name="intact", distribution=own_choice),
        definition=written_choice,
        mutants=GALLERY,
        levels={"quick": level, "deep": level.more(deep)},
    )


def _kept() -> FacesAudit:
    exact = (
        _answered("gender=2,age=1", ((0, 0), (1, 2), (1, 3))),
        _answered("gender=0.5,tone=1"),
        _answered("gender=0.5,glasses=1", each=1),
    )
    deep = (
        _answered("gender=0.5,perceived-race=1"),
        _answered("tone=2", each=3),
        _answered("age=2,perceived-race=0.25,smile=3", ((0, 0, 0), (3, 4, 1))),
        _answered("pose=8", each=3),
        _answered("gender=4,age=4", ((1, 3),), each=1),
        _answered("glasses=1,beard=2"),
        _answered("beard=1,tone=2", each=1),
    )
    near = (0, 1, 0), (0, 1, 200)
    settings = tuple(
        FacesDrawn(case, FEW_DRAWS, ((0, 1, 200), (1, last, 0), (0, 0, 0)), (near, far))
        for case, last in zip(exact, (3, 3, 1), strict=True)
        for far in [((0, 1, 0), (1, 0 if last == 1 else last, 0))]
    )
    level = FacesLevel(exact, settings)
    return FacesAudit(
        method=Attributes,
        intact=FacesVersion(name="intact", distribution=own_answers),
        definition=written_answers,
        mutants=ATTRIBUTES,
        levels={"quick": level, "deep": level.more(deep)},
    )


AUDITS: Final[dict[str, FacesAudit]] = {audit.method.name: audit for audit in (_choices(), _kept())}
