"""The audits of methods that show a face from a gallery: cases, laws, gates and mutants."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from itertools import permutations, product
from typing import Any, Final

import numpy as np
from jaxtyping import Float64, Int64, UInt8

from dpveil.assets.file_reference import Reference
from dpveil.core.rationals import show
from dpveil.faces import Attributes, Gallery
from dpveil.faces.attribute_budgets import budgets_text
from dpveil.faces.attribute_model import ATTRIBUTES, TONE, VALUES
from dpveil.faces.attributes_method import HEADS, POSE
from dpveil.faces.face_gallery import GALLERY
from dpveil.faces.geometry.cell import YAW
from dpveil.faces.head_gallery import HeadGallery
from dpveil.mechanisms.rank_choice import RankChoice
from dpveil.noise.bits import BitSource
from dpveil_audit import engine
from dpveil_audit.divergence import Outcomes, ProductLaw
from dpveil_audit.engine import BY_DRAWS, Audit, Drawn, Level, Version, law_gates
from dpveil_audit.faces.made_heads import made_heads

SIDE: Final = 128
UNUSED: Final = 64 * "0"  # stands for the hash of a file, where there is none
LIGHT: Final = (180, 150, 135, 120, 90)
"""A grey level of each class of tones, from the lightest to the darkest."""
KINDS: Final = {"gallery": GALLERY, "heads": HEADS, "attributes": ATTRIBUTES}
Row = tuple[int, ...]
"""The numbers in a crop, which are all that a method reads of it."""
Rows = Int64[np.ndarray, "n w"]
Numbers = Int64[np.ndarray, " n"]
Chances = tuple[Fraction, ...]
"""The probability of every outcome."""


@dataclass(frozen=True, eq=False)
class MadeGallery:
    """A synthetic gallery with one face for each of `looks`, the readings of the attributes `read`.

    A crop's numbers are its distances. Each face shows its index.
    """

    read: tuple[str, ...]
    looks: tuple[Row, ...]

    def __len__(self) -> int:
        return len(self.looks)

    @cached_property
    def faces(self) -> UInt8[np.ndarray, "n 1 w 3"]:
        """All faces: a line of pixels with the readings, and the index at its end."""
        lines = np.array([(*look, number) for number, look in enumerate(self.looks)], np.uint8)
        return np.repeat(lines[:, None, :, None], 3, axis=3)

    def labels_and_readings(self, name: str) -> list[Numbers]:
        """Return each face's reading of an attribute."""
        return [np.array([look[self.read.index(name)] for look in self.looks])]

    def decoded(self, numbers: list[int], tones: Sequence[int] = ()) -> UInt8[np.ndarray, "k 1 w 3"]:
        """Return the faces with these indices; a tone is shown by heads alone."""
        return self.faces[numbers]

    def distances(self, crops: UInt8[np.ndarray, "m s s 3"]) -> Float64[np.ndarray, "m n"]:
        return crops[:, 0, : len(self), 0].astype(np.float64)


@dataclass(frozen=True, eq=False)
class MadeModel:
    """A synthetic model that reads the value of each attribute from one pixel."""

    values: Mapping[str, tuple[str, ...]]

    def read(self, crops: UInt8[np.ndarray, "n h w 3"]) -> dict[str, Numbers]:
        return {name: crops[:, 0, place, 0].astype(np.int64) for place, name in enumerate(self.values)}


def reference(name: str, made: MadeGallery | HeadGallery | MadeModel) -> Reference:
    """Return a stand-in for a file of a kind, "gallery", "heads" or "attributes"."""
    return Reference(name, UNUSED, None, KINDS[name], made)


@dataclass(frozen=True, eq=False)
class FacesCase(engine.Case):
    """One method with a synthetic gallery, all crops for which its promise is checked, and some to draw."""

    method: Gallery | Attributes
    inputs: tuple[Row, ...]
    fits: tuple[Row, ...] = ()

    @cached_property
    def guarantee(self) -> Any:
        return self.method.guarantee(height=SIDE, width=SIDE, channels=3)

    @property
    def epsilon(self) -> Fraction:
        return Fraction(self.guarantee.epsilon or 0)

    @cached_property
    def gallery(self) -> MadeGallery | HeadGallery:
        made: MadeGallery | HeadGallery = self.method.gallery.held
        return made

    @property
    def names(self) -> tuple[str, ...]:
        return self.method.names if isinstance(self.method, Attributes) else ()

    @property
    def has_pose(self) -> bool:
        return isinstance(self.gallery, HeadGallery) and POSE in self.names

    @property
    def outcomes(self) -> int:
        """How many faces may be seen: heads in every pose that is an answer."""
        return len(self.gallery) * (len(VALUES[POSE]) if self.has_pose else 1)

    def outcome(self, faces: Sequence[int], pose: int = 0) -> tuple[int, ...]:
        return tuple(face + len(self.gallery) * pose for face in faces)

    def pose(self, answer: Row) -> int:
        """Return the pose of heads for a combination of answers, or 0."""
        return answer[self.names.index(POSE)] if self.has_pose else 0

    def draw(self, rows: Rows, bits: BitSource) -> Numbers:
        """Return the outcome that the method releases for each row; -1 if it is none of them.

        A crop is as light as its row says if a tone is read, and shows the row at its left.
        """
        lines = np.zeros((len(rows), SIDE), np.uint8)
        if isinstance(self.method, Attributes) and TONE in self.method.responses:
            lines[:] = np.array(LIGHT)[rows[:, -2]][:, None]
        lines[:, : rows.shape[1]] = rows
        crops = np.broadcast_to(lines[:, None, :, None], (len(rows), SIDE, SIDE, 3))
        if isinstance(self.method, Attributes):
            heads: Any = self.method.shown(crops, bits=bits)
            poses = [0 if head.own_yaw is None else 1 + head.own_yaw // YAW for head in heads]
            persons = [head.person(None) for head in heads]
            return np.array(persons, np.int64) + len(self.gallery) * np.array(poses, np.int64)
        released = self.method.release(crops, bits=bits)
        numbers = released[:, 0, -1, 0].astype(np.int64)
        faces: Any = self.gallery
        due = faces.faces[np.minimum(numbers, len(self.gallery) - 1)]
        return np.where((released == due).all(axis=(1, 2, 3)), numbers, -1)

    def __str__(self) -> str:
        method: Any = self.method
        if isinstance(method, Attributes):
            noun = "heads" if isinstance(self.gallery, HeadGallery) else "faces"
            return f"{len(self.gallery)} {noun}, {budgets_text(method.costs)}"
        near = "" if method.near is None else f", near = {method.near}"
        return f"{len(self.gallery)} faces, ε = {show(self.epsilon)}{near}"


ChancesOf = Callable[[FacesCase, Row], Chances]


def law_of(chances: ChancesOf) -> engine.LawOf:
    """Return the law of the faces for crops, given their chances."""

    def law(case: FacesCase, rows: Sequence[Row]) -> ProductLaw:
        found = np.empty((len(rows), case.outcomes), object)
        found[:] = [list(chances(case, row)) for row in rows]
        return ProductLaw.of([found])

    return law


def draw(case: FacesCase, row: Row, count: int, bits: BitSource) -> Outcomes:
    return case.draw(np.tile(np.array([row], np.int64), (count, 1)), bits)[:, None]


# The probability of every face, from the integer weights in use and from the definition

WHOLE: Final = 1 << 64
Joint = dict[Row, Fraction]
"""The probability of every combination of answers."""


def order_of(distances: Row) -> list[int]:
    """Return faces from the nearest to the farthest, ties by index."""
    return sorted(range(len(distances)), key=lambda face: (distances[face], face))


def by_rank(chances: Sequence[Fraction], distances: Row) -> Chances:
    """Return the probability of every face, given that of every rank."""
    order = order_of(distances)
    return tuple(chances[order.index(face)] for face in range(len(distances)))


def shares(weights: Sequence[float]) -> tuple[Fraction, ...]:
    exact = [Fraction(weight) for weight in weights]
    return tuple(weight / sum(exact) for weight in exact)


def own_ranks(case: FacesCase) -> tuple[Fraction, ...]:
    own: Any = case.method
    count = len(case.gallery)
    return RankChoice(count=count, epsilon=own.epsilon, near=own.near).probabilities


def own_choice(case: FacesCase, row: Row) -> Chances:
    """Return the law of the choice by rank, by the integer weights in use."""
    return by_rank(own_ranks(case), row)


def written_choice(case: FacesCase, row: Row) -> Chances:
    """Return the law of the choice by rank, by definition."""
    own: Any = case.method
    return by_rank(_ranks(len(case.gallery), float(own.epsilon), own.near), row)


@lru_cache(maxsize=64)
def _ranks(count: int, epsilon: float, near: int | None) -> tuple[Fraction, ...]:
    tried = range(1, count) if near is None else (near,)
    levels = [shares([math.exp(epsilon)] * t + [1.0] * (count - t)) for t in tried]
    return min(levels, key=lambda chances: sum(rank * chance for rank, chance in enumerate(chances)))


@lru_cache(maxsize=256)
def flips(count: int, rate: float) -> tuple[float, ...]:
    """Return the probabilities of permute-and-flip over ranks, over all permutations."""
    taken = [math.exp(-rate * rank / (count - 1)) for rank in range(count)]
    found = [0.0] * count
    for order in permutations(range(count)):
        left = 1.0
        for rank in order:
            found[rank] += left * taken[rank]
            left *= 1 - taken[rank]
    return tuple(chance / math.factorial(count) for chance in found)


Parts = list[tuple[Fraction, ...]]
"""The law of the answer of each attribute."""


def answers(
    parts: Callable[[FacesCase, Row], Parts],
    joint: Callable[[Parts], Joint] | None = None,
    faces: Callable[[FacesCase, Row, Row], tuple[int, ...]] | None = None,
) -> ChancesOf:
    """Return the law of the face for answers, which show one of their `faces`(answer, row) uniformly."""

    def chances(case: FacesCase, row: Row) -> Chances:
        found = [Fraction(0)] * case.outcomes
        for answer, chance in (joint or independent_draws)(parts(case, row)).items():
            shown = shown_for(case, answer) if faces is None else faces(case, answer, row)
            for face in shown:
                found[face] += chance / len(shown)
        return tuple(found)

    return chances


def responses(odds: Callable[[FacesCase, float, int], float]) -> Callable[[FacesCase, Row], Parts]:
    """Return the laws of answers whose true value is odds(case, ε, values) times as likely as any other."""

    def parts(case: FacesCase, row: Row) -> Parts:
        own: Any = case.method
        return [
            kept_with(odds(case, float(budget), len(VALUES[name])), len(VALUES[name]), true)
            for (name, budget), true in zip(own.costs, row, strict=False)
        ]

    return parts


def kept_with(odds: float, count: int, true: int) -> tuple[Fraction, ...]:
    """Return the law of an answer whose true value is `odds` times as likely as any other."""
    return shares([odds if value == true else 1.0 for value in range(count)])


def independent_draws(parts: Sequence[Sequence[Fraction]]) -> Joint:
    """Return the law of combinations whose parts are drawn independently."""
    return {
        answer: math.prod((part[value] for part, value in zip(parts, answer, strict=True)), start=Fraction(1))
        for answer in product(*(range(len(part)) for part in parts))
    }


def single_draw(parts: Sequence[Sequence[Fraction]]) -> Joint:
    """Return the law of combinations whose parts all come from one uniform number."""
    ends = [[sum(part[: value + 1], Fraction(0)) for value in range(len(part))] for part in parts]
    found: Joint = {answer: Fraction(0) for answer in independent_draws(parts)}
    last = Fraction(0)
    for cut in sorted({end for own in ends for end in own}):
        answer = tuple(sum(end <= last for end in own) for own in ends)
        found[answer] += cut - last
        last = cut
    return found


def shown_for(case: FacesCase, answer: Row) -> tuple[int, ...]:
    """Return what may be seen for a combination of answers: its faces, and heads in its pose."""
    own: Any = case.method
    return case.outcome(tuple(own.table[answer].tolist()), case.pose(answer))


def own_parts(case: FacesCase, row: Row) -> Parts:
    """Return the laws of answers by the integers of the method's own randomised responses."""
    own: Any = case.method
    rows = [response.matrix.weights for response in own.responses.values()]
    return [tuple(Fraction(w, WHOLE) for w in whole[true]) for whole, true in zip(rows, row, strict=False)]


right_responses = responses(lambda case, epsilon, count: math.exp(epsilon))
written_answers = answers(right_responses)
own_answers = answers(own_parts)
"""The laws of the face for randomised responses, by definition and by the integers in use."""
FARTHEST: Final = 5  # the largest distance of crops in the audit


def wrong(name: str, chances: ChancesOf, **more: Any) -> Version:
    return Version(name=name, law=law_of(chances), **more)


def _epsilon(case: FacesCase) -> float:
    return float(case.epsilon)


def _twice(case: FacesCase, row: Row) -> Chances:
    last = len(row) - 1
    return by_rank(shares([math.exp(-2 * _epsilon(case) * rank / last) for rank in range(len(row))]), row)


def _raw(case: FacesCase, row: Row) -> Chances:
    """Use distances themselves in the exponent, so that the normalising constant depends on the crop."""
    return shares([math.exp(-_epsilon(case) * distance / FARTHEST) for distance in row])


def _flips(case: FacesCase, row: Row) -> Chances:
    return by_rank(shares(flips(len(row), _epsilon(case))), row)


OF_GALLERY: Final = (
    wrong("weights of twice the budget", _twice),
    wrong("distances for ranks", _raw),
    wrong("permute-and-flip at rate ε", _flips),
    wrong("every draw used twice", own_choice, gates=BY_DRAWS, repeated=2),
)


def _last_shown(case: FacesCase, row: Row) -> Parts:
    *parts, last = right_responses(case, row)
    return [*parts, tuple(Fraction(value == row[len(parts)]) for value in range(len(last)))]


def _nearest(case: FacesCase, answer: Row, row: Row) -> tuple[int, ...]:
    faces = shown_for(case, answer)
    return (faces[row[-1] % len(faces)],)


OF_ATTRIBUTES: Final = (
    wrong("kept as with two values", answers(responses(lambda _, e, count: math.exp(e) * (count - 1)))),
    wrong("one draw for all attributes", answers(right_responses, single_draw)),
    wrong("budgets not divided", answers(responses(lambda case, e, count: math.exp(_epsilon(case))))),
    wrong("last attribute not randomised", answers(_last_shown)),
    wrong("nearest face of the right kind", answers(right_responses, faces=_nearest)),
    wrong(
        "turned as the crop's head",
        answers(
            right_responses,
            faces=lambda case, answer, row: tuple(
                face + len(case.gallery) * (case.pose(row) - case.pose(answer))
                for face in shown_for(case, answer)
            ),
        ),
    ),
    wrong("every draw used twice", own_answers, gates=BY_DRAWS, repeated=2),
)


DISTANCES: Final = (0, 1, 2, 5)  # as many as faces, so that crops have every order and every tie
CROPS: Final = (0, 1, 2, 5), (1, 1, 1, 1), (2, 0, 0, 5)
SHADES: Final = (0, 201)  # other contents of a crop, on which nothing may depend
DRAWS: Final = 20_000
FEW_DRAWS: Final = 5_000  # draws of faces for answers, each of which takes a word of its own


def faces_audit(
    method: type[Gallery | Attributes],
    own: ChancesOf,
    written: ChancesOf,
    mutants: tuple[Version, ...],
    level: Level,
) -> Audit:
    """Return the audit of one method: the law of the integers in use, and as written from the definition."""
    intact = Version(name="intact", law=law_of(own), draw=draw)
    gates = law_gates(intact, law_of(written))
    return Audit(method=method, intact=intact, mutants=mutants, level=level, gates=gates)


def _rank_case(count: int, epsilon: Any, near: int | None = None) -> FacesCase:
    faces = MadeGallery((), tuple((number,) for number in range(count)))
    method = Gallery(epsilon=epsilon, near=near, gallery=reference("gallery", faces))
    return FacesCase(method, tuple(product(DISTANCES, repeat=count)))


def _attributes_case(attributes: str, without: tuple[Row, ...] = (), *, each: int = 2) -> FacesCase:
    """Return the attributes method with `each` faces per combination, except those in `without`."""
    values = _values(attributes)
    every = list(product(*(range(len(words)) for words in values.values())))
    looks = tuple((*row, 200 * n // each) for row in every if row not in without for n in range(1, each + 1))
    faces, model = MadeGallery(tuple(values), looks), reference("attributes", MadeModel(values))
    method = Attributes(attributes=attributes, gallery=reference("gallery", faces), model=model)
    inputs = tuple((*row, shade) for row in every for shade in SHADES)
    return FacesCase(method, inputs)


def _values(attributes: str) -> dict[str, tuple[str, ...]]:
    names = [word.partition("=")[0] for word in attributes.split(",")]
    return {name: VALUES[name] for name in VALUES if name in names}


def _heads(attributes: str, *, each: int = 2) -> FacesCase:
    """Return the attributes method with `each` heads per combination; every head has every pose."""
    values = _values(attributes)
    own = [name for name in values if name != POSE]
    looks = [row for row in product(*(range(len(values[name])) for name in own)) for _ in range(each)]
    model = reference(
        "attributes", MadeModel({name: words for name, words in values.items() if name != TONE})
    )
    method = Attributes(
        attributes=attributes, gallery=reference("heads", made_heads(looks, own)), model=model, protect="head"
    )
    every = product(*(range(len(words)) for words in values.values()))
    return FacesCase(method, tuple((*row, shade) for row in every for shade in SHADES))


def _choices() -> Audit:
    exact = _rank_case(4, 2), _rank_case(3, 1)
    drawn = tuple(Drawn(case, DRAWS, tuple(crop[: len(case.gallery)] for crop in CROPS)) for case in exact)
    return faces_audit(Gallery, own_choice, written_choice, OF_GALLERY, Level(exact, drawn))


def _kept_audit() -> Audit:
    exact = (
        _attributes_case("gender=2,age=1", ((0, 0), (1, 2), (1, 3))),
        _heads("gender=0.5,tone=1"),
        _heads("gender=0.5,pose=1"),
    )
    drawn = tuple(
        Drawn(case, FEW_DRAWS, ((0, 1, 200), (1, last, 0), (0, 0, 0)))
        for case, last in zip(exact, (3, 3, 1), strict=True)
    )
    return faces_audit(Attributes, own_answers, written_answers, OF_ATTRIBUTES, Level(exact, drawn))


AUDITS: Final[dict[str, Audit]] = {audit.method.name: audit for audit in (_choices(), _kept_audit())}
