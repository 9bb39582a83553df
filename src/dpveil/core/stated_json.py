"""JSON that came back: certificates and plans, whose numbers are as short as dpveil writes them."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, Final

MOST_DIGITS: Final = 32
"""Longest JSON number in characters: dpveil writes integers up to 2^53 and shortest decimals of floats."""


class NotANumber(ValueError):
    """A number that dpveil writes nowhere: `text` is its beginning, `problem` what is wrong with it."""

    def __init__(self, text: str, problem: str) -> None:
        super().__init__(f"{text[:20]} {problem}")
        self.text, self.problem = text[:20], problem


def loads(text: str, *, pairs: Callable[[list[tuple[str, Any]]], Any] | None = None) -> Any:
    """Return the value of a JSON text; objects are made by `pairs`, or are dictionaries.

    Raises `NotANumber` for numbers of more than MOST_DIGITS characters, NaN and infinities, and `ValueError`
    for other texts that are no JSON.

    >>> loads('{"epsilon": 0.5, "m": 16}')
    {'epsilon': 0.5, 'm': 16}
    """
    return json.loads(
        text, parse_int=_int, parse_float=_float, parse_constant=_refuse, object_pairs_hook=pairs
    )


def _int(digits: str) -> int:
    return int(_short(digits))


def _float(digits: str) -> float:
    return float(_short(digits))


def _short(digits: str) -> str:
    if len(digits) > MOST_DIGITS:
        raise NotANumber(f"{digits[:19]}…", "has too many digits")
    return digits


def _refuse(name: str) -> None:
    raise NotANumber(name, "is not a number")
