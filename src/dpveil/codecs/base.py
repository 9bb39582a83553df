"""How methods refer to codec files, and how such a file is read."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final

import numpy as np

from dpveil.assets import trained_files
from dpveil.assets.file_reference import Kind
from dpveil.assets.model_cards import CardWords
from dpveil.assets.trained_files import TrainedFile
from dpveil.codecs.statistics import Codes, Statistics
from dpveil.core.array_types import Float32, UInt8
from dpveil.core.rationals import Json
from dpveil.core.registry import CODECS
from dpveil.errors import InvalidParameter

if TYPE_CHECKING:
    from dpveil.codecs.pca import Factors


Crops = UInt8[np.ndarray, "n h w c"]
Canvas = tuple[int, int, int]
"""Height and width of a crop in pixels, and its channels."""

CHUNK: Final = 256  # crops processed at a time
USUAL: Final = 10
"""Per cent of training codes beyond the part of each side by a quarter of which `optimise` differentiates."""
DAMPING: Final = (0.01, 0.1, 1.0)
"""Damping of the steps of which `optimise` takes the best, relative to the mean square of the slopes."""


class Codec(ABC):
    """An encoder and a decoder, trained on public images only.

    `canvas` is the height, width and channels of a crop, `length` the number of coordinates of a code,
    `statistics` the public statistics of the codes, `in_the_clear` what a decoded picture shows besides its
    code, `frontal` whether every decoded head looks into the camera, as its pose is no part of the code, and
    `likely` whether its decoder is for codes of faces only, so that private codes become likely ones first
    if the mechanism gains by it.
    `attributes` are those that the decoder can be told, by their names in `VALUES` of attribute models: the
    name of the input in `render`, and its level for each value.
    `digest` is a hash of everything that determines encoding and decoding; certificates contain it. Training
    and storage are not part of this interface: dpveil's own codecs are `StoredCodec`, trained by
    `dpveil_train`. Concrete codecs are never subclassed. To add one: a file, a row in `CODECS`, a section
    of the page on codecs.
    """

    name: ClassVar[str]
    summary: ClassVar[str]
    source: ClassVar[str]
    in_the_clear: ClassVar[tuple[str, ...]] = ()
    frontal: ClassVar[bool] = False
    likely: ClassVar[bool] = False
    attributes: ClassVar[Mapping[str, tuple[str, tuple[float, ...]]]] = {}

    canvas: Canvas
    statistics: Statistics

    @property
    @abstractmethod
    def length(self) -> int:
        """The number of coordinates of a code."""

    @property
    @abstractmethod
    def digest(self) -> str:
        """The SHA-256 in hexadecimal of everything that determines encoding and decoding."""

    @property
    def prior(self) -> Factors | None:
        """The public distribution of likely codes; None for independent normal coordinates."""
        return None

    @abstractmethod
    def _encode(self, crops: Crops) -> Codes:
        """Return the codes of crops whose shape was checked."""

    @abstractmethod
    def _decode(self, codes: Codes) -> Crops:
        """Return the crops of codes that were checked and clipped."""

    def encode(self, crops: UInt8[np.ndarray, ...]) -> Codes:
        """Return the codes of crops, n × m, not clipped.

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

    def optimise(self, crops: UInt8[np.ndarray, ...], *, steps: int = 3) -> Codes:
        """Return codes n × m whose decoded crops are nearer to the crops than those of `encode`, from which
        they start: Levenberg-Marquardt steps on squared levels, with differences for derivatives.

        Each step decodes `length` + 1 + `len(DAMPING)` pictures a crop, whatever it shows: a second or so for
        a network. A code depends on its crop alone, so a release of it promises what one of `encode`'s does.
        Raises as `encode`. Source: Li & Clifton 2021 §3.1, by descent in VGG16's features from a random code.
        """
        low, high = self.statistics.quantiles[:, 0]
        box = self.statistics.bounds(USUAL)
        unit = (box.high - box.low) / 4
        found = np.clip(self.encode(crops).astype(np.float64), low, high)
        for row, crop in enumerate(crops.reshape(len(crops), -1).astype(np.float64)):
            for _ in range(steps):
                tried = np.concatenate([found[row : row + 1], found[row] + np.diag(unit)])
                made = self.decode(tried).reshape(len(tried), -1).astype(np.float64)
                slopes, apart = made[1:] - made[0], crop - made[0]
                products, towards = slopes @ slopes.T, slopes @ apart
                most = np.trace(products) / len(unit) + 1e-9
                moves = [np.linalg.solve(products + d * most * np.eye(len(unit)), towards) for d in DAMPING]
                tried = np.clip(np.array([0 * unit, *moves]) * unit + found[row], low, high)
                errors = np.square(self.decode(tried).reshape(len(tried), -1) - crop).sum(axis=1)
                found[row] = tried[errors.argmin()]
        return found

    def decode(self, codes: Codes, *, strict: bool = False) -> Crops:
        """Return the crops of codes, n × h × w × c, uint8. Codes outside the training range are clipped
        first: of a private code, a refusal would tell where it lies.

        Raises `InvalidParameter` for codes of another shape, or that are not finite; and if `strict`, for
        codes outside the training range, such as those of another codec.
        """
        if codes.ndim != 2 or codes.shape[1] != self.length or not np.isfinite(codes).all():
            raise InvalidParameter(
                "codes",
                str(codes.shape),
                f"are not finite numbers, n × {self.length}",
                hint="codes of this codec",
            )
        low, high = self.statistics.quantiles[:, 0]
        outside = (codes < low) | (codes > high)
        if strict and outside.any():
            row, at = (int(one) for one in np.argwhere(outside)[0])
            raise InvalidParameter(
                f"codes[{row}, {at}]",
                float(codes[row, at]),
                f"is outside the range of training codes, {low[at]:.6g} to {high[at]:.6g}",
                hint="give codes of this codec, or leave strict out to clip them",
            )
        return self._decode(np.clip(codes.astype(np.float64), low, high))


def flat(crops: Crops) -> Iterator[Float32[np.ndarray, "n pixels"]]:
    """Yield crops in chunks, each crop as a row of levels."""
    for start in range(0, len(crops), CHUNK):
        part = crops[start : start + CHUNK]
        yield part.reshape(len(part), -1).astype(np.float32)


def pictures_of(parts: Iterable[Float32[np.ndarray, "n pixels"]], count: int, canvas: Canvas) -> Crops:
    """Return `count` crops from chunks of rows of levels, rounded and clipped to 0..255 in place."""
    out = np.empty((count, *canvas), np.uint8)
    start = 0
    for part in parts:
        np.rint(part, out=part)
        out[start : start + len(part)] = np.clip(part, 0, 255, out=part).reshape(-1, *canvas)
        start += len(part)
    return out


ORIGIN: Final = (
    "What a codec shows was learned from these images: it may be bound to the same terms, and a decoded",
    "face may resemble people in them.",
)
DISTANCES: Final = (
    "Mean difference of the codes of two training images, as a part of the box of all training codes:"
)
PROMISE: Final = "Codes alone promise nothing. Privacy comes from a latent mechanism that draws a code anew."


def canvas_of(facts: Mapping[str, Any]) -> Canvas:
    """Return the canvas in a file's header; raises an error of `trained_files.UNFIT` if it is malformed."""
    height, width, channels = (int(side) for side in facts["canvas"])
    return height, width, channels


class StoredCodec(TrainedFile, Codec):
    """A codec that is stored in a file of dpveil, with its canvas and a card."""

    hint: ClassVar[str] = "make one: dpveil train pca IMAGES... --out model.safetensors"

    def facts(self) -> dict[str, Json]:
        return {"canvas": list(self.canvas)}

    def card_words(self) -> CardWords:
        height, width, channels = self.canvas
        distances = self.statistics.pair_distances().mean
        return CardWords(
            what=f"A dpveil codec, `{self.name}`: {self.summary} ({self.source}).",
            facts=(
                f"codes of {self.length} coordinates",
                f"crops of {height} × {width} pixels, {'grey' if channels == 1 else 'colour'}",
            ),
            origin=ORIGIN,
            more=(
                "## Distances between people",
                "",
                DISTANCES,
                "",
                *(f"- {share:.0%} of pairs: {far:.4f} or less" for share, far in distances.items()),
                "",
            ),
            promise=PROMISE,
        )


def load(path: str | Path, *, expected: str | None = None) -> StoredCodec:
    """Return the codec stored in a file; `expected` is its hash, if the user knows it.

    Raises `ModelError` for a file that is missing, truncated, altered since it was written, of another
    version or of an unknown codec. The hash in the file detects damage; only `expected` detects forgery.
    """
    codec: StoredCodec
    codec, _ = trained_files.load(path, CODECS, expected=expected)
    return codec


CODEC: Final = Kind(
    noun="codec",
    option="codec",
    written="pca 100 sha256:…",
    hint=StoredCodec.hint,
    kinds=CODECS,
    holds=Codec,
    sized=True,
    default="gan",
)
"""Files of codecs; the default is that of dpveil-faces' networks."""
