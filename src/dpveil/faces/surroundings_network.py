"""Networks that read, from what stays around a face, who suits it and how it is lit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Final, Self

import numpy as np

from dpveil.assets.file_reference import Kind
from dpveil.assets.model_cards import Card, CardWords
from dpveil.assets.trained_files import Tensors, TrainedFile
from dpveil.core.array_types import Float32, UInt8
from dpveil.core.rationals import Json
from dpveil.errors import ModelError
from dpveil.faces.attribute_model import CAUTION, VALUES, columns_of
from dpveil.opencv import cv2

if TYPE_CHECKING:
    from dpveil.assets.networks import Network

SIDE: Final = 96  # side of the downscaled picture that the network sees
JOB: Final = "reads what is around a face"
LARGEST_GREY_SCORE: Final = 100.0  # largest mean of its scores of a grey picture
LIGHTS: Final = "lights an inner face"
FINE: Final = 128  # side of the planes that the network for light sees
PLANES: Final = (1, 13, FINE, FINE), (1, 7, FINE, FINE)  # what the network for light takes and gives


@dataclass(frozen=True, eq=False)
class SurroundingsNetwork(TrainedFile):
    """A network that scores every value of attributes from a picture of what is around a face.

    `network` takes a picture 1 × 3 × 96 × 96, RGB from -1 to 1, and gives scores, 1 × k. `values` names the
    attributes and their values in the order of the scores. `lighting` says how an inner face is shown there,
    from planes 1 × 13 × 128 × 128 to 1 × 7 × 128 × 128. Source: docs, "Attributes" and "Face geometry".
    """

    name: ClassVar[str] = "surroundings"
    hint: ClassVar[str] = "install dpveil-faces again, or choose --outside none"

    network: Network
    values: Mapping[str, tuple[str, ...]]
    lighting: Network
    card: Card

    def scores(self, picture: UInt8[np.ndarray, "s s 3"]) -> Float32[np.ndarray, " k"]:
        """Return the score (logit) of every value, the mean of the picture's and its mirror image's.

        Raises `ModelError` if the network fails.
        """
        small = cv2.resize(picture, (SIDE, SIDE), interpolation=cv2.INTER_AREA)
        planes = small.transpose(2, 0, 1)[None].astype(np.float32) / np.float32(127.5) - 1
        return np.asarray(self.network(planes)[0] + self.network(planes[..., ::-1])[0]) / 2

    def light(
        self, planes: Float32[np.ndarray, "s s 13"]
    ) -> tuple[Float32[np.ndarray, "s s 3"], Float32[np.ndarray, "s s"], Float32[np.ndarray, "s s 3"]]:
        """Return the logarithm of the gain of an inner face, its share of each pixel, and what is beside it.

        `planes` are the photo (RGB, and 0 where it is not known), which of it is known, which is replaced,
        the face as it would be lit by its rim (RGB), the share of the face, that of skin, and the photo as it
        would go on (RGB): colours and shares from -1 to 1. What is beside the face has sRGB levels. Raises
        `ModelError` if it fails.
        """
        found = self.lighting(planes.transpose(2, 0, 1)[None].astype(np.float32))[0]
        gain, share, beside = cv2.merge([*found[:3]]), found[3], cv2.merge([*found[4:]])
        return np.clip(gain, -1, 1), np.clip(share, 0, 1), np.clip(beside, 0, 255)

    @cached_property
    def columns(self) -> dict[str, slice]:
        return columns_of(self.values)

    def facts(self) -> dict[str, Json]:
        return {"values": [[name, list(words)] for name, words in self.values.items()]}

    def tensors(self) -> dict[str, np.ndarray]:
        parts = {"network": self.network, "lighting": self.lighting}
        return {name: np.frombuffer(one.contents, np.uint8) for name, one in parts.items()}

    @classmethod
    def of_file(cls, facts: Mapping[str, Any], tensors: Tensors, card: Card) -> Self:
        """Return the network stored in a file; raises `ModelError` for one that does not fit."""
        from dpveil.assets.networks import AHEAD, Network

        values = {str(name): tuple(str(word) for word in words) for name, words in facts["values"]}
        if not values or any(VALUES.get(name) != words for name, words in values.items()):
            raise ModelError("the file's attributes are not those by which a face is chosen")
        gives = (1, sum(len(words) for words in values.values()))
        scores = Network.of(tensors["network"], (1, 3, SIDE, SIDE), gives, JOB, LARGEST_GREY_SCORE)
        AHEAD.submit(
            cv2.cvtColor, np.zeros((1, 1, 3), np.float32), cv2.COLOR_RGB2LAB
        )  # its tables take 60 ms
        return cls(scores, values, Network.of(tensors["lighting"], *PLANES, LIGHTS, 255.0), card)

    def card_words(self) -> CardWords:
        return CardWords(
            what="A dpveil network that reads, from what stays around a face, who suits it.",
            labels=[f"{name}: {', '.join(words)}" for name, words in self.values.items()],
            caution=CAUTION,
            promise="It sees pixels that stay in the photo, and none that are replaced.",
        )


SURROUNDINGS: Final = Kind(
    noun="network of surroundings",
    option="outside",
    written="surroundings sha256:…",
    hint=SurroundingsNetwork.hint,
    kinds={SurroundingsNetwork.name: SurroundingsNetwork},
    holds=SurroundingsNetwork,
    default=SurroundingsNetwork.name,
    built_in="none",
    build=type(None),
)
"""Files of such networks; the default is that of dpveil-faces."""
