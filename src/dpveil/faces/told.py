"""What a decoder is told of a face beside its code: attributes, each released by randomised response."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, Final, cast

import cv2
import numpy as np
from jaxtyping import Int64, UInt8

from dpveil.codecs import Codec
from dpveil.codecs.statistics import Codes
from dpveil.errors import InvalidParameter
from dpveil.faces.attribute_model import SIDE, VALUES, AttributeModel
from dpveil.faces.base import Crops
from dpveil.faces.kept import KEPT, Budgets, chosen, written
from dpveil.mechanisms.choice.randomised_response import RandomisedResponse
from dpveil.noise.bits import BitSource

Answers = Mapping[str, Int64[np.ndarray, " n"]]
"""For each attribute the index of the value that is told, for each of n faces."""
NOTHING: Final[Mapping[str, float]] = {}
"""A face that is not turned."""


@dataclass(frozen=True)
class Told:
    """What a decoder is told of `attributes`: values after randomised response, or chosen by the user.

    Raises `InvalidParameter` for an attribute that the codecs of this kind have no input for, and for one
    with neither budget nor value.
    """

    attributes: Budgets
    codec: type[Codec]

    def __post_init__(self) -> None:
        for name, own in self.attributes:
            if name not in self.codec.attributes:
                able = ", ".join(self.codec.attributes) or "none: choose another codec, such as gan"
                problem = f"is not what a decoder of {self.codec.name} can be told"
                raise InvalidParameter(KEPT, name, problem, hint=f"it takes {able}")
            if own is None:
                hint = f"such as {name}=2, beside the budget of the code; or {name}={VALUES[name][0]}"
                raise InvalidParameter(KEPT, name, "has no budget", hint=hint)

    @cached_property
    def costs(self) -> tuple[tuple[str, Fraction], ...]:
        """The attributes that are read, each with its ε."""
        return tuple((name, own) for name, own in self.attributes if isinstance(own, Fraction))

    @cached_property
    def chosen(self) -> dict[str, str]:
        """The attributes whose value the user chose, and that value."""
        return chosen(self.attributes)

    @cached_property
    def responses(self) -> dict[str, RandomisedResponse]:
        """The randomised response of each attribute that is read."""
        return {
            name: RandomisedResponse(epsilon=budget, values=len(VALUES[name])) for name, budget in self.costs
        }

    @property
    def total(self) -> Fraction:
        """The sum of the budgets: all that the answers cost, for any two faces."""
        return sum((budget for _, budget in self.costs), Fraction(0))

    @property
    def written(self) -> str:
        """Budgets and chosen values as they are written on the command line."""
        return written((name, own) for name, own in self.attributes if own is not None)

    def check(self, model: AttributeModel) -> None:
        """Raise `InvalidParameter` unless the model reads all that is asked of it."""
        for name, _ in self.costs:
            if model.values.get(name) != VALUES[name]:
                hint = f"the model reads {', '.join(model.values)}"
                raise InvalidParameter(KEPT, name, "is not what the model reads", hint=hint)

    def answers(self, crops: Crops, model: AttributeModel | None, bits: BitSource) -> Answers:
        """Return what is told: readings of the crops after randomised response, and the chosen values."""
        read = {} if model is None else model.read(_sized(crops))
        drawn = {name: response.draw(read[name], bits) for name, response in self.responses.items()}
        picked = {
            name: np.full(len(crops), VALUES[name].index(word), np.int64)
            for name, word in self.chosen.items()
        }
        return drawn | picked

    def decoded(
        self, codec: Codec, codes: Codes, answers: Answers, turned: Mapping[str, float] = NOTHING
    ) -> Crops:
        """Return the decoded crops of codes whose decoder is told the answers and how to turn, no more."""
        if not answers and not turned:
            return codec.decode(codes)
        rows = np.stack([np.zeros(len(codes), np.int64), *answers.values()], axis=1)
        out = np.empty((len(codes), *codec.canvas), np.uint8)
        for row in np.unique(rows, axis=0):
            own = (rows == row).all(axis=1)
            inputs = (codec.attributes[name] for name in answers)
            given = {name: levels[at] for (name, levels), at in zip(inputs, row[1:], strict=True)}
            out[own] = cast("Any", codec).render(codes[own], **given, **turned)
        return out


def _sized(crops: Crops) -> Crops:
    """Return the crops at the side that attribute models read."""
    if crops.shape[1:3] == (SIDE, SIDE):
        return crops
    way = cv2.INTER_AREA if crops.shape[1] > SIDE else cv2.INTER_CUBIC
    return np.stack([cv2.resize(crop, (SIDE, SIDE), interpolation=way) for crop in crops])
