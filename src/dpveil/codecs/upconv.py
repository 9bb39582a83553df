"""A generator of people: identity, gender and expression in, a face out by up-convolutions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Final, Self

import numpy as np
from scipy.optimize import OptimizeResult, linprog

from dpveil.assets.model_cards import Card
from dpveil.assets.networks import Network
from dpveil.assets.trained_files import Tensors, arrays_of
from dpveil.codecs.base import Canvas, Crops, StoredCodec
from dpveil.codecs.network_codecs import LENGTHS, decode_crops, pictures, square_of
from dpveil.codecs.pca import Factors
from dpveil.codecs.statistics import Codes, Statistics
from dpveil.core.array_types import Float32, Float64
from dpveil.errors import DataError, InvalidParameter, ModelError

Points = Float64[np.ndarray, "n d"]


@dataclass(frozen=True, eq=False)
class GalleryWeights:
    """Weights of n targets over the m rows of a gallery, and the distance of each mixture from its target.

    `deviations` are sums of absolute differences over the coordinates, minimal over all weights.
    """

    weights: Float64[np.ndarray, "n m"]
    deviations: Float64[np.ndarray, " n"]

    def of(self, gallery: Float64[np.ndarray, "m e"]) -> Float64[np.ndarray, "n e"]:
        """Return the same mixtures of another gallery's rows, such as a generator's codes of the same people.

        Raises `InvalidParameter` for another number of rows.
        """
        if gallery.ndim != 2 or len(gallery) != self.weights.shape[1]:
            problem = f"has not {self.weights.shape[1]} rows"
            raise InvalidParameter("gallery", str(gallery.shape), problem, hint="one for each weight")
        return np.asarray(self.weights @ gallery)


def approximate(targets: Points, gallery: Float64[np.ndarray, "m d"]) -> GalleryWeights:
    """Return for every target the mixture of gallery rows with the least absolute deviations.

    `targets` is n × d and `gallery` m × d: codes or embeddings of the same kind, finite. Weights are at least
    0 with sum 1, so that a mixture is a convex combination of known faces. Minimises the sum of u_i + v_i
    where y_i - Σ_j W_j·X_ji = u_i - v_i; the papers print a sum in place of this difference (errata E3). The
    weights of a target depend only on it and the gallery. This is not a mechanism and has no guarantee.
    Raises `InvalidParameter`, and `DataError` if the solver fails. Source: Croft 2022 eq. 11-13, Croft thesis
    6.18-6.20; HiGHS.

    >>> import numpy as np
    >>> known = np.array([[0.0, 0.0, 9.0], [4.0, 0.0, 9.0], [0.0, 4.0, 9.0]])
    >>> approximate(np.array([[1.0, 2.0, 7.0]]), known).weights.round(6).tolist()
    [[0.25, 0.25, 0.5]]
    """
    targets, gallery = _check_points("targets", targets), _check_points("gallery", gallery)
    if not len(gallery) or targets.shape[1] != gallery.shape[1]:
        shapes = f"{targets.shape} and {gallery.shape}"
        raise InvalidParameter("gallery", shapes, "do not fit", hint="n × d targets and m × d rows, m > 0")
    # weights that sum to 1 allow any origin and unit, and the solver's tolerances are absolute
    centre = gallery.mean(axis=0)
    unit = float(np.abs(gallery - centre).max()) or 1.0
    known, (m, d) = (gallery - centre) / unit, gallery.shape
    equal = np.vstack([np.hstack([known.T, np.eye(d), -np.eye(d)]), [1.0] * m + [0.0] * (2 * d)])
    cost, found = np.concatenate([np.zeros(m), np.ones(2 * d)]), np.empty((len(targets), m))
    for row, target in enumerate((targets - centre) / unit):
        result: OptimizeResult = linprog(cost, A_eq=equal, b_eq=np.append(target, 1.0), method="highs")
        if result.status != 0:
            raise DataError(f"the least deviations were not found: {result.message}", hint="scale the codes")
        found[row] = np.clip(result.x[:m], 0, None)  # the solver's own tolerance is 1e-7
        found[row] /= found[row].sum()
    return GalleryWeights(found, np.abs(targets - found @ gallery).sum(axis=1))


def _check_points(name: str, rows: Points) -> Points:
    if rows.ndim != 2 or not rows.size or not np.isfinite(rows).all():
        raise InvalidParameter(name, str(rows.shape), "are not finite numbers, n × d", hint="rows of codes")
    return rows.astype(np.float64)


CONDITIONS: Final = ("gender", "expression")
"""What the generator is given beside a code: gender, 1 for female, -1 for male and 0 for what the identity
says, and expression, 0 for none and 1 for a smile."""
LEAST_CONDITIONS: Final = {"gender": -1.0, "expression": 0.0}
"""Least values of the conditions; the most is 1, and 0 is neutral."""
SLOPE: Final = 0.2  # negative slope of the identity layer's leaky ReLU
PEOPLE: Final = range(2, 20_001)  # possible numbers of people whom a generator knows
EMBEDDED: Final = range(1, 513)  # possible lengths of an embedding
FITTED: Final = 2000  # most people to whose codes the public distribution is fitted
FACTORS: Final = 32  # its factors

Rows = Float64[np.ndarray, "n m"]


@dataclass(frozen=True, eq=False)
class UpConv(StoredCodec):
    """A code is the identity layer's output: leaky ReLU of the row of a person in training, or of a mixture.

    The rows of `identities` (people × m) and of `gallery` (the same people × d) belong together: what a
    person is to the generator, and `axes` (d × pixels) times the person's crop less `mean`. A crop is encoded
    as the mixture of people whose embedding is nearest to its own in absolute deviations, on the simplex; a
    person in training is their own row. `decoder` is an ONNX network, 1 × (m + 2), whose last two are
    `CONDITIONS`, to 1 × 3 × s × s from -1 to 1. Beyond `network_codecs.OVAL` nothing is read or drawn.
    `energy` is W_m at the mean code, in finite differences. Every code of a mixture lies in the box of the
    training codes. Source: Croft 2022 §4.5, §4.6, errata E3; the layout of DeconvFaces.
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
        found = [self._mixture(one) @ self._rows for one in embed_crops(crops, self.mean, self.axes)]
        return np.array(found).reshape(len(crops), self.length)

    def codes_of(self, rows: Rows) -> Codes:
        return np.where(rows > 0, rows, SLOPE * rows)

    @cached_property
    def _gallery_points(self) -> Float64[np.ndarray, "p d"]:
        return self.gallery.astype(np.float64)

    @cached_property
    def _rows(self) -> Float64[np.ndarray, "p m"]:
        return self.identities.astype(np.float64)

    def _mixture(self, wanted: Float64[np.ndarray, " d"]) -> Float64[np.ndarray, " p"]:
        """Return the weights of the people; if the solver fails, those of the nearest one.

        No crop is refused, so that nothing is learned from a refusal.
        """
        try:
            mixture: Float64[np.ndarray, " p"] = approximate(wanted[None], self._gallery_points).weights[0]
        except DataError:
            nearest = np.abs(self._gallery_points - wanted).sum(axis=1).argmin()
            mixture = np.eye(1, len(self._gallery_points), nearest)[0]
        return mixture

    def _decode(self, codes: Codes) -> Crops:
        return self._render_codes(codes, np.zeros(len(CONDITIONS)))

    def render(self, codes: Codes, *, gender: float = 0.0, expression: float = 0.0) -> Crops:
        """Return the crops of codes with a gender or an expression: a code may be rendered again at no cost.

        `gender` is from -1 (male) to 1 (female), and 0 leaves it to the code; `expression` is from 0 (none)
        to 1 (a smile). They must be public or released themselves. Raises `InvalidParameter` for other
        values, and as `decode`.
        """
        given = {"gender": gender, "expression": expression}
        for name, value in given.items():
            if not LEAST_CONDITIONS[name] <= value <= 1:
                raise InvalidParameter(
                    name, value, f"is not from {LEAST_CONDITIONS[name]:g} to 1", hint="0 is neutral"
                )
        self.decode(codes[:0])
        low, high = self.statistics.quantiles[:, 0]
        kept = np.clip(codes.astype(np.float64), low, high)
        return self._render_codes(kept, np.array([given[name] for name in CONDITIONS]))

    def _render_codes(self, codes: Codes, conditions: Float64[np.ndarray, " 2"]) -> Crops:
        given = np.concatenate([codes, np.tile(conditions, (len(codes), 1))], axis=1)
        return decode_crops(self.decoder, given, self.canvas)

    def tensors(self) -> dict[str, np.ndarray]:
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
        canvas = square_of(facts)
        side = canvas[0]
        shapes = {"identities": "p m", "gallery": "p d", "mean": "pixels", "axes": "d pixels"}
        pixels = {"pixels": side * side * 3}
        identities, gallery, mean, axes = arrays_of(tensors, pixels, np.float32, **shapes)
        people, length = identities.shape
        (energy,) = arrays_of(tensors, {"m": length}, np.float64, energy="m")
        if people not in PEOPLE or length not in LENGTHS or gallery.shape[1] not in EMBEDDED:
            raise ModelError("the file's people, codes or embeddings are too few, or too many")
        if not (energy > 0).all():
            raise ModelError("an energy of the file is not above 0")
        statistics = Statistics.of_tensors(tensors, energy)
        decoder = generator(tensors["decoder"], side, length)
        return cls(decoder, identities, gallery, mean, axes, energy, statistics, canvas, card)


def generator(decoder: np.ndarray, side: int, length: int) -> Network:
    """Return a generator in an array of bytes, run once; raises `ModelError` for any other network."""
    return Network.of(decoder, (1, length + len(CONDITIONS)), (1, 3, side, side), "makes faces", 1.0)


def embed_crops(
    crops: Crops, mean: Float32[np.ndarray, " pixels"], axes: Float32[np.ndarray, "d pixels"]
) -> Float64[np.ndarray, "n d"]:
    """Return the embeddings of crops, one by one: principal components of what the public ellipse shows."""
    found = [axes @ (planes.ravel() - mean) for planes in pictures(crops)]
    return np.array(found, np.float64).reshape(len(crops), len(axes))
