"""The attribute model and its file: a small network on gradients and colours."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Final, Self

import cv2
import numpy as np
from jaxtyping import Float32, Int64, UInt8

from dpveil.assets.cards import Card, CardWords
from dpveil.assets.reference import Kind
from dpveil.assets.store import Stored, Tensors
from dpveil.core.numbers import Json
from dpveil.errors import InvalidParameter, ModelError

SIDE: Final = 128
SMALL: Final = 64
"""Side of the picture whose gradients are histogrammed, in cells of 8 × 8 pixels and 9 directions."""
COARSE: Final = 16
"""Side of the picture whose colours are read."""
LENGTH: Final = 7 * 7 * 36 + COARSE * COARSE * 3
MOST_VALUES: Final = 256

VALUES: Final[Mapping[str, tuple[str, ...]]] = {
    "gender": ("male", "female"),
    "age": ("18-29", "30-44", "45-59", "60+"),
    "perceived-race": ("white", "black", "asian", "indian", "other"),
    "pose": ("left", "frontal", "right"),
    "smile": ("no", "yes"),
}
"""Every attribute that can be learned, and its values. The first three are what annotators or models saw in
a picture, not what a person says of themself. The pose is where in the picture the nose points."""

Crops = UInt8[np.ndarray, "n 128 128 3"]
Answers = dict[str, Int64[np.ndarray, " n"]]


CAUTION: Final = (
    "Gender, age and race are what annotators or models saw in a picture: not what a person is, or says",
    "of themself. Two values of gender and five of race hold nobody's whole truth. Do not use this model",
    "to decide anything about people; here it chooses which invented face stands for one.",
)
PROMISE: Final = "What the model reads is private. Privacy comes from randomised response on what it says."


@dataclass(frozen=True, eq=False)
class AttributeModel(Stored):
    """Features of a crop, `hidden` units cut at zero, and a score for every value of every attribute.

    `values` names the attributes and their values in the order of the columns of `out`. Crops are of 128 ×
    128 pixels in the frame of UTKFace. What it reads is private: only randomised response may release it.
    """

    name: ClassVar[str] = "attributes"

    values: Mapping[str, tuple[str, ...]]
    hidden: Float32[np.ndarray, "f h"]
    hidden_bias: Float32[np.ndarray, " h"]
    out: Float32[np.ndarray, "h k"]
    out_bias: Float32[np.ndarray, " k"]
    card: Card

    def scores(self, crops: Crops) -> Float32[np.ndarray, "n k"]:
        """Return the score of every value, n × k; the largest of an attribute is what a face looks like."""
        units = np.maximum(features(crops) @ self.hidden + self.hidden_bias, 0)
        scores: Float32[np.ndarray, "n k"] = units @ self.out + self.out_bias
        return scores

    def read(self, crops: Crops) -> Answers:
        """Return the place in `values` of what each crop looks like, int64 for every attribute.

        Raises `InvalidParameter` for other crops.
        """
        scores = self.scores(crops)
        return {name: scores[:, columns].argmax(axis=1) for name, columns in self.columns.items()}

    @cached_property
    def columns(self) -> dict[str, slice]:
        """Which columns of the scores belong to each attribute."""
        return columns_of(self.values)

    def facts(self) -> dict[str, Json]:
        """Return the attributes and their values."""
        return {"values": [[name, list(words)] for name, words in self.values.items()]}

    def tensors(self) -> dict[str, np.ndarray]:
        """Return what a file keeps; 16-bit floats are enough for weights."""
        kept = {"hidden": self.hidden, "out": self.out}
        biases = {"hidden bias": self.hidden_bias, "out bias": self.out_bias}
        return {name: weights.astype(np.float16) for name, weights in kept.items()} | biases

    @classmethod
    def of_file(cls, facts: Mapping[str, Any], tensors: Tensors, card: Card) -> Self:
        """Return the model of what a file holds; raises `ModelError` where something does not fit."""
        values = {str(name): tuple(str(word) for word in words) for name, words in facts["values"]}
        if not values or not all(2 <= len(words) <= MOST_VALUES for words in values.values()):
            raise ModelError("the file's attributes do not have 2 to 256 values each")
        kept = [tensors[name].astype(np.float32) for name in ("hidden", "hidden bias", "out", "out bias")]
        hidden, hidden_bias, out, out_bias = kept
        units, answers = len(hidden_bias), sum(len(words) for words in values.values())
        shapes = (LENGTH, units), (units,), (units, answers), (answers,)
        if any(weights.shape != shape for weights, shape in zip(kept, shapes, strict=True)):
            raise ModelError("the file's weights do not fit together")
        if not all(np.isfinite(weights).all() for weights in kept):
            raise ModelError("the file's weights are not finite")
        return cls(values, hidden, hidden_bias, out, out_bias, card)

    def card_words(self) -> CardWords:
        """Return what the card says of attributes."""
        return CardWords(
            what="A dpveil model of attributes: what a face of 128 × 128 pixels in colour looks like.",
            labels=[f"{name}: {', '.join(words)}" for name, words in self.values.items()],
            caution=CAUTION,
            promise=PROMISE,
        )


def columns_of(values: Mapping[str, tuple[str, ...]]) -> dict[str, slice]:
    """Return which columns belong to each attribute, one for each of its values."""
    ends = np.cumsum([len(words) for words in values.values()]).tolist()
    starts = [0, *ends[:-1]]
    return {
        name: slice(*ends_of) for name, ends_of in zip(values, zip(starts, ends, strict=True), strict=True)
    }


def features(crops: UInt8[np.ndarray, "n 128 128 3"]) -> Float32[np.ndarray, "n f"]:
    """Return what the network sees: gradients in all directions, cell by cell, and coarse colours (CIE Lab).

    Raises `InvalidParameter` for other crops. Source: Dalal & Triggs 2005.
    """
    if crops.dtype != np.uint8 or crops.ndim != 4 or crops.shape[1:] != (SIDE, SIDE, 3):
        raise InvalidParameter(
            "crops", f"{crops.dtype} {crops.shape}", f"are not uint8 n × {SIDE} × {SIDE} × 3"
        )
    cell, block = (8, 8), (16, 16)
    counted = cv2.HOGDescriptor((SMALL, SMALL), block, cell, cell, 9)
    found = np.empty((len(crops), LENGTH), np.float32)
    edges = LENGTH - COARSE * COARSE * 3
    for row, crop in zip(found, crops, strict=True):
        small = cv2.resize(crop, (SMALL, SMALL), interpolation=cv2.INTER_AREA)
        coarse = cv2.resize(crop, (COARSE, COARSE), interpolation=cv2.INTER_AREA)
        row[:edges] = np.ravel(counted.compute(small))
        row[edges:] = cv2.cvtColor(coarse, cv2.COLOR_RGB2LAB).ravel() / np.float32(255) - np.float32(0.5)
    return found


ATTRIBUTES: Final = Kind(
    noun="model of attributes",
    option="model",
    written="attributes sha256:…",
    hint="make one: dpveil train attributes SHARDS... --out attributes.safetensors",
    kinds={AttributeModel.name: AttributeModel},
    holds=AttributeModel,
    default="attributes",
)
"""The kind of file that is a model of attributes; the default is the side package's."""
