"""The interface of a post-processing step, from released pixels to pixels of the same shape."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import fields
from fractions import Fraction
from typing import ClassVar, Self

import numpy as np
from jaxtyping import UInt8

from dpveil.core.numbers import to_json


class Step(ABC):
    """A post-processing step: a frozen dataclass with one parameter, a number or a trained file.

    `name` is what users write before the colon, `usual` the step with its default, `summary` one line.
    """

    name: ClassVar[str]
    usual: ClassVar[str]
    summary: ClassVar[str]

    @abstractmethod
    def __call__(self, image: UInt8[np.ndarray, "h w c"]) -> UInt8[np.ndarray, "h w c"]:
        """Return the processed levels; `image` are the released levels 0..255 of one region."""

    @classmethod
    def of(cls, number: str) -> Self:
        """Return the step with this number, given as text."""
        return cls(number)  # type: ignore[call-arg]

    @classmethod
    def stated(cls, text: str) -> Self:
        """Return the step with this text after the colon, as a certificate states it; opens no file."""
        return cls.of(text)

    @property
    def description(self) -> str:
        """The step as users and certificates write it: name, colon, number or reference."""
        value = getattr(self, fields(self)[0].name)  # type: ignore[arg-type]
        return f"{self.name}:{to_json(value) if isinstance(value, Fraction) else value}"
