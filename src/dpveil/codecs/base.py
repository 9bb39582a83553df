"""The role of a codec: face crops to codes with public bounds, and codes back to crops."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import ClassVar, Final, Self

import numpy as np
from jaxtyping import Float32, Float64, UInt8

from dpveil.codecs.pair_distances import Apart, interpolated
from dpveil.training.checkpoint import NOWHERE, Checkpoint, Tensors
from dpveil.core.numbers import Json, Number, exact
from dpveil.errors import InvalidParameter, ModelError

Crops = UInt8[np.ndarray, "n h w c"]
Codes = Float64[np.ndarray, "n m"]
Canvas = tuple[int, int, int]
Source = Callable[[], Iterable[Crops]]
"""Gives the training crops in batches, anew at each call and in the same order."""

PERCENTILES: Final = tuple(Fraction(p, 1000) for p in (0, 10, 25, 50, 100, 125, 150, 200, 250, 300, 350, 400))
"""Shares of the training codes that lie below the lower bounds that are kept, from 0 to 40 %; between them
bounds are interpolated."""
CHUNK: Final = 256
"""Crops that are worked on at a time."""


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
    """The public box of codes, `low` below `high` in every coordinate. Codes are clipped to it before
    anything is drawn. Raises `InvalidParameter` where a side is empty.
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
    squared (FaceIDP eq. 15), `in_the_clear` what a decoded picture shows beside its code, `passes` how often
    training reads the crops. Concrete codecs are never subclassed. To add one: a file, a row in `TABLE`,
    a section of the page on codecs.
    """

    name: ClassVar[str]
    summary: ClassVar[str]
    source: ClassVar[str]
    passes: ClassVar[int]
    in_the_clear: ClassVar[tuple[str, ...]] = ()

    card: Card
    canvas: Canvas
    sides: Float64[np.ndarray, "2 percentiles m"]
    between: Float64[np.ndarray, "measures percentiles shares"]

    @property
    @abstractmethod
    def length(self) -> int:
        """Coordinates of a code."""

    @property
    def quantiles(self) -> Float64[np.ndarray, "2 percentiles m"]:
        """Lower and upper bounds of training codes, a row for every share in `PERCENTILES`."""
        return self.sides

    @property
    def distances(self) -> Float64[np.ndarray, "measures percentiles shares"]:
        """How far training codes lie apart, as `apart_of` gives it."""
        return self.between

    @property
    @abstractmethod
    def column_energy(self) -> Float64[np.ndarray, " m"]:
        """W_m: squared grey levels for a unit of each coordinate, summed over pixels and channels."""

    @property
    def deviations(self) -> Float64[np.ndarray, " m"] | None:
        """Standard deviations of training codes, of mean 0, where coordinates are principal components."""
        return None

    @abstractmethod
    def _encode(self, crops: Crops) -> Codes:
        """Return codes of checked crops."""

    @abstractmethod
    def _decode(self, codes: Codes) -> Crops:
        """Return crops of checked codes."""

    @classmethod
    @abstractmethod
    def train(
        cls,
        source: Source,
        *,
        card: Card,
        seed: int,
        length: int = 100,
        checkpoint: Checkpoint = NOWHERE,
    ) -> Self:
        """Return a codec of `length` coordinates that was fitted to public crops, the same for the same seed.

        `checkpoint` keeps what is finished, and training goes on from what it holds. Raises
        `InvalidParameter`.
        """

    @abstractmethod
    def tensors(self) -> dict[str, np.ndarray]:
        """Return what a file keeps."""

    @classmethod
    @abstractmethod
    def of_tensors(cls, tensors: Tensors, canvas: Canvas, card: Card) -> Self:
        """Return the codec of a file; raises `ModelError` where something does not fit."""

    def with_card(self, card: Card) -> Self:
        """Return the same codec with another card."""
        return replace(self, card=card)  # type: ignore[type-var]

    def encode(self, crops: UInt8[np.ndarray, ...]) -> Codes:
        """Return the codes of crops, n × m, not clipped yet.

        Crops are uint8, n × h × w × c of the codec's canvas. Raises `InvalidParameter` for others.
        """
        if crops.dtype != np.uint8 or crops.ndim != 4 or crops.shape[1:] != self.canvas:
            raise InvalidParameter(
                "crops",
                f"{crops.dtype} {crops.shape}",
                f"are not uint8 n × {' × '.join(map(str, self.canvas))}",
                hint=f"this {self.name} takes crops of its own canvas",
            )
        return self._encode(crops)

    def decode(self, codes: Codes) -> Crops:
        """Return the crops of codes, n × h × w × c, uint8. Codes beyond any of training are clipped first.

        Raises `InvalidParameter` for codes of another shape, or that are not finite.
        """
        if codes.ndim != 2 or codes.shape[1] != self.length or not np.isfinite(codes).all():
            raise InvalidParameter(
                "codes",
                str(codes.shape),
                f"are not finite numbers, n × {self.length}",
                hint="codes of this codec",
            )
        low, high = self.quantiles[:, 0]
        return self._decode(np.clip(codes.astype(np.float64), low, high))

    def bounds(self, clip: Number = 0) -> Bounds:
        """Return the box that leaves out the outer `clip` per cent of training codes on each side.

        0 is the whole range seen in training, 50 would be the median; from 0 to 40 are allowed, and shares
        between those kept are interpolated (Li & Clifton 2021 §3.2). Raises `InvalidParameter`, also where
        so many training codes are alike in a coordinate that the box has no side there.
        """
        at, known = _share(clip), [float(p) for p in PERCENTILES]
        low, high = (np.array([np.interp(at, known, column) for column in side.T]) for side in self.quantiles)
        empty = np.flatnonzero(low >= high)
        if len(empty):
            problem = f"leaves no room in {len(empty)} of {self.length} coordinates"
            raise InvalidParameter(
                "clip", clip, problem, hint="choose a smaller one: codes are mostly alike there"
            )
        return Bounds(low, high)

    def apart(self, clip: Number = 0) -> Apart:
        """Return how far different people of the training set lie apart, clipped to `bounds(clip)`.

        Between the shares that are kept it is interpolated. Raises `InvalidParameter` where `bounds` does.
        """
        self.bounds(clip)
        return interpolated(self.distances, [float(p) for p in PERCENTILES], _share(clip))

    def radius(self, clip: Number = 0) -> float:
        """Return how far half of the training codes lie at most from the middle of the box, in half sides."""
        return self.apart(clip).radius[0.5]


def _share(clip: Number) -> float:
    share = exact(clip, "clip") / 100
    if not 0 <= share <= PERCENTILES[-1]:
        raise InvalidParameter(
            "clip", clip, "is not between 0 and 40", hint="per cent on each side, such as 10"
        )
    return float(share)


def quantiles_of(codes: Codes) -> Float64[np.ndarray, "2 percentiles m"]:
    """Return the lower and upper bounds of training codes at every share of `PERCENTILES`."""
    shares = np.array([float(p) for p in PERCENTILES])
    return np.stack([np.quantile(codes, shares, axis=0), np.quantile(codes, 1 - shares, axis=0)])


def energies(rows: Float32[np.ndarray, "m pixels"]) -> Float64[np.ndarray, " m"]:
    """Return the squared norm of each row."""
    squared: Float64[np.ndarray, " m"] = np.einsum("mp,mp->m", rows, rows, dtype=np.float64)
    return squared


def checked_quantiles(tensors: Tensors, length: int) -> Float64[np.ndarray, "2 percentiles m"]:
    """Return the quantiles of a file; raises `ModelError` where they do not fit `length` coordinates."""
    quantiles = tensors["quantiles"].astype(np.float64)
    if quantiles.shape != (2, len(PERCENTILES), length) or not np.isfinite(quantiles).all():
        raise ModelError(f"the file's quantiles are not finite, 2 × {len(PERCENTILES)} × {length}")
    if not (quantiles[0, 0] < quantiles[1, 0]).all() or np.any(np.diff(quantiles[0], axis=0) < 0):
        raise ModelError("the file's quantiles are not in their order")
    return quantiles


def flat(crops: Crops) -> Iterator[Float32[np.ndarray, "n pixels"]]:
    """Yield crops a few at a time, each as a row of levels."""
    for start in range(0, len(crops), CHUNK):
        part = crops[start : start + CHUNK]
        yield part.reshape(len(part), -1).astype(np.float32)


def pictures_of(parts: Iterable[Float32[np.ndarray, "n pixels"]], count: int, canvas: Canvas) -> Crops:
    """Return `count` crops of rows of levels, rounded and clamped to 0..255."""
    out = np.empty((count, *canvas), np.uint8)
    start = 0
    for part in parts:
        np.rint(part, out=part)
        out[start : start + len(part)] = np.clip(part, 0, 255, out=part).reshape(-1, *canvas)
        start += len(part)
    return out


def mean_of(source: Source, length: int) -> tuple[Float32[np.ndarray, " pixels"], int, Canvas]:
    """Return the mean crop as a row, the number of crops and their canvas.

    Raises `InvalidParameter` where there are not more crops than coordinates, or they differ in shape.
    """
    total, count, canvas = np.zeros(0), 0, (0, 0, 0)
    for crops in source():
        if not count:
            canvas = (crops.shape[1], crops.shape[2], crops.shape[3])
            total = np.zeros(crops[0].size)
        if crops.shape[1:] != canvas:
            raise InvalidParameter("images", None, "are not of one shape", hint="give crops of one canvas")
        total += crops.reshape(len(crops), -1).sum(axis=0, dtype=np.float64)
        count += len(crops)
    if count <= length:
        raise InvalidParameter(
            "length", length, f"is not below the number of training images, {count}", hint="give more images"
        )
    return (total / count).astype(np.float32), count, canvas
