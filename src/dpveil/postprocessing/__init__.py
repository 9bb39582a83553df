"""Post-processing steps: one file each, and a row in this table.

A step only sees the released pixels of one region, so it changes no guarantee.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final, Self

import cv2
import numpy as np
from jaxtyping import UInt8

from dpveil.assets.cards import Card, CardWords
from dpveil.assets.network import Network
from dpveil.assets.reference import AssetField, Kind, Reference
from dpveil.assets.store import Stored, Tensors
from dpveil.core.numbers import Json
from dpveil.errors import InvalidParameter, ModelError, UnknownName
from dpveil.postprocessing.filters import GaussianBlur, Median, NonLocalMeans, Step, TotalVariation

SIDES: Final = range(32, 257, 16)
"""Possible sides of a network's picture, in pixels."""
JOB: Final = "takes noise away"
PROMISE: Final = (
    "It sees released pixels only, and takes nothing from their guarantee. What it paints is a guess, and the"
    " attacker's as well: whoever has a release can run it."
)


@dataclass(frozen=True, eq=False)
class DenoiserNetwork(Stored):
    """A network that was trained on releases of public faces by pixel methods.

    `network` takes a picture 1 × 3 × s × s, RGB from -1 to 1, and gives another one. Source: docs,
    "Post-processing".
    """

    name: ClassVar[str] = "denoiser"

    network: Network
    side: int
    card: Card

    def __call__(self, image: UInt8[np.ndarray, "h w 3"]) -> UInt8[np.ndarray, "h w 3"]:
        """Return the picture that the network makes of an image, which is resized to its side and back.

        Raises `ModelError` if the network fails.
        """
        small = _resized(np.ascontiguousarray(image), self.side, self.side)
        planes = small.transpose(2, 0, 1)[None].astype(np.float32) / np.float32(127.5) - 1
        levels = (self.network(planes)[0].transpose(1, 2, 0) + 1) * np.float32(127.5)
        out = np.clip(np.rint(levels), 0, 255).astype(np.uint8)
        return _resized(out, *image.shape[:2])

    def facts(self) -> dict[str, Json]:
        """Return the side of the network's picture, for the file's header."""
        return {"side": self.side}

    def tensors(self) -> dict[str, np.ndarray]:
        """Return the array of the file."""
        return {"network": np.frombuffer(self.network.contents, np.uint8)}

    @classmethod
    def of_file(cls, facts: Mapping[str, Any], tensors: Tensors, card: Card) -> Self:
        """Return the network stored in a file; raises `ModelError` for one that does not fit."""
        side = facts["side"]
        if side not in SIDES:
            raise ModelError(f"the network's picture is none of {SIDES[0]} to {SIDES[-1]} pixels")
        shape = (1, 3, side, side)
        return cls(Network.of(tensors["network"], shape, shape, JOB, 1.5), side, card)

    def card_words(self) -> CardWords:
        """Return the model card's sections about the network."""
        return CardWords(
            what=f"A dpveil network that guesses faces under noise, {self.side} × {self.side} pixels.",
            facts=[f"ONNX, {len(self.network.contents) / 1e6:.1f} MB"],
            origin=("What it paints is a guess from many faces.",),
            promise=PROMISE,
        )


DENOISER: Final = Kind(
    noun="denoiser",
    option="post-processing",
    written="denoiser sha256:…",
    hint="make one: dpveil train denoiser SHARDS... --out denoiser.safetensors",
    kinds={DenoiserNetwork.name: DenoiserNetwork},
    holds=DenoiserNetwork,
    default=DenoiserNetwork.name,
)
"""Files of denoisers; "default" is that of dpveil-faces."""


@dataclass(frozen=True)
class Denoiser(Step):
    """A guess at the face under the noise, by a trained network: "denoiser", or "denoiser:FILE".

    It takes each region for a face. Raises `UsageError` if the default network is not installed, and
    `ModelError`.
    """

    name: ClassVar[str] = "denoiser"
    usual: ClassVar[str] = "denoiser:default"
    summary: ClassVar[str] = "a network's guess at the face; a file of dpveil train denoiser, or default"

    network: AssetField = AssetField(DENOISER)

    def __call__(self, image: UInt8[np.ndarray, "h w c"]) -> UInt8[np.ndarray, "h w c"]:
        """Return the network's picture of the released levels of one region."""
        colour = np.broadcast_to(image, (*image.shape[:2], 3))
        out: UInt8[np.ndarray, "h w 3"] = self.network.held(colour)
        if image.shape[2] == 3:
            return out
        return np.asarray(cv2.cvtColor(out, cv2.COLOR_RGB2GRAY))[..., None]

    @classmethod
    def stated(cls, text: str) -> Self:
        """Return the step that a certificate names by its hash; opens no file."""
        return cls(Reference.written(text, DENOISER))


def _resized(image: UInt8[np.ndarray, "h w 3"], height: int, width: int) -> UInt8[np.ndarray, "H W 3"]:
    smaller = height * width < image.shape[0] * image.shape[1]
    way = cv2.INTER_AREA if smaller else cv2.INTER_CUBIC
    return np.asarray(cv2.resize(image, (width, height), interpolation=way))


TABLE: Final[dict[str, type[Step]]] = {
    step.name: step for step in (GaussianBlur, Median, NonLocalMeans, TotalVariation, Denoiser)
}

__all__ = [
    "TABLE",
    "Denoiser",
    "GaussianBlur",
    "Median",
    "NonLocalMeans",
    "Step",
    "TotalVariation",
    "opens",
    "parse",
    "parse_all",
    "stated",
]


def opens(step: str) -> bool:
    """Return whether parsing a step opens a file that it names.

    >>> opens(" denoiser:mine.safetensors"), opens("denoiser"), opens("median:3")
    (True, False, False)
    """
    name, colon, _ = step.strip().partition(":")
    return name == Denoiser.name and bool(colon)


def stated(step: str) -> Step:
    """Return the step that a certificate states, name, colon and parameter; opens no file.

    Raises `UnknownName` and `InvalidParameter`.
    """
    name, _, text = step.partition(":")
    if name not in TABLE:
        raise UnknownName("post-processing step", name, TABLE)
    if not text:
        raise InvalidParameter(
            "post_processing", step, "lacks its parameter", hint=f"such as {TABLE[name].usual}"
        )
    return TABLE[name].stated(text)


def parse(step: str | Step) -> Step:
    """Return the step written as "name:number", such as "gaussian:1.5"; the number has a default. After
    "denoiser:" stands a file; alone it is that of dpveil-faces.

    Raises `UnknownName` and `InvalidParameter`.

    >>> parse("median:3").description, parse("gaussian").description
    ('median:3', 'gaussian:1')
    """
    if isinstance(step, Step):
        return step
    name, colon, amount = str(step).strip().partition(":")
    if name not in TABLE:
        raise UnknownName("post-processing step", name, TABLE)
    if colon and not amount:
        raise InvalidParameter(
            "post_processing", step, "lacks its number", hint=f"such as {TABLE[name].usual}"
        )
    return TABLE[name].of(amount) if colon else parse(TABLE[name].usual)


def parse_all(steps: Sequence[str | Step] | str | Step) -> tuple[Step, ...]:
    """Return the steps in order; a single one need not be in a list. Raises as `parse`."""
    listed = (steps,) if isinstance(steps, str | Step) else steps
    return tuple(parse(step) for step in listed)
