"""What a metric guarantee measures, as data: promises of ε·d add only where d is one and the same."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from dpveil.core.numbers import Json
from dpveil.errors import InvalidParameter

NAME: Final = re.compile(r"[a-z][a-z0-9-]{0,39}")
MOST: Final = 16
"""The largest number of settings of one distance."""


@dataclass(frozen=True)
class Distance:
    """A metric on the protected data: its `name` and every setting that it depends on, such as the codec.

    The values of settings are numbers and strings, as in certificates. Equal objects stand for equal
    functions. Raises `InvalidParameter` for a malformed name, a value of another type, and too many settings.

    >>> Distance.of("chord", clip=5, codec="ab") == Distance.of("chord", codec="ab", clip=5)
    True
    """

    name: str
    settings: tuple[tuple[str, str | int | float], ...] = ()

    def __post_init__(self) -> None:
        names: list[object] = [self.name, *(name for name, _ in self.settings)]
        values: list[object] = [value for _, value in self.settings]
        if not all(isinstance(name, str) and NAME.fullmatch(name) for name in names) or len(values) > MOST:
            raise InvalidParameter("distance", None, "has a name that is none", hint="such as box-mean")
        if any(isinstance(value, bool) or not isinstance(value, str | int | float) for value in values):
            raise InvalidParameter("distance", self.name, "has a setting that is no number and no text")

    @classmethod
    def of(cls, name: str, /, **settings: Any) -> Distance:
        """Return the distance with these settings, sorted by name."""
        return cls(name, tuple(sorted(settings.items())))

    def to_json(self) -> dict[str, Json]:
        """Return the JSON object of a certificate."""
        return {"name": self.name, "settings": dict(self.settings)}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Distance:
        """Return the distance that `to_json` wrote; raises `InvalidParameter`, `KeyError` and `TypeError`."""
        return cls.of(data["name"], **data["settings"])
