"""Mutants of the choice of a face, and the galleries on which all are audited."""

from __future__ import annotations

import math
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import partial
from itertools import product
from typing import Any, Final

import numpy as np

from dpveil.faces import Attributes, Gallery
from dpveil.faces.attribute_model import TONE, VALUES
from dpveil.noise.bits import BitSource
from dpveil_audit.engine import Audit, Gate, drawing, uniforms
from dpveil_audit.faces.gallery import (
    Chances,
    DistributionOf,
    FacesCase,
    FacesDrawn,
    FacesLevel,
    FacesVersion,
    MadeGallery,
    MadeModel,
    Numbers,
    Row,
    Rows,
    bound_gate,
    by_rank,
    exact_gate,
    faces_for,
    fit_gate,
    flips,
    independent_draws,
    kept_with,
    own_answers,
    own_choice,
    own_ranks,
    reference,
    responses,
    same_gate,
    shares,
    shown_for,
    single_draw,
    spread,
    styles_for,
    written_answers,
    written_choice,
)

DIGITS: Final = 60
"""Decimal digits of exponentials."""
UNITS: Final = 50
BYTE: Final = 256
FARTHEST: Final = 5
"""The largest distance of crops in the audit."""


def wrong(name: str, distribution: DistributionOf, *, reused: bool = False) -> FacesVersion:
    """Return a mutant that draws from its own law; if `reused`, every draw of a crop is used twice."""

    def draw(case: FacesCase, rows: Rows, bits: BitSource) -> Numbers:
        found = np.empty(len(rows), np.int64)
        _, places, which = np.unique(rows @ (BYTE ** np.arange(rows.shape[1])), True, True)
        for number, place in enumerate(places):
            at = np.flatnonzero(which == number)
            ends = np.cumsum([float(chance) for chance in distribution(case, tuple(rows[place].tolist()))])
            numbers = uniforms(bits, len(at))
            numbers = np.repeat(numbers, 2)[: len(at)] if reused else numbers
            found[at] = np.minimum(np.searchsorted(ends, numbers, side="right"), len(ends) - 1)
        return found

    return FacesVersion(name=name, distribution=distribution, draw=draw)


def _epsilon(case: FacesCase) -> float:
    return float(case.epsilon)


def _twice(case: FacesCase, row: Row) -> Chances:
    """Omit the 2 in the exponent of the exponential mechanism."""
    last = len(row) - 1
    return by_rank(shares([math.exp(-2 * _epsilon(case) * rank / last) for rank in range(len(row))]), row)


def _raw(case: FacesCase, row: Row) -> Chances:
    """Use distances themselves in the exponent, so that the normalising constant depends on the crop."""
    return shares([math.exp(-_epsilon(case) * distance / FARTHEST) for distance in row])


def _ties(case: FacesCase, row: Row) -> Chances:
    """Give equally distant faces one rank, and skip the ranks after it."""
    ranks = own_ranks(case)
    return shares([float(ranks[sorted(row).index(distance)]) for distance in row])


def _flips(case: FacesCase, row: Row) -> Chances:
    """Use permute-and-flip at the rate for a score instead of ranks."""
    own: Any = case.method
    if str(own.law) != "permute-and-flip":
        return own_choice(case, row)
    return by_rank(shares(flips(len(row), _epsilon(case))), row)


def _unmargined(case: FacesCase, row: Row) -> Chances:
    """Round up the larger of two weights."""
    own: Any = case.method
    if str(own.law) != "two-level":
        return own_choice(case, row)
    with localcontext() as context:
        context.prec = DIGITS
        odds = (Decimal(case.epsilon.numerator) / Decimal(case.epsilon.denominator)).exp()
    ranks = own_ranks(case)
    low = 1 << UNITS
    high = math.ceil(Fraction(odds) * low)
    weights = [high if chance == ranks[0] else low for chance in ranks]
    return by_rank([Fraction(weight, sum(weights)) for weight in weights], row)


def _never_last(case: FacesCase, row: Row) -> Chances:
    """Give the farthest face no weight."""
    return by_rank(shares([float(chance) for chance in own_ranks(case)[:-1]] + [0.0]), row)


GALLERY: Final = (
    wrong("weights of twice the budget", _twice),
    wrong("distances for ranks", _raw),
    wrong("ties share a rank", _ties),
    wrong("permute-and-flip at rate ε", _flips),
    wrong("larger weight rounded up", _unmargined),
    wrong("farthest face left out", _never_last),
    wrong("every draw used twice", own_choice, reused=True),
)


def _shown(case: FacesCase, row: Row, parts: list[tuple[Fraction, ...]]) -> Chances:
    return spread(case, independent_draws(parts), lambda answer: shown_for(case, answer))


def _two_values(case: FacesCase, row: Row) -> Chances:
    """Keep the value with e^ε/(1 + e^ε), as if there were two values."""
    parts = [
        kept_with(math.exp(float(budget)) * (len(VALUES[name]) - 1), len(VALUES[name]), true)
        for (name, budget), true in _true(case, row)
    ]
    return _shown(case, row, parts)


def _among_all(case: FacesCase, row: Row) -> Chances:
    """Keep the value with the right probability, else draw among all values, the true one included."""
    parts = []
    for right, (_, true) in zip(responses(case, row), _true(case, row), strict=True):
        spilt = (1 - right[true]) / len(right)
        parts.append(tuple(spilt + (right[true] if value == true else 0) for value in range(len(right))))
    return _shown(case, row, parts)


def _one_draw(case: FacesCase, row: Row) -> Chances:
    return spread(case, single_draw(responses(case, row)), lambda answer: shown_for(case, answer))


def _undivided(case: FacesCase, row: Row) -> Chances:
    """Give every attribute the whole budget."""
    odds = math.exp(_epsilon(case))
    return _shown(
        case, row, [kept_with(odds, len(VALUES[name]), true) for (name, _), true in _true(case, row)]
    )


def _last_shown(case: FacesCase, row: Row) -> Chances:
    """Release the last attribute without noise."""
    *parts, last = responses(case, row)
    (_, true) = _true(case, row)[-1]
    return _shown(case, row, [*parts, tuple(Fraction(value == true) for value in range(len(last)))])


def _nearest(case: FacesCase, row: Row) -> Chances:
    """Choose among the faces for the answers the one most similar to the crop in something else."""

    def nearest(answer: Row) -> tuple[int, ...]:
        shade = len(row) - 1
        face = min(faces_for(case, answer), key=lambda n: abs(case.gallery.looks[n][shade] - row[shade]))
        return case.seen((face,), styles_for(case, answer))

    return spread(case, independent_draws(responses(case, row)), nearest)


def _own_glasses(case: FacesCase, row: Row) -> Chances:
    """Draw spectacles in a style that the crop decides."""

    def own(answer: Row) -> tuple[int, ...]:
        styles = styles_for(case, answer)
        return case.seen(faces_for(case, answer), (styles[min(row[-1], len(styles) - 1)],))

    return spread(case, independent_draws(responses(case, row)), own)


def _true(case: FacesCase, row: Row) -> list[tuple[tuple[str, Fraction], int]]:
    """Return every attribute with its budget and the true value."""
    own: Any = case.method
    return list(zip(own.costs, row, strict=False))


ATTRIBUTES: Final = (
    wrong("kept as with two values", _two_values),
    wrong("drawn among all values", _among_all),
    wrong("one draw for all attributes", _one_draw),
    wrong("budgets not divided", _undivided),
    wrong("last attribute not randomised", _last_shown),
    wrong("nearest face of the right kind", _nearest),
    wrong("spectacles like the crop's", _own_glasses),
    wrong("every draw used twice", own_answers, reused=True),
)


# Audit entries of the methods that show a face from a gallery

DISTANCES: Final = (0, 1, 2, 5)
"""As many as faces, so that crops have every order and every tie."""
CROPS: Final = (0, 1, 2, 5), (1, 1, 1, 1), (2, 0, 0, 5), (0, 5, 5, 5), (5, 0, 0, 0)
SHADES: Final = (0, 200)
"""Other contents of a crop, on which nothing may depend."""
DRAWS: Final = 20_000
FEW_DRAWS: Final = 5_000
"""Draws of faces for answers, each of which takes a word of its own."""


def faces_audit(
    method: type[Gallery | Attributes],
    own: DistributionOf,
    written: DistributionOf,
    mutants: tuple[FacesVersion, ...],
    quick: FacesLevel,
    deep: tuple[FacesCase, ...],
) -> Audit:
    """Return the audit of one method: the law of the integers in use, and as written from the definition."""
    return Audit(
        method=method,
        intact=FacesVersion(name="intact", distribution=own),
        mutants=mutants,
        levels={"quick": quick, "deep": quick.more(deep)},
        gates=(
            Gate("same", partial(same_gate, definition=written), ties=True),
            Gate("exact", exact_gate),
            drawing("fit", partial(fit_gate, definition=written)),
            drawing("bound", bound_gate),
        ),
    )


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


def _choices() -> Audit:
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
    return faces_audit(Gallery, own_choice, written_choice, GALLERY, level, deep)


def _kept() -> Audit:
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
    return faces_audit(Attributes, own_answers, written_answers, ATTRIBUTES, level, deep)


AUDITS: Final[dict[str, Audit]] = {audit.method.name: audit for audit in (_choices(), _kept())}
