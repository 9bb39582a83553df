"""A generator of people: identity, gender and expression in, a face out by up-convolutions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Final, Self

import numpy as np
from jaxtyping import Float32, Float64

from dpveil.assets.cards import Card
from dpveil.assets.network import Network
from dpveil.assets.store import Tensors
from dpveil.codecs.base import Canvas, Crops, StoredCodec
from dpveil.codecs.factors import Factors
from dpveil.codecs.neural import LENGTHS, drawn, pictures, square_of
from dpveil.codecs.statistics import Codes, Statistics
from dpveil.codecs.unseen import approximate
from dpveil.errors import DataError, InvalidParameter, ModelError

CONDITIONS: Final = ("gender", "expression")
"""What the generator is given beside a code: gender, 1 for female, -1 for male and 0 for what the identity
says, and expression, 0 for none and 1 for a smile."""
LEAST: Final = {"gender": -1.0, "expression": 0.0}
"""Least values of the conditions; the most is 1, and 0 is neutral."""
SLOPE: Final = 0.2
"""Negative slope of the identity layer's leaky ReLU."""
PEOPLE: Final = range(2, 20_001)
"""Possible numbers of people whom a generator knows."""
EMBEDDED: Final = range(1, 513)
"""Possible lengths of an embedding."""
FITTED: Final = 2000
"""Most people to whose codes the public distribution is fitted."""
FACTORS: Final = 32
"""Its factors."""

Rows = Float64[np.ndarray, "n m"]


@dataclass(frozen=True, eq=False)
class UpConv(StoredCodec):
    """A code is the identity layer's output: leaky ReLU of the row of a person in training, or of a mixture.

    The rows of `identities` (people × m) and of `gallery` (the same people × d) belong together: what a
    person is to the generator, and `axes` (d × pixels) times the person's crop less `mean`. A crop is encoded
    as the mixture of people whose embedding is nearest to its own in absolute deviations, on the simplex; a
    person in training is their own row. `decoder` is an ONNX network, 1 × (m + 2), whose last two are
    `CONDITIONS`, to 1 × 3 × s × s from -1 to 1. Beyond `neural.OVAL` nothing is read or drawn. `energy` is
    W_m at the mean code, in finite differences. Every code of a mixture lies in the box of the training
    codes. Source: Croft 2022 §4.5, §4.6, errata E3; the layout of DeconvFaces.
    """

    name: ClassVar[str] = "upconv"
    summary: ClassVar[str] = "a generator of known people, who are mixed to approximate others"
    source: ClassVar[str] = "Croft 2022 §4.5-4.6"
    attributes: ClassVar[Mapping[str, tuple[str, tuple[float, ...]]]] = {
        "gender": ("gender", (-1.0, 1.0)),
        "smile": ("expression", (0.0, 1.0)),
    }

    likely: ClassVar[bool] = True

    decoder: Network
    identities: Float32[np.ndarray, "p m"]
    gallery: Float32[np.ndarray, "p d"]
    mean: Float32[np.ndarray, " pixels"]
    axes: Float32[np.ndarray, "d pixels"]
    energy: Float64[np.ndarray, " m"]
    statistics: Statistics
    canvas: Canvas
    card: Card

    @property
    def length(self) -> int:
        """The number of outputs of the identity layer."""
        return int(self.identities.shape[1])

    @cached_property
    def prior(self) -> Factors:
        """The public distribution of codes: a normal one, fitted to those of people in training."""
        every = np.linspace(0, len(self.identities) - 1, min(len(self.identities), FITTED)).astype(np.int64)
        return Factors.normal(self.codes_of(self._rows[every]), FACTORS)

    def _encode(self, crops: Crops) -> Codes:
        return self.codes_of(self.rows_of(crops))

    def rows_of(self, crops: Crops) -> Rows:
        """Return inputs of the identity layer, n × m: rows of people in training, or mixtures of them."""
        found = [self._mixture(one) @ self._rows for one in embedded(crops, self.mean, self.axes)]
        return np.array(found).reshape(len(crops), self.length)

    def codes_of(self, rows: Rows) -> Codes:
        """Return the identity layer's outputs, n × m."""
        return np.where(rows > 0, rows, SLOPE * rows)

    @cached_property
    def _known(self) -> Float64[np.ndarray, "p d"]:
        return self.gallery.astype(np.float64)

    @cached_property
    def _rows(self) -> Float64[np.ndarray, "p m"]:
        return self.identities.astype(np.float64)

    def _mixture(self, wanted: Float64[np.ndarray, " d"]) -> Float64[np.ndarray, " p"]:
        """Return the weights of the people; if the solver fails, those of the nearest one.

        No crop is refused, so that nothing is learned from a refusal.
        """
        try:
            mixture: Float64[np.ndarray, " p"] = approximate(wanted[None], self._known).weights[0]
        except DataError:
            nearest = np.abs(self._known - wanted).sum(axis=1).argmin()
            mixture = np.eye(1, len(self._known), nearest)[0]
        return mixture

    def _decode(self, codes: Codes) -> Crops:
        return self._rendered(codes, np.zeros(len(CONDITIONS)))

    def render(self, codes: Codes, *, gender: float = 0.0, expression: float = 0.0) -> Crops:
        """Return the crops of codes with a gender or an expression: a code may be rendered again at no cost.

        `gender` is from -1 (male) to 1 (female), and 0 leaves it to the code; `expression` is from 0 (none)
        to 1 (a smile). They must be public or released themselves. Raises `InvalidParameter` for other
        values, and as `decode`.
        """
        given = {"gender": gender, "expression": expression}
        for name, value in given.items():
            if not LEAST[name] <= value <= 1:
                raise InvalidParameter(name, value, f"is not from {LEAST[name]:g} to 1", hint="0 is neutral")
        self.decode(codes[:0])
        low, high = self.statistics.quantiles[:, 0]
        kept = np.clip(codes.astype(np.float64), low, high)
        return self._rendered(kept, np.array([given[name] for name in CONDITIONS]))

    def _rendered(self, codes: Codes, conditions: Float64[np.ndarray, " 2"]) -> Crops:
        given = np.concatenate([codes, np.tile(conditions, (len(codes), 1))], axis=1)
        return drawn(self.decoder, given, self.canvas)

    def tensors(self) -> dict[str, np.ndarray]:
        """Return the arrays of the file: network, people, embedding (axes as 16-bit floats), statistics."""
        return {
            "decoder": np.frombuffer(self.decoder.contents, np.uint8),
            "identities": self.identities,
            "gallery": self.gallery,
            "mean": self.mean,
            "axes": self.axes.astype(np.float16),
            "energy": self.energy,
            **self.statistics.tensors(),
        }

    @classmethod
    def of_file(cls, facts: Mapping[str, Any], tensors: Tensors, card: Card) -> Self:
        """Return the codec stored in a file; raises `ModelError` for contents that do not fit together."""
        canvas = square_of(facts)
        side = canvas[0]
        names = ("identities", "gallery", "mean", "axes")
        identities, gallery, mean, axes = (tensors[name].astype(np.float32) for name in names)
        energy = tensors["energy"].astype(np.float64)
        if identities.ndim != 2 or gallery.ndim != 2 or len(identities) not in PEOPLE:
            raise ModelError(f"the file's people are not {PEOPLE[0]} to {PEOPLE[-1]}, a row for each")
        people, length = identities.shape
        wide, pixels = gallery.shape[1], side * side * 3
        if length not in LENGTHS or energy.shape != (length,) or len(gallery) != people:
            raise ModelError("the file's people, their embeddings and the energies do not fit together")
        if wide not in EMBEDDED or mean.shape != (pixels,) or axes.shape != (wide, pixels):
            raise ModelError("the file's embedding does not fit its canvas and its people")
        if not all(np.isfinite(one).all() for one in (identities, gallery, mean, axes, energy)):
            raise ModelError("the file's people, embedding or energies are not finite")
        if not (energy > 0).all():
            raise ModelError("an energy of the file is not above 0")
        statistics = Statistics.of_tensors(tensors, energy)
        decoder = generator(tensors["decoder"], side, length)
        return cls(decoder, identities, gallery, mean, axes, energy, statistics, canvas, card)


def generator(decoder: np.ndarray, side: int, length: int) -> Network:
    """Return a generator in an array of bytes, run once; raises `ModelError` for any other network."""
    return Network.of(decoder, (1, length + len(CONDITIONS)), (1, 3, side, side), "makes faces", 1.0)


def embedded(
    crops: Crops, mean: Float32[np.ndarray, " pixels"], axes: Float32[np.ndarray, "d pixels"]
) -> Float64[np.ndarray, "n d"]:
    """Return the embeddings of crops, one by one: principal components of what the public ellipse shows."""
    found = [axes @ (planes.ravel() - mean) for planes in pictures(crops)]
    return np.array(found, np.float64).reshape(len(crops), len(axes))
