"""The parameter that names the kept attributes of a face and their budgets."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fractions import Fraction
from typing import Any, Final

from dpveil.core.parameters import Value, positive
from dpveil.core.rationals import Json, Number, exact, few_digits, to_json
from dpveil.errors import InvalidParameter, UnknownName, suggestion
from dpveil.faces.attribute_model import VALUES

NONE: Final = "none"
KEPT: Final = "attributes"  # the parameter's name
HINT: Final = "such as gender=4,age=2, or gender,age and a total epsilon, or none"
LARGE: Final = 15
"""The budget of an attribute above which randomised response practically never changes a reading."""
LARGE_NOTE: Final = "is a budget that practically always keeps the reading"
Budgets = tuple[tuple[str, Fraction | str | None], ...]
"""Attributes, each with its ε, or None if the user gives a total, or the value that the user chose."""


class Stated(str):
    """Budgets as a received certificate states them, which may be computed ones."""


class AttributeBudgets(Value[object, Budgets]):
    """Names of attributes, either all with a budget or all without: "gender=4,age=2", or a mapping.

    A value for a budget, "tone=medium", is what every face will show, whatever the photo shows: it costs
    nothing, for nothing is read.
    """

    hint = HINT

    def stated(self, value: Json) -> Any:
        """Return `value` such that `check` accepts budgets that were computed."""
        told = super().stated(value)
        return Stated(told) if isinstance(told, str) else told

    def check(self, value: object) -> Budgets:
        """Return pairs of name and budget, in the order of `attribute_model.VALUES`.

        Raises `UnknownName` for an attribute and `InvalidParameter`.
        """
        pairs = list(_pairs(value, self.name))
        names = [name for name, _ in pairs]
        for name in names:
            if name not in VALUES:
                raise UnknownName("attribute", name, VALUES)
            if names.count(name) > 1:
                raise InvalidParameter(self.name, name, "is given twice", hint="give it once")
        before = isinstance(value, Stated)
        budgets = {name: _budget(name, own, before=before) for name, own in pairs}
        if len({own is None for own in budgets.values() if not isinstance(own, str)}) > 1:
            bare = next(name for name, own in budgets.items() if own is None)
            raise InvalidParameter(self.name, bare, "has no budget, and others have", hint=HINT)
        return tuple((name, budgets[name]) for name in VALUES if name in budgets)


def budget_of_each(kept: Budgets, epsilon: Fraction | None) -> tuple[tuple[str, Fraction], ...]:
    """Return the budget of each attribute that is read: its own, or an equal share of the total `epsilon`.

    Raises `InvalidParameter` if the total is missing, is not the sum of the budgets, or nothing is read.
    """
    asked = [(name, own) for name, own in kept if not isinstance(own, str)]
    told = tuple((name, own) for name, own in asked if own is not None)
    if not asked and epsilon is not None:
        hint = f"keep something with {{{KEPT}}} gender,age, name a {{method}} such as dp-pix, or leave it out"
        names = {KEPT: KEPT, "method": "method"}
        problem = "is a budget, and nothing is kept"
        raise InvalidParameter("epsilon", to_json(epsilon), problem, hint=hint, arguments=names)
    if len(told) < len(asked):
        if epsilon is None:
            budgets = ",".join(f"{name}=1" for name, _ in asked)
            hint = f"give a total for what is kept, or each its own: {budgets}"
            raise InvalidParameter("epsilon", None, "is missing", hint=hint)
        return tuple((name, epsilon / len(asked)) for name, _ in asked)
    total = sum((own for _, own in told), Fraction(0))
    if epsilon is not None and total != epsilon:
        problem = f"is not the sum of the attributes' budgets, {to_json(total)}"
        raise InvalidParameter("epsilon", to_json(epsilon), problem, hint="leave it out")
    return told


def chosen_values(kept: Budgets) -> dict[str, str]:
    return {name: own for name, own in kept if isinstance(own, str)}


def large_budget_notes(costs: Iterable[tuple[str, Fraction]]) -> tuple[str, ...]:
    """Return a note for every attribute whose budget keeps it practically as it is.

    >>> large_budget_notes([("gender", Fraction(4)), ("pose", Fraction(30))])
    ('pose=30 is a budget that practically always keeps the reading',)
    """
    return tuple(f"{name}={to_json(own)} {LARGE_NOTE}" for name, own in costs if own > LARGE)


def _band(years: Fraction) -> str:
    """Return the band of an age, or the youngest for one below all bands."""
    youngest, *older = VALUES["age"]
    return next((band for band in reversed(older) if years >= int(band[:2])), youngest)


def budgets_text(kept: Iterable[tuple[str, Fraction | str]]) -> str:
    """Return budgets and chosen values as they are written on the command line, without rounding."""
    parts = ((name, own if isinstance(own, str) else to_json(own)) for name, own in kept)
    return ",".join(f"{name}={own}" for name, own in parts) or NONE


def _budget(name: str, own: Number | None, *, before: bool) -> Fraction | str | None:
    """Return a budget, or one of the attribute's values; raises `InvalidParameter`.

    With `before`, any budget is taken. An age in years, which would be taken for a budget, is refused; a
    fraction is one that was computed.
    """
    if own is None or (isinstance(own, str) and own in VALUES[name]):
        return own
    try:
        exact(own, f"epsilon of {name}")
    except InvalidParameter as error:
        if not isinstance(own, str):
            raise
        problem = "is neither a budget nor a value of this attribute"
        hint = f"{suggestion(own.lower(), VALUES[name])}values are {', '.join(VALUES[name])}"
        raise InvalidParameter(name, own, problem, hint=hint) from error
    budget = positive(own, f"epsilon of {name}")
    if not before and not isinstance(own, Fraction):
        few_digits(budget, f"epsilon of {name}")
    if name == "age" and budget > LARGE and not before and not isinstance(own, Fraction):
        hint = f"to show that age, write age={_band(budget)}; a budget for it is at most {LARGE}"
        raise InvalidParameter(name, own, "is a budget, and one that hides nothing", hint=hint)
    return budget


def _pairs(value: object, name: str) -> Iterable[tuple[str, Number | None]]:
    if isinstance(value, Mapping):
        yield from ((str(key), own) for key, own in value.items())
        return
    if isinstance(value, str):
        value = [] if value.strip() == NONE else value.split(",")
    if isinstance(value, bytes) or not isinstance(value, Iterable):
        raise InvalidParameter(name, type(value).__name__, "is not a list of attributes", hint=HINT)
    for entry in value:
        if isinstance(entry, tuple | list) and len(entry) == 2 and isinstance(entry[0], str):
            yield entry[0], entry[1]
            continue
        key, equals, own = (part.strip() for part in str(entry).partition("="))
        if not isinstance(entry, str) or not key or (equals and not own) or ":" in key:
            raise InvalidParameter(name, str(entry), "is not an attribute with its budget", hint=HINT)
        yield key, own or None
