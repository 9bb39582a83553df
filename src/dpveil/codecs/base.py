"""The role of a codec: face crops to codes with public bounds, and codes back to crops."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, ClassVar, Final, Self

import numpy as np
from jaxtyping import Float64, UInt8

from dpveil.core.numbers import Json, Number, exact
from dpveil.errors import InvalidParameter

Crops = UInt8[np.ndarray, "n h w c"]
Codes = Float64[np.ndarray, "n m"]
Tensors = Mapping[str, np.ndarray]
Source = Callable[[], Iterable[Crops]]
"""Gives the training crops in batches, anew at each call and in the same order."""

PERCENTILES: Final = tuple(Fraction(p, 1000) for p in (0, 10, 25, 50, 100, 125, 150, 200, 250, 300, 350, 400))
"""Shares of the training codes that lie below the lower bounds that are kept, from 0 to 40 %; between them
bounds are interpolated."""


@dataclass(frozen=True)
class Card:
    """What has to be known of a trained codec: where its numbers come from, and on what terms.

    `data` names the training set and how many images, `terms` what its licence allows, `seed` and `settings`
    make the training again, `metrics` were measured on images that were held out.
    """

    codec: str
    data: str
    terms: str
    seed: int
    settings: Mapping[str, Json] = field(default_factory=dict)
    metrics: Mapping[str, Json] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Bounds:
    """The public box of codes, `low` below `high` in every coordinate (a coordinate that never varied is
    left out by the codec). Codes are clipped to it before anything is drawn.
    """

    low: Float64[np.ndarray, " m"]
    high: Float64[np.ndarray, " m"]

    def __post_init__(self) -> None:
        finite = np.isfinite(self.low).all() and np.isfinite(self.high).all()
        if self.low.shape != self.high.shape or not finite or not (self.low < self.high).all():
            raise InvalidParameter("bounds", None, "are not a box", hint="low below high in every coordinate")

    @property
    def width(self) -> Float64[np.ndarray, " m"]:
        """The length of every side."""
        width: Float64[np.ndarray, " m"] = self.high - self.low
        return width

    def clip(self, codes: Codes) -> Codes:
        """Return codes moved into the box."""
        clipped: Codes = np.clip(codes, self.low, self.high)
        return clipped


class Codec(ABC):
    """A trained pair of encoder and decoder; everything in it was learned from public images.

    `canvas` is the height, width and channels of a crop, `length` the number of coordinates of a code,
    `column_energy` W_m the squared norm of what one unit of coordinate m adds to the picture, in grey levels
    squared (FaceIDP eq. 16), `in_the_clear` what a decoded picture shows beside its code.
    Concrete codecs are never subclassed. To add one: a file, a row in `TABLE`, a page.
    """

    name: ClassVar[str]
    summary: ClassVar[str]
    source: ClassVar[str]
    in_the_clear: ClassVar[tuple[str, ...]] = ()

    card: Card
    canvas: tuple[int, int, int]

    @property
    @abstractmethod
    def length(self) -> int:
        """Coordinates of a code."""

    @property
    @abstractmethod
    def quantiles(self) -> Float64[np.ndarray, "2 percentiles m"]:
        """Lower and upper bounds of training codes, a row for every share in `PERCENTILES`."""

    @property
    @abstractmethod
    def column_energy(self) -> Float64[np.ndarray, " m"]:
        """W_m: squared grey levels for a unit of each coordinate, summed over pixels."""

    @abstractmethod
    def _encode(self, crops: Crops) -> Codes:
        """Return codes of checked crops."""

    @abstractmethod
    def _decode(self, codes: Codes) -> Crops:
        """Return crops of checked codes."""

    @classmethod
    @abstractmethod
    def train(cls, source: Source, *, card: Card, seed: int, **settings: Any) -> Self:
        """Return a codec that was fitted to public crops, deterministic under its seed."""

    @abstractmethod
    def tensors(self) -> dict[str, np.ndarray]:
        """Return what a file keeps."""

    @classmethod
    @abstractmethod
    def of_tensors(cls, tensors: Tensors, canvas: tuple[int, int, int], card: Card) -> Self:
        """Return the codec of a file; raises `ModelError` where something does not fit."""

    def encode(self, crops: UInt8[np.ndarray, ...]) -> Codes:
        """Return the codes of crops, n × m, not clipped yet.

        Crops are uint8, n × h × w × c of the codec's canvas. Raises `InvalidParameter` for others.
        """
        if crops.dtype != np.uint8 or crops.ndim != 4 or crops.shape[1:] != self.canvas:
            raise InvalidParameter(
                "crops",
                f"{crops.dtype} {crops.shape}",
                f"are not uint8 n × {' × '.join(map(str, self.canvas))}",
                hint=f"{self.name} takes crops of its own canvas",
            )
        return self._encode(crops)

    def decode(self, codes: Codes) -> Crops:
        """Return the crops of codes, n × h × w × c. Raises `InvalidParameter` for codes of another shape."""
        if codes.ndim != 2 or codes.shape[1] != self.length or not np.isfinite(codes).all():
            raise InvalidParameter(
                "codes",
                str(codes.shape),
                f"are not finite numbers, n × {self.length}",
                hint="codes of this codec",
            )
        return self._decode(codes)

    def bounds(self, clip: Number = 0) -> Bounds:
        """Return the box that leaves out the outer `clip` per cent of training codes on each side.

        0 is the whole range seen in training, 50 would be the median; from 0 to 40 are allowed, and shares
        between those kept are interpolated (Li & Clifton 2021 §3.2). Raises `InvalidParameter`.
        """
        share = exact(clip, "clip") / 100
        if not 0 <= share <= PERCENTILES[-1]:
            raise InvalidParameter(
                "clip", clip, "is not between 0 and 40", hint="per cent on each side, such as 10"
            )
        at, known = float(share), [float(p) for p in PERCENTILES]
        low, high = (np.array([np.interp(at, known, column) for column in side.T]) for side in self.quantiles)
        return Bounds(low, high)


def quantiles_of(codes: Codes) -> Float64[np.ndarray, "2 percentiles m"]:
    """Return the lower and upper bounds of training codes at every share of `PERCENTILES`."""
    shares = np.array([float(p) for p in PERCENTILES])
    return np.stack([np.quantile(codes, shares, axis=0), np.quantile(codes, 1 - shares, axis=0)])
