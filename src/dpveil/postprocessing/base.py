"""The interface of a post-processing step: released pixels in, released pixels of the same shape out."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import fields
from fractions import Fraction
from typing import ClassVar, Self

import numpy as np
from jaxtyping import UInt8

from dpveil.core.numbers import to_json


class Step(ABC):
    """A frozen dataclass with one number. It reads released pixels only, so it costs nothing.

    `name` is what users write before the colon, `usual` a whole step as an example, `summary` one line.
    """

    name: ClassVar[str]
    usual: ClassVar[str]
    summary: ClassVar[str]

    @abstractmethod
    def __call__(self, image: UInt8[np.ndarray, "h w c"]) -> UInt8[np.ndarray, "h w c"]:
        """Return what follows from `image`, the released levels of one region."""

    @classmethod
    def of(cls, number: str) -> Self:
        """Return the step with this number, as it was written."""
        return cls(number)  # type: ignore[call-arg]

    @property
    def description(self) -> str:
        """The step as users write it, and as certificates state it: its name, a colon and its number."""
        value = getattr(self, fields(self)[0].name)  # type: ignore[arg-type]
        return f"{self.name}:{to_json(value) if isinstance(value, Fraction) else value}"
