"""The attribute model and its file: a small network on gradients and colours."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Final, Self

import numpy as np

from dpveil.assets.file_reference import Kind
from dpveil.assets.model_cards import Card, CardWords
from dpveil.assets.trained_files import Tensors, TrainedFile
from dpveil.core.array_types import Float32, Int8, Int64, UInt8
from dpveil.core.rationals import Json
from dpveil.errors import InvalidParameter, ModelError
from dpveil.opencv import cv2

CROP_SIDE: Final = 128  # side of a crop in pixels
SMALL: Final = 64
"""Side of the downscaled crop for the HOG features, in pixels: cells of 8 × 8 pixels and 9 orientations."""
COARSE: Final = 16  # side of the downscaled crop for the colour features, in pixels
LENGTH: Final = 7 * 7 * 36 + COARSE * COARSE * 3
"""Number of features: 36 for each of 7 × 7 HOG blocks, and three colour channels."""
MOST_VALUES: Final = 256  # most values of one attribute
VALUES: Final[Mapping[str, tuple[str, ...]]] = {
    "gender": ("male", "female"),
    "age": ("18-29", "30-44", "45-59", "60-74", "75+"),
    "perceived-race": ("white", "black", "asian", "indian", "other"),
    "pose": ("left", "frontal", "right"),
    "smile": ("no", "yes"),
    "glasses": ("no", "yes"),
    "beard": ("no", "yes"),
    "tone": ("lightest", "light", "medium", "dark", "darkest"),
}
"""The attributes that can be kept, and their values. The first three are what annotators or models saw in a
picture, not what a person says of themself. The pose is the side of the image to which the nose points.
Glasses are in front of the eyes; a beard is a full one, a goatee, a moustache or clear stubble. The tone, how
light the face is in the photo, is measured (`geometry.tone`); models predict the others."""
TONE: Final = "tone"
READ: Final[Mapping[str, tuple[str, ...]]] = {name: VALUES[name] for name in VALUES if name != TONE}
"""The attributes that a model can predict, and their values."""
Crops = UInt8[np.ndarray, "n 128 128 3"]
Answers = dict[str, Int64[np.ndarray, " n"]]
"""For each attribute, the index of its value for each of n faces."""
CAUTION: Final = (
    "Gender, age and race are what annotators or models saw in a picture: not what a person is, or says",
    "of themself. Two values of gender and five of race hold nobody's whole truth. Do not use this model",
    "to decide anything about people; here it chooses which invented face stands for one.",
)


def labelled(
    labels: Mapping[str, Int8[np.ndarray, " n"]], values: Mapping[str, tuple[str, ...]], name: str
) -> Int64[np.ndarray, " n"] | None:
    """Return the labels of an attribute as indices in `VALUES`; None without it, or with other values."""
    words = VALUES.get(name, values.get(name, ()))
    if name not in labels or set(values[name]) != set(words):
        return None
    places = np.array([words.index(word) for word in values[name]], np.int64)
    return np.asarray(places[labels[name].astype(np.int64)])


PROMISE: Final = "What the model reads is private. Privacy comes from randomised response on what it says."


@dataclass(frozen=True, eq=False)
class AttributeModel(TrainedFile):
    """A network with one hidden layer (ReLU) that scores every value of every attribute from HOG and colour.

    `values` names the attributes and their values in the order of the columns of `out`. Crops have 128 × 128
    pixels in the frame of UTKFace. Its predictions are private: only randomised response may release them.
    """

    name: ClassVar[str] = "attributes"
    hint: ClassVar[str] = "make one: dpveil train attributes SHARDS... --out attributes.safetensors"

    values: Mapping[str, tuple[str, ...]]
    hidden: Float32[np.ndarray, "f h"]
    hidden_bias: Float32[np.ndarray, " h"]
    out: Float32[np.ndarray, "h k"]
    out_bias: Float32[np.ndarray, " k"]
    card: Card

    def scores(self, crops: Crops) -> Float32[np.ndarray, "n k"]:
        """Return the score (logit) of every value, n × k; raises `InvalidParameter` for other crops."""
        return np.asarray(self.units(crops) @ self.out + self.out_bias)

    def units(self, crops: Crops) -> Float32[np.ndarray, "n h"]:
        """Return the hidden units (ReLU), n × h, as features; raises `InvalidParameter` for other crops."""
        return np.asarray(np.maximum(features(crops) @ self.hidden + self.hidden_bias, 0))

    def read(self, crops: Crops) -> Answers:
        """Return, for every attribute, the index in `values` of the best value of each crop.

        Raises `InvalidParameter` for other crops.
        """
        scores = self.scores(crops)
        return {name: scores[:, columns].argmax(axis=1) for name, columns in self.columns.items()}

    @cached_property
    def columns(self) -> dict[str, slice]:
        return columns_of(self.values)

    def facts(self) -> dict[str, Json]:
        return {"values": [[name, list(words)] for name, words in self.values.items()]}

    def tensors(self) -> dict[str, np.ndarray]:
        kept = {"hidden": self.hidden, "out": self.out}
        biases = {"hidden bias": self.hidden_bias, "out bias": self.out_bias}
        return {name: weights.astype(np.float16) for name, weights in kept.items()} | biases

    @classmethod
    def of_file(cls, facts: Mapping[str, Any], tensors: Tensors, card: Card) -> Self:
        """Return the model stored in a file; raises `ModelError` for contents that do not fit together."""
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
        return CardWords(
            what="A dpveil model of attributes: what a face of 128 × 128 pixels in colour looks like.",
            labels=[f"{name}: {', '.join(words)}" for name, words in self.values.items()],
            caution=CAUTION,
            promise=PROMISE,
        )


def columns_of(values: Mapping[str, tuple[str, ...]]) -> dict[str, slice]:
    ends = np.cumsum([len(words) for words in values.values()]).tolist()
    starts = [0, *ends[:-1]]
    return {
        name: slice(*ends_of) for name, ends_of in zip(values, zip(starts, ends, strict=True), strict=True)
    }


def features(crops: UInt8[np.ndarray, "n 128 128 3"]) -> Float32[np.ndarray, "n f"]:
    """Return the network's input: histograms of oriented gradients, and downscaled colours (CIE Lab).

    Raises `InvalidParameter` for other crops. Source: Dalal & Triggs 2005 (HOG).
    """
    if crops.dtype != np.uint8 or crops.ndim != 4 or crops.shape[1:] != (CROP_SIDE, CROP_SIDE, 3):
        raise InvalidParameter(
            "crops", f"{crops.dtype} {crops.shape}", f"are not uint8 n × {CROP_SIDE} × {CROP_SIDE} × 3"
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
    hint=AttributeModel.hint,
    kinds={AttributeModel.name: AttributeModel},
    holds=AttributeModel,
    default="attributes",
)
"""Files of attribute models; the default is that of dpveil-faces."""
