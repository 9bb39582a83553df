"""Post-processing steps: each a class, and a row in `STEPS`.

A step only sees the released pixels of one region, so it changes no guarantee.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar, Final, Self

import numpy as np

from dpveil.assets.file_reference import AssetField, Kind, Reference
from dpveil.assets.model_cards import Card, CardWords
from dpveil.assets.trained_files import Tensors, TrainedFile
from dpveil.core.array_types import UInt8
from dpveil.core.parameters import Between, Value, check_count
from dpveil.core.rationals import Json, to_json
from dpveil.errors import InvalidParameter, ModelError, UnknownName
from dpveil.opencv import cv2

if TYPE_CHECKING:
    from dpveil.assets.networks import Network


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
    def from_certificate(cls, text: str) -> Self:
        """Return the step with this text after the colon, as a certificate states it; opens no file."""
        return cls.of(text)

    @property
    def description(self) -> str:
        """The step as users and certificates write it: name, colon, number or reference."""
        value = getattr(self, fields(self)[0].name)  # type: ignore[arg-type]
        return f"{self.name}:{to_json(value) if isinstance(value, Fraction) else value}"


PATCH: Final = 7  # side of the compared patches in pixels
WINDOW: Final = 21  # side of the area in which similar patches are searched, in pixels


@dataclass(frozen=True)
class NonLocalMeans(Step):
    """Each level becomes a mean of levels with similar patches around them; `strength` is in grey levels.

    Patches of 7 × 7 pixels are compared within 21 × 21. The strength is usually close to the standard
    deviation of the noise.
    Raises `InvalidParameter`. Source: Buades, Coll & Morel 2005, by OpenCV.

    >>> NonLocalMeans(10)(np.full((8, 8, 1), 9, np.uint8)).max()
    np.uint8(9)
    """

    name: ClassVar[str] = "non-local-means"
    usual: ClassVar[str] = "non-local-means:10"
    summary: ClassVar[str] = "mean over patches that look alike; strength in grey levels"

    strength: Between = Between("0.001", 1000, hint="in grey levels, such as 10")

    def __call__(self, image: UInt8[np.ndarray, "h w c"]) -> UInt8[np.ndarray, "h w c"]:
        planes = [
            cv2.fastNlMeansDenoising(
                np.ascontiguousarray(image[:, :, k]), None, float(self.strength), PATCH, WINDOW
            )
            for k in range(image.shape[2])
        ]
        return np.stack(planes, axis=2).astype(np.uint8)


@dataclass(frozen=True)
class GaussianBlur(Step):
    """Gaussian blur of each channel; `sigma` is the standard deviation in pixels, 0.001 to 1000.

    Raises `InvalidParameter`. Source: Croft 2022 §6.

    >>> GaussianBlur(1)(np.full((4, 4, 1), 9, np.uint8)).max()
    np.uint8(9)
    """

    name: ClassVar[str] = "gaussian"
    usual: ClassVar[str] = "gaussian:1"
    summary: ClassVar[str] = "Gaussian blur; standard deviation in pixels"

    sigma: Between = Between("0.001", 1000, hint="in pixels, such as 1")

    def __call__(self, image: UInt8[np.ndarray, "h w c"]) -> UInt8[np.ndarray, "h w c"]:
        sigma = float(self.sigma)
        blurred = cv2.GaussianBlur(image, (0, 0), sigma, borderType=cv2.BORDER_REPLICATE)
        return np.asarray(blurred, np.uint8).reshape(image.shape)


class OddSide(Value[int | str, int]):
    """The side of a square window in pixels: odd, from 3 to 15."""

    def check(self, value: int | str) -> int:
        """Return `value` as an odd integer; raises `InvalidParameter`."""
        digits = isinstance(value, str) and value.isdecimal() and len(value) < 10
        side = check_count(int(value) if digits else value, self.name)
        if side % 2 == 0 or not 3 <= side <= 15:
            raise InvalidParameter(self.name, value, "is not an odd number from 3 to 15", hint="such as 3")
        return side


@dataclass(frozen=True)
class Median(Step):
    """Median filter of each channel over `side` × `side` pixels; `side` is odd, 3 to 15.

    Raises `InvalidParameter`. Source: Reilly & Fan 2021 §3.4.

    >>> Median(3)(np.array([[[9], [200], [9]]], np.uint8)).ravel().tolist()
    [9, 9, 9]
    """

    name: ClassVar[str] = "median"
    usual: ClassVar[str] = "median:3"
    summary: ClassVar[str] = "median filter; side of the window in pixels, odd"

    side: OddSide = OddSide()

    def __call__(self, image: UInt8[np.ndarray, "h w c"]) -> UInt8[np.ndarray, "h w c"]:
        """Return the filtered levels, channel by channel; the edge is replicated."""
        return np.asarray(cv2.medianBlur(np.ascontiguousarray(image), self.side), np.uint8).reshape(
            image.shape
        )


SIDES: Final = range(32, 257, 16)  # possible sides of a network's picture, in pixels
JOB: Final = "takes noise away"
PROMISE: Final = (
    "It sees released pixels only, and takes nothing from their guarantee. What it paints is a guess, and the"
    " attacker's as well: whoever has a release can run it."
)


@dataclass(frozen=True, eq=False)
class DenoiserNetwork(TrainedFile):
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
        small = _resize(np.ascontiguousarray(image), self.side, self.side)
        planes = small.transpose(2, 0, 1)[None].astype(np.float32) / np.float32(127.5) - 1
        levels = (self.network(planes)[0].transpose(1, 2, 0) + 1) * np.float32(127.5)
        out = np.clip(np.rint(levels), 0, 255).astype(np.uint8)
        return _resize(out, *image.shape[:2])

    def facts(self) -> dict[str, Json]:
        """Return the side of the network's picture, for the file's header."""
        return {"side": self.side}

    def tensors(self) -> dict[str, np.ndarray]:
        return {"network": np.frombuffer(self.network.contents, np.uint8)}

    @classmethod
    def of_file(cls, facts: Mapping[str, Any], tensors: Tensors, card: Card) -> Self:
        """Return the network stored in a file; raises `ModelError` for one that does not fit."""
        from dpveil.assets.networks import Network

        side = facts["side"]
        if side not in SIDES:
            raise ModelError(f"the network's picture is none of {SIDES[0]} to {SIDES[-1]} pixels")
        shape = (1, 3, side, side)
        return cls(Network.of(tensors["network"], shape, shape, JOB, 1.5), side, card)

    def card_words(self) -> CardWords:
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

    It takes each region for a face. Raises `ModelError`, and `UsageError` without the default network.
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
    def from_certificate(cls, text: str) -> Self:
        """Return the step that a certificate names by its hash; opens no file."""
        return cls(Reference.parse(text, DENOISER))


def _resize(image: UInt8[np.ndarray, "h w 3"], height: int, width: int) -> UInt8[np.ndarray, "H W 3"]:
    smaller = height * width < image.shape[0] * image.shape[1]
    way = cv2.INTER_AREA if smaller else cv2.INTER_CUBIC
    return np.asarray(cv2.resize(image, (width, height), interpolation=way))


STEPS: Final[dict[str, type[Step]]] = {
    step.name: step for step in (GaussianBlur, Median, NonLocalMeans, Denoiser)
}


def opens(step: str) -> bool:
    """Return whether parsing a step opens a file that it names.

    >>> opens(" denoiser:mine.safetensors"), opens("denoiser"), opens("median:3")
    (True, False, False)
    """
    name, colon, _ = step.strip().partition(":")
    return name == Denoiser.name and bool(colon)


def step_from_certificate(step: str) -> Step:
    """Return the step that a certificate states, name, colon and parameter; opens no file.

    Raises `UnknownName` and `InvalidParameter`.
    """
    name, _, text = step.partition(":")
    if name not in STEPS:
        raise UnknownName("post-processing step", name, STEPS)
    if not text:
        raise InvalidParameter(
            "post_processing", step, "lacks its parameter", hint=f"such as {STEPS[name].usual}"
        )
    return STEPS[name].from_certificate(text)


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
    if name not in STEPS:
        raise UnknownName("post-processing step", name, STEPS)
    if colon and not amount:
        raise InvalidParameter(
            "post_processing", step, "lacks its number", hint=f"such as {STEPS[name].usual}"
        )
    return STEPS[name].of(amount) if colon else parse(STEPS[name].usual)


def parse_all(steps: Sequence[str | Step] | str | Step) -> tuple[Step, ...]:
    """Return the steps in order; a single one need not be in a list. Raises as `parse`."""
    listed = (steps,) if isinstance(steps, str | Step) else steps
    return tuple(parse(step) for step in listed)
