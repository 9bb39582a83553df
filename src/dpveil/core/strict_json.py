"""JSON that anybody may have written, read strictly into frozen dataclasses by their fields' annotations.

A certificate, a plan of a clip or a row of a log is one dataclass; `Annotated` says what else has to hold:
`width: Annotated[int, between(1, 65_535)]`. Every failure is one line that names the field and its value.
No kept library does this: pydantic takes a third of a release's time to load, and msgspec names no values.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Mapping
from dataclasses import MISSING, dataclass, fields, is_dataclass
from fractions import Fraction
from functools import cache
from types import NoneType, UnionType
from typing import Annotated, Any, Final, TypeVar, Union, cast, get_args, get_origin, get_type_hints

from dpveil.core.rationals import exact
from dpveil.errors import InvalidParameter, suggestion

Kind = TypeVar("Kind")
MOST_SHOWN: Final = 60  # most characters of a value or a name that an error repeats
TYPES: Final[dict[Any, str]] = {
    **{str: "a text", int: "a whole number", float: "a number", bool: "true or false"},
    **{list: "a list", dict: "an object"},
}


@dataclass(frozen=True)
class Check:
    """What has to hold of a value, and the `problem` if it does not; for `Annotated`."""

    holds: Callable[[Any], object]
    problem: str


def between(least: int, most: int) -> Check:
    """Return the check of a number from `least` to `most`, both included."""
    return Check(lambda value: least <= value <= most, f"is not from {least:,} to {most:,}")


def at_most(count: int) -> Check:
    """Return the check of a list or text with `count` entries or letters at most."""
    return Check(lambda value: len(value) <= count, f"has more than {count:,} entries")


def one_of(*values: object) -> Check:
    """Return the check of one of these values."""
    return Check(lambda value: value in values, f"is none of {', '.join(map(str, values))}")


def matching(pattern: str | re.Pattern[str], what: str) -> Check:
    """Return the check of a text that is `what` a regular expression describes, all of it."""
    return Check(re.compile(pattern).fullmatch, f"is no {what}")


Hash = Annotated[str, matching("[0-9a-f]{64}", "SHA-256")]
Single = Check(
    lambda given: not any(isinstance(each, list | dict) for each in given.values()), "are not single values"
)
Parameters = Annotated[Mapping[str, Any], Single]
"""Parameters of a method, by name: numbers, words, true or false, or nothing."""


def fault(where: str, value: object, problem: str, hint: str = "") -> InvalidParameter:
    """Return the error about a field: its value is untrusted, and shown if it is short, and printable."""
    if isinstance(value, str):
        value = value if value.isprintable() else ascii(value)[1:-1]
        value = value if len(value) <= MOST_SHOWN else f"{value[:MOST_SHOWN]}…"
    elif not isinstance(value, bool | int | float) or abs(value) > 1e18:
        value = None
    return InvalidParameter(where or "it", value, problem, hint=hint)


def read(kind: type[Kind], data: object, where: str = "") -> Kind:
    """Return `data`, as `json.loads` returns it, as a value of this type; raises `InvalidParameter`.

    Types are bool, int, float, str, `Fraction`, dataclasses, classes with a method `from_json` of the data
    and its place, tuples and mappings of these, and each of them or None.
    """
    value: Kind = _read(kind, data, where)
    return value


def _read(kind: Any, data: object, where: str) -> Any:
    outer, inner = get_origin(kind), get_args(kind)
    if outer is Annotated:
        value = _read(inner[0], data, where)
        for check in kind.__metadata__:
            if not check.holds(value):
                raise fault(where, data, check.problem)
        return value
    if outer in (UnionType, Union):
        return None if data is None else _read(next(one for one in inner if one is not NoneType), data, where)
    if outer is tuple:
        listed = list(data) if isinstance(data, tuple) else of_type(list, data, where)
        parts = inner[:1] * len(listed) if inner[-1] is Ellipsis else inner
        if len(parts) != len(listed):
            raise fault(where, None, f"has not {len(parts)} entries")
        pairs = enumerate(zip(parts, listed, strict=True))
        return tuple(_read(one, each, f"{where}[{at}]") for at, (one, each) in pairs)
    if outer is Mapping:
        given = of_type(dict, data, where)
        return {name: _read(inner[1], each, _within(where, name)) for name, each in given.items()}
    if kind is Any or (is_dataclass(kind) and isinstance(data, kind)):  # type: ignore[arg-type]
        return data
    if hasattr(kind, "from_json"):
        return kind.from_json(data, where)
    if kind is Fraction:
        return exact(data, where)
    if isinstance(kind, type) and is_dataclass(kind):
        return read_object(kind, data, where)
    return of_type(kind, data, where)


def of_type(kind: type[Kind], data: object, where: str) -> Kind:
    """Return `data` if it is of this type of JSON, to which whole numbers are numbers, too."""
    if kind is float and type(data) is int:
        return kind(data)  # type: ignore[call-arg]
    if type(data) is not kind:  # True is an int to Python
        raise fault(where, data, f"is not {TYPES[kind]}")
    return data


def read_object(kind: type[Kind], data: object, where: str = "") -> Kind:
    """Return an object of JSON as this dataclass, whose defaults stand for members that are left out."""
    given, known = of_type(dict, data, where), _members(cast(Hashable, kind))
    for name in given:
        if name not in known:
            hint = f"{suggestion(name, known)}its fields are {', '.join(known)}"
            raise fault(_within(where, name), given[name], "is unknown", hint)
    for name, (_, needed) in known.items():
        if needed and name not in given:
            raise fault(_within(where, name), None, "is missing")
    values = {name: _read(known[name][0], each, _within(where, name)) for name, each in given.items()}
    try:
        return kind(**values)
    except InvalidParameter as error:  # what no single field says
        raise InvalidParameter(
            _within(where, error.name), error.value, error.problem, hint=error.hint
        ) from error


def check_fields(made: Any) -> None:
    """Raise `InvalidParameter` unless the fields of a dataclass are what their annotations say."""
    for name, (kind, _) in _members(cast(Hashable, type(made))).items():
        _read(kind, getattr(made, name), name)


@cache
def _members(kind: Hashable) -> dict[str, tuple[Any, bool]]:
    given: Any = kind
    types, found = get_type_hints(given, include_extras=True), [one for one in fields(given) if one.init]
    return {one.name: (types[one.name], one.default is one.default_factory is MISSING) for one in found}


def _within(where: str, name: str) -> str:
    shown = name if name.isprintable() and len(name) <= MOST_SHOWN else ascii(name[:MOST_SHOWN])
    return f"{where}.{shown}" if where else shown
