"""Dataclass fields that validate and normalise user input, the same way in every method."""

from __future__ import annotations

from fractions import Fraction
from numbers import Integral
from typing import Any, Generic, TypeVar, overload

from dpveil.core.rationals import Json, Number, exact, few_digits, to_json
from dpveil.errors import InvalidParameter, suggestion

In = TypeVar("In", contravariant=True)
Out = TypeVar("Out", covariant=True)

SCALE = "there is no default: 1 or less is strong, 2 moderate, 4 weak, 10 practically none"
"""The hint for a missing epsilon: the scale of `accounting.meaning` for any two records or photos."""
MISSING_HINTS = {
    "block": "such as 16, in pixels",
    "epsilon": SCALE,
    "delta": "there is no default: choose well below one over the number of people, such as 1e-6",
    "rho": "there is no default: rho = 0.5 is about epsilon 5 at delta 1e-5",
}
CEILING = 2**31  # the largest count that is accepted
ALL = "all"  # the word for a neighbourhood of all pixels, which is any-image


class Parameter(Generic[In, Out]):
    """A typed descriptor for a field of a frozen dataclass; subclasses define what `check` accepts.

    `hint` says what to write where the value is missing; without it, `MISSING_HINTS` is asked by name.
    """

    metavar: str = "FILE"
    """The placeholder of the value in a table of options; empty for a flag."""

    def __init__(self, *, optional: bool = False, default: Any = None, hint: str = "") -> None:
        self.optional = optional
        self.default = default
        self.hint = hint
        self.name = "parameter"

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    @overload
    def __get__(self, instance: None, owner: type) -> Any: ...
    @overload
    def __get__(self, instance: object, owner: type) -> Out: ...
    def __get__(self, instance: object | None, owner: type) -> Any:
        return self.default if instance is None else instance.__dict__[self.name]

    def __set__(self, instance: object, value: In) -> None:
        if value is None and not self.optional:
            raise InvalidParameter(
                self.name,
                None,
                "is missing",
                hint=self.hint or MISSING_HINTS.get(self.name, "give it a value"),
            )
        checked = None if value is None else self.check(value)
        if isinstance(checked, Fraction):
            few_digits(checked, self.name)
        instance.__dict__[self.name] = checked

    def check(self, value: In) -> Out:
        raise NotImplementedError

    def stated(self, value: Json) -> Any:
        """Return `value`, as a received certificate states it, in a form that `check` accepts.

        The certificate's author chose `value`, so a parameter that can name a file accepts only the form
        that certificates use, and opens nothing. Raises `InvalidParameter`.
        """
        raise NotImplementedError


class Value(Parameter[In, Out]):
    """A number or a word, which has the same form in certificates as in calls."""

    metavar = "VALUE"

    def stated(self, value: Json) -> Any:
        """Return `value` unchanged, as `check` opens no files; raises `InvalidParameter` for collections."""
        if isinstance(value, list | dict):
            raise InvalidParameter(self.name, type(value).__name__, "is not a single value")
        return value


class Positive(Value[Number, Fraction]):
    """A rational number above zero, such as ε or ρ; exact, with no default."""

    def check(self, value: Number) -> Fraction:
        return positive(value, self.name)


class OptionalPositive(Value[Number | None, Fraction | None]):
    """A rational number above zero, or None where another parameter is given instead."""

    def check(self, value: Number | None) -> Fraction | None:
        return None if value is None else positive(value, self.name)


class Probability(Value[Number, Fraction]):
    """A rational number strictly between 0 and 1; exact, with no default."""

    def check(self, value: Number) -> Fraction:
        return probability(value, self.name)


class OptionalProbability(Value[Number | None, Fraction | None]):
    """A rational number strictly between 0 and 1, or None."""

    def check(self, value: Number | None) -> Fraction | None:
        return None if value is None else probability(value, self.name)


class Between(Value[Number, Fraction]):
    """A rational number from `low` to `high`, both included; `hint` suggests a value."""

    def __init__(self, low: Number, high: Number, *, hint: str, default: Number | None = None) -> None:
        super().__init__(default=default if default is None else exact(default), hint=hint)
        self.low, self.high = exact(low), exact(high)

    def check(self, value: Number) -> Fraction:
        number = exact(value, self.name)
        if not self.low <= number <= self.high:
            span = f"{to_json(self.low)} and {to_json(self.high)}"
            raise InvalidParameter(self.name, value, f"is not between {span}", hint=self.hint)
        return number


class Count(Value[int, int]):
    """A whole number from `low` to `high`, both included, such as a block size in pixels."""

    metavar = "N"

    def __init__(self, *, default: int | None = None, low: int = 1, high: int = CEILING) -> None:
        super().__init__(default=default)
        self.low, self.high = low, high

    def check(self, value: int) -> int:
        return check_count(value, self.name, low=self.low, high=self.high)


class OptionalCount(Value[int | None, int | None]):
    """A whole number from 1 to `CEILING`, or None."""

    metavar = "N"

    def check(self, value: int | None) -> int | None:
        return check_count(value, self.name)


class Neighbourhood(Value[int | str | None, int | None]):
    """A number of pixels, or "all" (or None) for all of them: any-image."""

    metavar = "N"

    def check(self, value: int | str | None) -> int | None:
        """Return `value` as a positive int, or None for all."""
        if isinstance(value, str) and value.strip() == ALL:
            return None
        if isinstance(value, str):
            hint = f"a whole number, or {ALL}"
            raise InvalidParameter(self.name, value, "is not a whole number of pixels", hint=hint)
        return check_count(value, self.name)


class OneOf(Value[str | None, str | None]):
    """One of a few words; None where it is `optional`."""

    metavar = "NAME"

    def __init__(self, *words: str, default: str | None = None, optional: bool = False) -> None:
        super().__init__(
            default=default, optional=optional, hint=" or ".join([", ".join(words[:-1]), words[-1]])
        )
        self.words = words

    def check(self, value: str | None) -> str | None:
        if value not in self.words:
            hint = f"{suggestion(str(value), self.words)}write {self.hint}"
            raise InvalidParameter(self.name, value, "is unknown", hint=hint)
        return value


class Flag(Value[bool, bool]):
    """A boolean."""

    metavar = ""

    def check(self, value: bool) -> bool:
        if not isinstance(value, bool):
            raise InvalidParameter(self.name, value, "is not true or false", hint="give True or False")
        return value


def positive(value: Number, name: str) -> Fraction:
    """Return `value` as a rational from 1e-12 to 1e12 or raise `InvalidParameter`."""
    number = exact(value, name)
    if number <= 0:
        raise InvalidParameter(name, value, "is not above 0", hint="give a positive number")
    if not Fraction(1, 10**12) <= number <= 10**12:
        raise InvalidParameter(name, value, "is out of range", hint="choose a value between 1e-12 and 1e12")
    return number


def probability(value: Number, name: str) -> Fraction:
    """Return `value` as a rational strictly between 0 and 1 or raise `InvalidParameter`."""
    number = exact(value, name)
    if not 0 < number < 1:
        usual = "such as 1e-6" if name == "delta" else "such as 0.5"
        raise InvalidParameter(name, value, "is not between 0 and 1", hint=usual)
    return number


def check_count(value: object, name: str, *, low: int = 1, high: int = CEILING) -> int:
    """Return `value` as an int from `low` to `high` or raise `InvalidParameter`."""
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise InvalidParameter(name, value, "is not a whole number", hint="write it as 1, 16 or 256")
    count = int(value)
    if not low <= count <= high:
        choice = f"{low} or more" if value < low and high == CEILING else f"from {low} to {high}"
        raise InvalidParameter(name, value, "is out of range", hint=f"choose {choice}")
    return count
